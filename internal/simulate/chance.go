package main

import (
	"math"
	"math/rand/v2"
	"path"
	"runtime"
	"sync"
	"time"
)

// A dice is a seeded source of chance for one goroutine.
type dice struct{ rng *rand.Rand }

func newDice(seed, stream uint64) *dice { return &dice{rand.New(rand.NewPCG(seed, stream))} }

// below is from 0 to below limit.
func (d *dice) below(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(d.rng.Int64N(int64(limit)))
}

func (d *dice) between(low, high time.Duration) time.Duration { return low + d.below(high-low) }

// chance is true with the probability p.
func (d *dice) chance(p float64) bool { return p > 0 && d.rng.Float64() < p }

// pick is one of 0 to n-1.
func (d *dice) pick(n int) int { return d.rng.IntN(n) }

// A fate is chance for all goroutines of one machine. What it says follows from
// the seed, the instant and the purpose alone, and not from what was asked
// before: goroutines that wake at the same instant run in any order, and must
// not swap their luck.
type fate struct {
	seed  uint64
	began time.Time
}

// at is a dice for one purpose at this instant.
func (f fate) at(purpose uint64) *dice {
	return newDice(f.seed^purpose*0x9e3779b97f4a7c15, uint64(time.Since(f.began)))
}

// roll is one number from 0 to below 1, without the cost of a dice.
func (f fate) roll(purpose uint64) float64 {
	x := f.seed ^ purpose*0x9e3779b97f4a7c15 ^ uint64(time.Since(f.began))*0xbf58476d1ce4e5b9
	// The finaliser of splitmix64 (Steele, Lea, Flood 2014).
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (math.MaxUint64>>11 + 1)
}

// random is the library's source of chance.
func (f fate) random(n time.Duration) time.Duration {
	return time.Duration(f.roll(uint64(n)) * float64(n))
}

// site tells the places of the code from which something was asked, as a
// purpose: by their lines, because addresses differ from one build to the next.
func site() uint64 {
	var pcs [6]uintptr
	n := runtime.Callers(3, pcs[:])
	purpose := uint64(n)
	for _, pc := range pcs[:n] {
		purpose = purpose*0x100000001b3 ^ line(pc)
	}
	return purpose
}

var lines sync.Map // of program counters: uint64

func line(pc uintptr) uint64 {
	if known, ok := lines.Load(pc); ok {
		return known.(uint64)
	}
	h := uint64(0)
	for frames, more := runtime.CallersFrames([]uintptr{pc}), true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		for _, c := range []byte(path.Base(f.File)) {
			h = h*0x100000001b3 ^ uint64(c)
		}
		h = h*0x100000001b3 ^ uint64(f.Line)
	}
	lines.Store(pc, h)
	return h
}
