package main

import (
	"bytes"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// A cell is a text of a table that is safe to print, and its colour, if it has
// one.
type cell struct{ text, colour string }

// A table has its columns aligned. text/tabwriter counts the bytes of a colour,
// and a wide rune as one column.
type table struct {
	widths []int // of the columns so far: they only grow
	rows   [][]cell
}

func (t *table) add(cells ...cell) {
	for len(t.widths) < len(cells) {
		t.widths = append(t.widths, 0)
	}
	for i, c := range cells {
		t.widths[i] = max(t.widths[i], columns(c.text))
	}
	t.rows = append(t.rows, cells)
}

// flush writes the rows that were added since the last time.
func (t *table) flush(w io.Writer, coloured bool) error {
	var b bytes.Buffer
	for _, row := range t.rows {
		for i, c := range row {
			text := c.text
			if coloured && c.colour != "" {
				text = c.colour + text + colourEnd
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]-columns(c.text)+2))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = nil
	_, err := w.Write(b.Bytes())
	return err
}

// columns is how much of a line a printable text takes. East Asian wide runes
// take two (https://www.unicode.org/reports/tr11/), marks on another rune none.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// shorten cuts a text off that would make its column too wide, and shows that.
func shorten(text string, limit int) string {
	if columns(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n += columns(string(r)); n >= limit {
			return text[:i] + "…"
		}
	}
	return text
}
