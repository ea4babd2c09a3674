package preflight

import (
	"context"
	"time"

	"github.com/gcslock/gcslock/internal/inside"
)

const (
	// requestLimit is the library's own for one request.
	requestLimit = 10 * time.Second
	tries        = 3
	failPause    = 200 * time.Millisecond
	ratePause    = 1100 * time.Millisecond // Google's limit is one change a second of one object
)

// A sample is what one request took, in the attempt that was answered. Attempts
// before that failed.
type sample struct {
	took   time.Duration
	failed int
	last   error // of those that failed
}

// ask sends a request that may be repeated, up to three times while it fails in
// a way that may pass. A refusal for too many changes is none of the failures.
func ask(ctx context.Context, send func(context.Context) error) (sample, error) {
	var s sample
	for attempt := 1; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, requestLimit)
		began := time.Now()
		err := send(limited)
		s.took = time.Since(began)
		cancel()
		if err == nil {
			return s, nil
		}
		// A read's outcome: what a 404 stands for is the caller's to say.
		outcome, _ := inside.Failed("read", "", err)
		pause := failPause
		switch outcome {
		case inside.Refused:
			pause = ratePause
		case inside.Unknown:
			s.failed++
			s.last = err
		default:
			return s, err
		}
		if attempt == tries || sleep(ctx, pause) != nil {
			return s, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
