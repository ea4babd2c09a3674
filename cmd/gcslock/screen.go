package main

import (
	"io"
	"os"

	"github.com/gcslock/gcslock/internal/preflight"
)

// Colours, as terminals have them since ECMA-48.
const (
	colourRed    = "\x1b[31m"
	colourGreen  = "\x1b[32m"
	colourYellow = "\x1b[33m"
	colourEnd    = "\x1b[0m"
)

// stateColours are those of locks, and of check's findings. Both have an unknown.
var stateColours = map[string]string{
	stateLive: colourGreen, stateStale: colourRed, stateForeign: colourYellow, stateUnknown: colourYellow,

	string(preflight.OK): colourGreen, string(preflight.Warn): colourYellow, string(preflight.Fail): colourRed,
}

// A screen is stdout. Pipes get the same columns without colour: what programs
// want is --json.
type screen struct {
	io.Writer
	coloured, json bool
}

func newScreen(w io.Writer, json bool) *screen {
	file, ok := w.(*os.File)
	return &screen{w, ok && !json && wantsColour() && terminalForColour(file), json}
}

// wantsColour follows https://no-color.org.
func wantsColour() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// emit writes a JSON object on a line of its own.
func (s *screen) emit(v any) error {
	line, err := jsonLine(v)
	if err != nil {
		return err
	}
	_, err = s.Write(line)
	return err
}

// colour is a text of a line in the state's colour.
func (s *screen) colour(state, text string) string {
	if colour := stateColours[state]; s.coloured && colour != "" {
		return colour + text + colourEnd
	}
	return text
}
