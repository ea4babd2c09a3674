package fenced

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A kind is what was done to the state, or seen of it.
type kind int

const (
	open   kind = iota // succeeded; value is what WithInitial would have written
	read               // gave value
	write              // of value
	update             // from old to value
	seen               // by somebody who holds no lock
	set                // by somebody who holds no lock
)

func (k kind) String() string {
	return [...]string{"open", "read", "write", "update", "seen", "set"}[k]
}

// An event is one call, whose effect came at some instant from called to returned.
type event struct {
	kind             kind
	token            int64
	value, old       string
	called, returned int64
	uncertain        bool // it may have had no effect
}

// never is when a call returns that may take effect later than everything else.
const never = math.MaxInt64

func (e event) String() string {
	text := fmt.Sprintf("%d to %d: %v by %d, %q", e.called, e.returned, e.kind, e.token, e.value)
	if e.kind == update {
		text += fmt.Sprintf(" from %q", e.old)
	}
	if e.uncertain {
		text += ", uncertain"
	}
	return text
}

// A register is the specification: one place, which does one thing at a time, and
// which only the last holder to open it can read as its own and write.
type register struct {
	value  string // "": there is none
	holder int64
	open   bool   // holder has opened it since the last change from outside
	former string // holders before this one, each as ",TOKEN,"
}

// step is one event. It is false if the register could not have done it.
func (r register) step(e event) (bool, register) {
	held := r.open && r.holder == e.token
	possible := true
	next := r
	switch e.kind {
	case open:
		possible = !strings.Contains(r.former, entry(e.token)) && !(e.uncertain && r.value != "")
		if r.holder != e.token {
			next.former += entry(r.holder)
		}
		next.holder, next.open = e.token, true
		if r.value == "" {
			next.value = e.value
		}
	case read:
		possible = held && r.value == e.value
	case write:
		possible, next.value = held, e.value
	case update:
		possible, next.value = held && r.value == e.old, e.value
	case seen:
		possible = r.value == e.value
	case set:
		next.value, next.open = e.value, false
	}
	if !possible && e.uncertain {
		return true, r // it had no effect
	}
	return possible, next
}

func entry(token int64) string { return fmt.Sprintf(",%d,", token) }

// check is nil if the register could have had this history.
func check(history []event) error {
	ops := make([]porcupine.Operation, len(history))
	for i, e := range history {
		ops[i] = porcupine.Operation{ClientId: i, Input: e, Call: e.called, Return: e.returned}
	}
	model := porcupine.Model{
		Init: func() any { return register{} },
		Step: func(state, input, _ any) (bool, any) { return state.(register).step(input.(event)) },
	}
	var lines strings.Builder
	for _, e := range history {
		fmt.Fprintln(&lines, e)
	}
	switch porcupine.CheckOperationsTimeout(model, ops, time.Minute) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("no register that only its holder writes has this history:\n%s", lines.String())
	}
	return fmt.Errorf("not decided within a minute:\n%s", lines.String())
}

// TestRegister: the check tells histories that can be from those that cannot.
func TestRegister(t *testing.T) {
	at := func(called, returned int64, k kind, token int64, value string) event {
		return event{kind: k, token: token, value: value, called: called, returned: returned}
	}
	late := at(3, never, write, 1, "a")
	late.uncertain = true
	from := func(e event, old string) event { e.old = old; return e }
	for _, tt := range []struct {
		name    string
		legal   bool
		history []event
	}{
		{"one after the other", true, []event{
			at(1, 2, open, 1, "i"), at(3, 4, write, 1, "a"), at(5, 6, open, 2, "j"), at(7, 8, read, 2, "a"), from(at(9, 10, update, 2, "b"), "a"), at(11, 12, seen, 0, "b")}},
		{"a former holder writes", false, []event{
			at(1, 2, open, 1, "i"), at(3, 4, open, 2, "j"), at(5, 6, write, 1, "a")}},
		{"and a former one's write is seen, without having succeeded", false, []event{
			at(1, 2, open, 1, "i"), at(3, 4, open, 2, "j"), at(5, 6, seen, 0, "a")}},
		{"a write that overlaps the next one's opening", true, []event{
			at(1, 2, open, 1, "i"), at(3, 6, write, 1, "a"), at(4, 5, open, 2, "j"), at(7, 8, read, 2, "a")}},
		{"an uncertain write that was applied", true, []event{
			at(1, 2, open, 1, "i"), late, at(5, 6, open, 2, "j"), at(7, 8, read, 2, "a")}},
		{"one that was not", true, []event{
			at(1, 2, open, 1, "i"), late, at(5, 6, open, 2, "j"), at(7, 8, read, 2, "i")}},
		{"one that was applied under the next holder", false, []event{
			at(1, 2, open, 1, "i"), late, at(5, 6, open, 2, "j"), at(7, 8, read, 2, "i"), at(9, 10, seen, 0, "a")}},
		{"a former holder opens again", false, []event{
			at(1, 2, open, 1, "i"), at(3, 4, open, 2, "j"), at(5, 6, open, 1, "k")}},
		{"a lost update", false, []event{
			at(1, 2, open, 1, "i"), at(3, 4, write, 1, "a"), from(at(5, 6, update, 1, "b"), "i")}},
		{"an outsider is overwritten", false, []event{
			at(1, 2, open, 1, "i"), at(3, 4, set, 0, "x"), at(5, 6, write, 1, "a")}},
		{"an outsider, and opened again", true, []event{
			at(1, 2, open, 1, "i"), at(3, 4, set, 0, "x"), at(5, 6, open, 1, "j"), at(7, 8, read, 1, "x"), at(9, 10, write, 1, "a")}},
	} {
		if err := check(tt.history); (err == nil) != tt.legal {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
