// Package linear checks a recorded history of one lock against a mutex with
// leases, which lives in one place and does one thing at a time. The search for
// an order of the operations that such a mutex could have gone through is
// porcupine's.
package linear

import (
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Kind is what was done to the lock or seen of it.
type Kind int

// The kinds. A failed attempt to get the lock is none: it has no effect.
const (
	Acquire Kind = iota // a lease was got
	Hold                // its holder asked, and was told that it holds
	Release             // it was given back, and the release said nil
	End                 // it ended in any other way: lost, released with an error, or its process is dead
	Break               // its object was removed from outside
)

func (k Kind) String() string {
	return [...]string{"acquire", "hold", "release", "end", "break"}[k]
}

// An Op is one operation. Its effect came at some instant from Call to Return.
// An End may have been noticed long after it came: its Call is the last Hold.
type Op struct {
	Kind         Kind
	Client       int
	Token        int64
	Sequence     int // tells the leases of one token apart; from 2 on the lock was passed on
	Call, Return time.Duration
}

func (o Op) String() string {
	return fmt.Sprintf("%v to %v: client %d, %v %d, number %d", o.Call, o.Return, o.Client, o.Kind, o.Token, o.Sequence)
}

// mutex is the state of the specification.
type mutex struct {
	holder   int64 // token, 0: free
	sequence int
	// Broken locks, each as ",TOKEN,". Their holders are told later, and may
	// go on believing until then, and pass the lock on.
	broken string
}

func (m mutex) isBroken(token int64) bool {
	return strings.Contains(m.broken, entry(token))
}

func entry(token int64) string { return fmt.Sprintf(",%d,", token) }

// step is one operation. It is false if the mutex could not have done it.
func (m mutex) step(o Op) (bool, mutex) {
	mine := m.holder == o.Token && (m.sequence == o.Sequence || o.Kind == Break)
	switch o.Kind {
	case Acquire:
		if o.Sequence > 1 && m.isBroken(o.Token) {
			return true, m
		}
		free := m.holder == 0
		m.holder, m.sequence = o.Token, o.Sequence
		return free, m
	case Hold:
		return mine || m.isBroken(o.Token), m
	case Break:
		if mine {
			m.holder, m.broken = 0, m.broken+entry(o.Token)
		}
		return true, m
	default: // Release, End
		if mine {
			m.holder = 0
			return true, m
		}
		return m.isBroken(o.Token), m
	}
}

// patience bounds the search, which takes milliseconds for the histories of a
// lock, but can take for ever.
const patience = time.Minute

// Check is nil if a mutex with leases could have had this history.
func Check(history []Op) error {
	ops := make([]porcupine.Operation, len(history))
	for i, o := range history {
		if o.Return < o.Call {
			return fmt.Errorf("it ends before it begins: %v", o)
		}
		ops[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: int64(o.Call), Return: int64(o.Return)}
	}
	model := porcupine.Model{
		Init: func() any { return mutex{} },
		Step: func(state, input, _ any) (bool, any) { return state.(mutex).step(input.(Op)) },
	}
	switch porcupine.CheckOperationsTimeout(model, ops, patience) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("no mutex with leases has this history:\n%s", text(history))
	default:
		return fmt.Errorf("not decided within %v:\n%s", patience, text(history))
	}
}

func text(history []Op) string {
	var b strings.Builder
	for _, o := range history {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}
