// Package shell writes command lines that people copy.
package shell

import (
	"fmt"
	"strings"
	"unicode"
)

// Word quotes a text for a shell, so that it can be copied from a terminal.
// What is not printable needs the quotes of bash, zsh and POSIX.1-2024; its
// bytes are given one by one, because what \u means there depends on the locale.
func Word(text string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-"
	if text != "" && strings.Trim(text, harmless) == "" {
		return text
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return "$'" + b.String() + "'"
}
