package gcslock

import (
	"context"
	"log/slog"
)

const (
	levelDebug = slog.LevelDebug // contention
	levelInfo  = slog.LevelInfo  // acquisition and release
	levelWarn  = slog.LevelWarn  // failed refreshes, takeover, loss
)

// log writes one line with the fixed attributes; generation is 0 where none is
// known yet.
func (l *Lock) log(ctx context.Context, level slog.Level, msg string, generation int64, more ...slog.Attr) {
	if l.olderLogger == nil && !l.logger.Enabled(ctx, level) {
		return
	}
	attrs := append([]slog.Attr{
		slog.String("bucket", printable(l.bucket)),
		slog.String("object", printable(l.object)),
		slog.String("owner", printable(l.owner)),
		slog.Int64("generation", generation),
	}, more...)
	if l.olderLogger != nil {
		logOlder(l.olderLogger(ctx), level, msg, attrs)
	}
	l.logger.LogAttrs(ctx, level, msg, attrs...)
}

const errorKey = "error"

// logError is an error as an attribute.
func logError(err error) slog.Attr { return slog.Any(errorKey, err) }

// logHolder is who is in the way, an Info for handlers that want to know more.
func logHolder(holder Info) slog.Attr { return slog.Any("holder", holder) }

// LogValue is what a log line shows of the holder: who, what for, since when
// and until when, with whatever is not printable escaped.
func (i Info) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("owner", printable(i.Owner)),
		slog.String("host", printable(i.Host)),
		slog.Int("pid", i.PID),
		slog.String("operation", printable(i.Operation)),
		slog.Time("since", i.AcquiredAt),
		slog.Time("refreshed", i.Updated),
		slog.Time("expires", i.ExpiresAt),
		slog.Int64("generation", i.Generation),
		slog.Bool("foreign", i.Foreign),
	)
}

// logOlder writes a line to the caller-driven form's logger, which knows no
// Debug, and takes a warning for an error.
func logOlder(logger Logger, level slog.Level, msg string, attrs []slog.Attr) {
	if logger == nil || level < levelInfo {
		return
	}
	var err error
	var keysAndValues []any
	for _, a := range attrs {
		if e, ok := a.Value.Any().(error); ok && a.Key == errorKey {
			err = e
			continue
		}
		keysAndValues = append(keysAndValues, a.Key, a.Value.Resolve().Any())
	}
	if level >= levelWarn {
		logger.Error(err, msg, keysAndValues...)
		return
	}
	logger.Info(msg, keysAndValues...)
}
