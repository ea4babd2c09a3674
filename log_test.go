package gcslock

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// A logged is what a lock logs, as text.
type logged struct {
	logger *slog.Logger
	mu     sync.Mutex // guards text
	text   bytes.Buffer
}

func newLog() *logged {
	l := &logged{}
	l.logger = slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return l
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are those that have the text.
func (l *logged) lines(having string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, having) {
			lines = append(lines, line)
		}
	}
	return lines
}

// only is the one line that has the text.
func (l *logged) only(t *testing.T, having string) string {
	t.Helper()
	lines := l.lines(having)
	if len(lines) != 1 {
		t.Fatalf("%d lines say %q, want 1: %q", len(lines), having, lines)
	}
	return lines[0]
}

// TestLog: each line of a life, with its level and the fixed attributes.
func TestLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		log := newLog()
		lease := w.machine("a").steadily(WithLogger(log.logger))
		w.inject(gcstest.Update, 3, gcstest.FailStatus(503))
		time.Sleep(25 * time.Second)
		_, _ = w.machine("b").lock(WithLogger(log.logger)).TryAcquire(t.Context())
		w.release(lease)
		for message, level := range map[string]string{
			"lock acquired": "INFO", "lock refreshed": "DEBUG", "locked by another": "DEBUG", "lock released": "INFO",
		} {
			line := log.only(t, message)
			for _, want := range []string{"level=" + level, "bucket=jobs", "object=nightly/lock", fmt.Sprintf("generation=%d", lease.Token())} {
				if !strings.Contains(line, want) {
					t.Errorf("%q is logged as %s, without %s", message, line, want)
				}
			}
		}
		// Three failed attempts of one refresh: one warning.
		if n := len(log.lines("refresh failed")); n != 3 {
			t.Errorf("%d lines for 3 failed attempts", n)
		}
		if n := len(log.lines("level=WARN")); n != 1 {
			t.Errorf("%d warnings, want 1", n)
		}
		if line := log.only(t, "locked by another"); !strings.Contains(line, "owner=b") || !strings.Contains(line, "holder.owner=a") {
			t.Errorf("contention is logged as %s", line)
		}
	})
}

// TestPermissionLossIsWarnedAtOnce: in the middle of a run, also where another
// failure came first, and the loss follows when the validity ends, reported
// once.
func TestPermissionLossIsWarnedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		log := newLog()
		lease := w.machine("a").acquire(WithLogger(log.logger))
		w.inject(gcstest.Update, 1, gcstest.FailStatus(503))
		w.inject(gcstest.Update, 0, gcstest.Forbid("storage.objects.update"))
		time.Sleep(22 * time.Second)
		warned := log.lines("level=WARN")
		if len(warned) != 2 || !strings.Contains(warned[1], "needs permission storage.objects.update") {
			t.Errorf("warned of a missing permission with %q", warned)
		}
		<-lease.Context().Done()
		synctest.Wait() // the line follows the cancellation
		w.lost(lease)
		isLoss(t, "Release", lease.Release(t.Context()))
		says(t, lease.Err(), "needs permission storage.objects.update")
		if line := log.only(t, "lock lost"); !strings.Contains(line, "level=WARN") {
			t.Errorf("loss is logged as %s", line)
		}
	})
	// A token source that recovers in time costs nothing.
	inWorld(t, func(t *testing.T, w *world) {
		lease := w.machine("a").acquire()
		expired := w.inject(gcstest.Update, 0, gcstest.FailStatus(401))
		time.Sleep(45 * time.Second)
		expired.Remove()
		time.Sleep(time.Hour)
		w.release(lease)
	})
}

// TestLogEndOfWait: that the end of a wait cut a request off is no failure, also
// not in the error. What failed before it is.
func TestLogEndOfWait(t *testing.T) {
	for _, failures := range []int{0, 1} {
		inWorld(t, func(t *testing.T, w *world) {
			log := newLog()
			lease := w.machine("a").acquire()
			if failures > 0 {
				w.inject(gcstest.Get, failures, gcstest.FailStatus(503))
			}
			w.inject(gcstest.Get, 0, gcstest.Hang())
			_, err := w.machine("b").lock(WithLogger(log.logger), WithMaxWait(9*time.Second)).Acquire(t.Context())
			isContext(t, err, context.DeadlineExceeded)
			if lines := log.lines("request failed"); len(lines) != failures {
				t.Errorf("%d failures, logged as %q", failures, lines)
			}
			if told := strings.Contains(err.Error(), "503"); told != (failures > 0) || strings.Contains(err.Error(), "time limit") {
				t.Errorf("%d failures: %v", failures, err)
			}
			w.release(lease)
		})
	}
}

// TestHostileHolder: what a stranger wrote into the object does not reach the
// log as it is, whatever the handler does.
func TestHostileHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server.Put(testBucket, testObject, gcstest.Object{Metadata: map[string]string{keyOwner: hostile, keyOperation: hostile, keyHost: hostile}})
		var lines []string
		logger := recorder{func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }}
		handler := slog.New(plainHandler{logger})
		_, err := w.machine("a").lock(WithLogger(handler)).TryAcquire(t.Context())
		lines = append(lines, err.Error())
		if len(lines) != 2 {
			t.Fatalf("%d lines, want one and the error", len(lines))
		}
		for _, line := range lines {
			if !isClean(line) {
				t.Errorf("not clean: %q", line)
			}
		}
	})
}

// plainHandler escapes nothing.
type plainHandler struct{ recorder }

func (plainHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h plainHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h plainHandler) WithGroup(string) slog.Handler          { return h }
func (h plainHandler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Key + "=" + a.Value.Resolve().String(); return true })
	h.printf("%s", line)
	return nil
}

// A recorder is a Logger of the caller-driven form.
type recorder struct {
	printf func(format string, args ...any)
}

func (r recorder) Info(msg string, kv ...any)             { r.printf("info: %s %v", msg, kv) }
func (r recorder) Error(err error, msg string, kv ...any) { r.printf("error: %s: %v %v", msg, err, kv) }
