package shell

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestWord: a shell makes of the word what it was made of.
func TestWord(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed: ", err)
	}
	for _, text := range []string{
		"gs://jobs/nightly/lock", "gs://jobs/a b", "gs://jobs/it's", "gs://jobs/$HOME`id`", `gs://jobs/\n"`, "gs://jobs/#;&|<>*?[]{}()!~",
		"gs://jobs/ロック", "gs://jobs/a\nb", "gs://jobs/\x1b[2J'\\1", "gs://jobs/\u202e1", "gs://jobs/\xff", "-x", "",
	} {
		word := Word(text)
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(word) {
			t.Errorf("%q is not printable", word)
		}
		got, err := exec.Command(bash, "-c", "printf %s "+word).Output()
		if err != nil || string(got) != text {
			t.Errorf("%q becomes %s, and that %q (%v)", text, word, got, err)
		}
	}
	if word := Word("gs://jobs/nightly/lock"); word != "gs://jobs/nightly/lock" {
		t.Errorf("quoted for nothing: %s", word)
	}
}
