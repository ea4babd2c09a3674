package linear

import (
	"strings"
	"testing"
	"time"
)

// at makes an operation whose effect came from one second to another.
func at(call, ret time.Duration, client int, kind Kind, token int64) Op {
	return Op{Kind: kind, Client: client, Token: token, Call: call * time.Second, Return: ret * time.Second}
}

// second makes it an operation on the second lease of its token.
func second(o Op) Op {
	o.Sequence = 2
	return o
}

func TestCheck(t *testing.T) {
	for _, test := range []struct {
		name    string
		legal   bool
		history []Op
	}{
		{"nothing", true, nil},
		{"one after the other", true, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 2, 1, Hold, 7), at(3, 4, 1, Release, 7),
			at(1, 5, 2, Acquire, 8), at(6, 6, 2, Hold, 8), at(7, 8, 2, Release, 8),
		}},
		{"got while it is being given back", true, []Op{
			at(0, 1, 1, Acquire, 7), at(3, 6, 1, Release, 7), at(1, 4, 2, Acquire, 8),
		}},
		{"got before it is given back", false, []Op{
			at(0, 1, 1, Acquire, 7), at(3, 6, 1, Release, 7), at(1, 2, 2, Acquire, 8),
		}},
		{"two at once", false, []Op{
			at(0, 1, 1, Acquire, 7), at(0, 1, 2, Acquire, 8),
		}},
		{"lost, noticed late", true, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 2, 1, Hold, 7), at(2, 20, 1, End, 7),
			at(1, 12, 2, Acquire, 8), at(13, 14, 2, Release, 8),
		}},
		{"held when the next one has got it", false, []Op{
			at(0, 1, 1, Acquire, 7), at(13, 13, 1, Hold, 7), at(13, 20, 1, End, 7),
			at(1, 12, 2, Acquire, 8), at(14, 15, 2, Release, 8),
		}},
		{"held again after the end", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 1, End, 7), at(4, 4, 1, Hold, 7),
		}},
		{"given back twice", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 1, Release, 7), at(4, 5, 1, Release, 7),
		}},
		{"given back what was lost", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 1, End, 7), at(2, 4, 2, Acquire, 8), at(5, 6, 1, Release, 7),
		}},
		{"broken, and held until told", true, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 3, Break, 7), at(2, 4, 2, Acquire, 8),
			at(5, 5, 1, Hold, 7), at(5, 6, 1, End, 7), at(7, 8, 2, Release, 8),
		}},
		{"broken after the next one has got it", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 4, 2, Acquire, 8), at(5, 6, 3, Break, 7), at(7, 8, 1, End, 7),
		}},
		{"a break that names what is gone breaks nothing", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 1, Release, 7), at(2, 4, 2, Acquire, 8),
			at(5, 6, 3, Break, 7), at(5, 7, 1, Acquire, 9),
		}},
		{"passed on", true, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 4, 1, Release, 7), second(at(0, 3, 2, Acquire, 7)),
			second(at(5, 5, 2, Hold, 7)), second(at(6, 7, 2, Release, 7)), at(6, 8, 3, Acquire, 8),
		}},
		{"passed on before it is given back", false, []Op{
			at(0, 1, 1, Acquire, 7), at(4, 5, 1, Release, 7), second(at(0, 3, 2, Acquire, 7)),
		}},
		{"the former holder's after it was passed on", false, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 3, 1, Release, 7), second(at(0, 4, 2, Acquire, 7)), at(5, 5, 1, Hold, 7),
		}},
		{"broken, and passed on until told", true, []Op{
			at(0, 1, 1, Acquire, 7), at(2, 2, 4, Break, 7), at(2, 3, 3, Acquire, 8),
			at(4, 5, 1, Release, 7), second(at(0, 6, 2, Acquire, 7)), second(at(6, 7, 2, End, 7)), at(8, 9, 3, Release, 8),
		}},
	} {
		err := Check(test.history)
		if test.legal && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if !test.legal && (err == nil || !strings.Contains(err.Error(), "no mutex with leases")) {
			t.Errorf("%s: %v, want a history that is rejected", test.name, err)
		}
	}
}

func TestCheckNeedsOrder(t *testing.T) {
	err := Check([]Op{at(2, 1, 1, Acquire, 7)})
	if err == nil || !strings.Contains(err.Error(), "ends before it begins") {
		t.Error(err)
	}
}
