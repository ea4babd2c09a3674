package main

import (
	"context"
	"time"
)

// suffer is what happens to one client until the chaos ends: it is cut off from
// the network, crashes, and has its wall clock set.
func (c *client) suffer(ctx context.Context) {
	d := newDice(c.world.seed, 100+uint64(c.machine.name[0]))
	for rest(ctx, d.between(time.Second, 10*time.Second)) && !c.world.calm() {
		if d.chance(c.world.plan.partition) {
			c.cutFor(d.between(100*time.Millisecond, 25*time.Second))
		}
		if d.chance(c.world.plan.crash) {
			c.crash()
		}
		if d.chance(c.world.plan.steps) {
			by := d.between(-time.Hour, time.Hour)
			c.world.log(c.machine.name, "wall clock steps", int64(by), 0)
			c.machine.step(by)
		}
	}
}

func (c *client) cutFor(length time.Duration) {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	end := time.Now().Add(length)
	if last := c.world.began.Add(c.world.plan.chaos); end.After(last) {
		end = last
	}
	c.world.logLocked(c.machine.name, "partition", int64(time.Until(end)), 0)
	if end.After(c.cut) {
		c.cut = end
	}
}

// crash ends the process between two instructions: nothing that it does after
// that leaves it.
func (c *client) crash() {
	w := c.world
	w.mu.Lock()
	p := c.process
	if p == nil || p.dead.Load() {
		w.mu.Unlock()
		return
	}
	p.dead.Store(true)
	w.crashes++
	w.logLocked(p.name, "crashes", 0, 0)
	w.mu.Unlock()
	p.stop()
}

// humans do what they do with a console.
func (w *world) humans(ctx context.Context) {
	d := newDice(w.seed, 200)
	for range w.plan.humans {
		if !rest(ctx, d.below(w.plan.chaos/time.Duration(w.plan.humans))) {
			return
		}
		if d.chance(0.3) {
			w.breakLock(ctx)
			continue
		}
		w.mu.Lock()
		w.deed(d.pick(5))
		w.mu.Unlock()
	}
	// Nobody but a human removes what a human has put there.
	if w.plan.humans > 0 && rest(ctx, time.Until(w.began.Add(w.plan.chaos))) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.cloud.object != nil && w.cloud.object.foreign() {
			w.removeBy("human")
		}
	}
}

// deed is one of them. Needs mu.
func (w *world) deed(kind int) {
	o := w.cloud.object
	switch {
	case kind == 0 && o == nil:
		w.cloud.put(human, map[string]string{"note": "keep out"})
		w.logLocked("human", "puts a file there", 0, 0)
	case o == nil:
	case kind == 1:
		w.cloud.edit(map[string]string{"note": "who is this?"})
		w.logLocked("human", "edits", o.Generation, o.Metageneration)
	case kind == 2:
		w.cloud.edit(map[string]string{"expires-at": "tomorrow"})
		w.logLocked("human", "edits the expiry", o.Generation, o.Metageneration)
	case kind == 3:
		w.removeBy("human")
	case kind == 4:
		w.removeBy("human")
		w.cloud.put(human, map[string]string{"owner": "human"})
		w.logLocked("human", "puts a lock there", 0, 0)
	}
}

// breakLock breaks what holds the lock, with the library, as the command does.
func (w *world) breakLock(ctx context.Context) {
	p := w.operator.start(ctx, 1)
	l := w.operator.lock(p)
	info, err := l.Inspect(ctx)
	if err != nil {
		w.log("human", err.Error(), 0, 0)
		return
	}
	p.breaks = info.Generation
	if err := l.Break(ctx, info.Generation); err != nil {
		w.log("human", err.Error(), 0, 0)
	}
}

// removeBy removes the object by its name, whoever holds it. Needs mu.
func (w *world) removeBy(who string) {
	o := w.cloud.object
	w.cloud.take()
	w.logLocked(who, "removes", o.Generation, o.Metageneration)
	w.noteRemoved(o.Generation)
}

// noteRemoved notes that a lock was removed from outside: its holder does not
// know. Needs mu.
func (w *world) noteRemoved(generation int64) {
	w.removed[generation] = true
	w.recordBreak(generation)
	for _, t := range w.held {
		if t.lease.Token() == generation {
			t.broken = true
		}
	}
}
