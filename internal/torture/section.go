package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gcslock/gcslock"
)

const (
	// look is the pause between two looks at a lease.
	look = 5 * time.Millisecond
	// quiet is how long a worker leaves a valid lease without a line.
	quiet = 100 * time.Millisecond
)

// section is the work under a lease, and its record. It ends when it is done,
// when ctx ends, and when the lease is lost.
func (w *worker) section(ctx context.Context, lease *gcslock.Lease) (begun bool) {
	length := w.length()
	var began, told, expires time.Duration
	for {
		// Before the look: what is valid at the look was valid then.
		now := machineTime()
		e := expiry(lease)
		if lease.Err() != nil {
			w.lost(lease)
			return begun
		}
		what := works
		switch {
		case !begun:
			what, begun, began = begins, true, now
		case ctx.Err() != nil || now-began >= length:
			what = ends
		}
		if what != works || now-told >= quiet || e-expires > time.Millisecond {
			w.write(line{now, what, w.Process, lease.Token(), e, ""})
			told, expires = now, e
		}
		if what == ends {
			return true
		}
		w.pause(lease.Context(), look)
	}
}

// length of a section: most are short, some are refreshed several times.
func (w *worker) length() time.Duration {
	if w.chance.IntN(5) == 0 {
		return w.upTo(3 * w.TTL)
	}
	return w.upTo(300 * time.Millisecond)
}

// expiry is the lease's own account of when it is lost without another refresh,
// in the machine's time, rounded down. The wall clock that Expires goes by and
// the machine's are read one after the other, and again where something came in
// between.
func expiry(lease *gcslock.Lease) time.Duration {
	e := lease.Expires()
	best, at := time.Hour, time.Duration(0)
	for range 3 {
		before := machineTime()
		wall := time.Now()
		if gap := machineTime() - before; gap < best {
			best, at = gap, before+e.Sub(wall.Round(0))
		}
		if best < 50*time.Microsecond {
			break
		}
	}
	return at
}

// lost records a loss, and looks whether the lease sticks to it.
func (w *worker) lost(lease *gcslock.Lease) {
	w.lossTold = lease.Token()
	w.tell(loses, lease.Token(), expiry(lease), "")
	if err := lease.Err(); !errors.Is(err, gcslock.ErrLockAbandoned) {
		w.tell(wrong, lease.Token(), 0, fmt.Sprintf("a lost lease says %v", err))
	}
	for range 20 {
		now := machineTime()
		if lease.Err() == nil {
			w.write(line{now, works, w.Process, lease.Token(), expiry(lease), "after its loss"})
		}
		time.Sleep(look)
	}
	// By the number of looks, not by time: the process may be stopped here.
	if lease.Context().Err() == nil {
		w.tell(wrong, lease.Token(), 0, "the context of a lost lease has not ended")
	}
}

// released judges what the release of the lease returned.
func (w *worker) released(lease *gcslock.Lease, err error) {
	lost := lease.Err()
	switch {
	case err == nil && errors.Is(lost, gcslock.ErrLockAbandoned):
		w.tell(wrong, lease.Token(), 0, "the release of a lost lease did not tell")
	case errors.Is(err, gcslock.ErrLockAbandoned) && w.lossTold != lease.Token():
		w.tell(loses, lease.Token(), expiry(lease), "by the release")
	case err != nil && !errors.Is(err, gcslock.ErrLockAbandoned):
		w.tell(leaves, lease.Token(), 0, err.Error())
	}
}
