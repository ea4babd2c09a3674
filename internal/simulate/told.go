package main

import (
	"context"
	"log/slog"
)

// A told is what the library has logged of one section's lease. The world's lock
// guards it.
type told struct{ losses int }

type toldKey struct{}

// toldOf is that of the section whose context it is.
func toldOf(ctx context.Context) *told { return ctx.Value(toldKey{}).(*told) }

// observer counts what the library logs.
type observer struct{ world *world }

func (o observer) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (o observer) WithAttrs([]slog.Attr) slog.Handler               { return o }
func (o observer) WithGroup(string) slog.Handler                    { return o }

func (o observer) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "lock lost" {
		o.world.mu.Lock()
		defer o.world.mu.Unlock()
		toldOf(ctx).losses++
	}
	return nil
}
