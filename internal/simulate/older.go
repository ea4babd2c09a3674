package main

import (
	"context"
	"time"

	"github.com/gcslock/gcslock/internal/inside"
)

// An older is a client of the older format, as its published sources behave:
// owner and expires-at alone, its own wall clock against what others wrote, and
// the metageneration alone as the precondition.
type older struct {
	world *world
	dice  *dice
	skew  time.Duration
	self  *process
}

const olderTTL = 8 * time.Second

func newOlder(w *world) *older {
	d := newDice(w.seed, 300)
	return &older{world: w, dice: d, skew: d.between(-2*time.Second, 2*time.Second), self: &process{name: "older"}}
}

func (o *older) now() time.Time { return time.Now().Add(o.skew) }

func (o *older) metadata() map[string]string {
	return map[string]string{"owner": "older", "expires-at": o.now().Add(olderTTL).UTC().Format(time.RFC3339Nano)}
}

func (o *older) run(ctx context.Context) {
	for range o.world.plan.sections {
		for !o.try() {
			if !rest(ctx, o.dice.between(500*time.Millisecond, 2*time.Second)) {
				return
			}
		}
		o.hold(ctx)
		rest(ctx, o.dice.below(2*time.Second))
	}
}

// try creates, or removes what it takes for stale.
func (o *older) try() bool {
	w := o.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkHolders()
	if w.cloud.object == nil {
		w.idle = time.Time{}
		return w.cloud.create(o.self, o.metadata()).Outcome == inside.Done
	}
	expires, err := time.Parse(time.RFC3339Nano, w.cloud.object.Metadata["expires-at"])
	if err == nil && o.now().After(expires) {
		w.removeBy("older")
	}
	return false
}

// hold refreshes for a while, and removes its object.
func (o *older) hold(ctx context.Context) {
	end := time.Now().Add(o.dice.below(2 * olderTTL))
	for time.Now().Before(end) && rest(ctx, olderTTL/4) {
		o.refresh()
	}
	w := o.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cloud.object != nil && w.cloud.object.creator == o.self {
		w.removeBy("older")
	}
}

func (o *older) refresh() {
	w := o.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cloud.object != nil && w.cloud.object.creator == o.self {
		w.cloud.update(inside.Version{Metageneration: w.cloud.object.Metageneration}, o.metadata())
	}
}
