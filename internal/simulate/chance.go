package main

import (
	"math/rand/v2"
	"path"
	"runtime"
	"sync"
	"time"
)

// A dice is a seeded source of chance for one goroutine. It is a value and not a
// rand.Rand because one is thrown for every request, and need not be allocated.
type dice struct{ pcg rand.PCG }

func newDice(seed, stream uint64) *dice {
	d := new(dice)
	d.pcg.Seed(seed, stream)
	return d
}

// share is from 0 to below 1.
func (d *dice) share() float64 { return share(d.pcg.Uint64()) }

// share makes a fraction of a random number.
func share(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// below is from 0 to below limit.
func (d *dice) below(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return time.Duration(d.share() * float64(limit))
}

func (d *dice) between(low, high time.Duration) time.Duration { return low + d.below(high-low) }

// chance is true with the probability p.
func (d *dice) chance(p float64) bool { return p > 0 && d.share() < p }

// pick is one of 0 to n-1.
func (d *dice) pick(n int) int { return int(d.share() * float64(n)) }

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
	return share(x ^ x>>31)
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
