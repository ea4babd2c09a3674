// Gocron is a scheduled job on several instances, with the locks of package
// gcslock in gocron's Locker or Elector. README.md has it run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cloud.google.com/go/storage"
	"github.com/go-co-op/gocron/v2"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/leases"
)

// prefix is that of all lock objects.
const prefix = "cron"

// A config is what the command line says.
type config struct {
	name   string
	bucket string
	elect  bool
	every  time.Duration
	ttl    time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var c config
	flag.StringVar(&c.name, "name", "instance", "what this instance calls itself")
	flag.StringVar(&c.bucket, "bucket", "jobs", "bucket of the locks")
	flag.BoolVar(&c.elect, "elect", false, "one leader runs all jobs, instead of a lock for each run")
	flag.DurationVar(&c.every, "every", time.Minute, "the job's interval")
	flag.DurationVar(&c.ttl, "ttl", gcslock.DefaultTTL, "how long a lock outlives a killed instance")
	demo := flag.Bool("demo", false, "run two instances on a server of their own, and kill the first")
	flag.Parse()
	work := instance
	if *demo {
		work = demonstrate
	}
	if err := work(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "gocron:", err)
		os.Exit(1)
	}
}

// instance runs the job until ctx ends.
func instance(ctx context.Context, c config) error {
	// Reads STORAGE_EMULATOR_HOST, and else the default credentials.
	client, err := storage.NewClient(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	report := func(context.Context) error {
		fmt.Printf("%s runs the report of %s\n", c.name, time.Now().Round(c.every).Format(time.TimeOnly))
		return nil
	}
	s, end, err := schedule(client.Bucket(c.bucket), c, report)
	if err != nil {
		return err
	}
	s.Start()
	fmt.Printf("%s started\n", c.name)
	<-ctx.Done()
	return errors.Join(s.Shutdown(), end())
}

// schedule is a scheduler with the one job. end is for when it has been shut
// down.
func schedule(bucket *storage.BucketHandle, c config, report func(context.Context) error) (s gocron.Scheduler, end func() error, err error) {
	var distributed gocron.SchedulerOption
	const job = "report"
	if c.elect {
		e := NewElector(bucket, prefix, "leader", leases.Config{Enabled: true, TTL: c.ttl, RenewInterval: c.ttl / 3})
		distributed, report, end = gocron.WithDistributedElector(e), e.Task(report), e.Close
	} else {
		l := NewLocker(bucket, prefix, c.every/2, gcslock.WithTTL(c.ttl), gcslock.WithOwner(c.name))
		distributed, report = gocron.WithDistributedLocker(l), l.Task(job, report)
		end = func() error { l.Close(); return nil }
	}
	s, err = gocron.NewScheduler(distributed, gocron.WithStopTimeout(time.Minute))
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	// All instances have the same run times, whenever they were started.
	first := time.Now().Truncate(c.every).Add(c.every)
	_, err = s.NewJob(gocron.DurationJob(c.every), gocron.NewTask(report), gocron.WithName(job),
		gocron.WithStartAt(gocron.WithStartDateTime(first)))
	if err != nil {
		return nil, nil, errors.Join(err, s.Shutdown(), end())
	}
	return s, end, nil
}
