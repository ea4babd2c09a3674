package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"mime"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"
	"google.golang.org/api/option"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/internal/inside"
)

// A runner is one call of gcslock run, or what gcslock terraform has of it.
type runner struct {
	*teller
	bucket, object string
	command        []string
	path           string // of the command's program

	ttl, wait, grace time.Duration
	limitWait        bool // wait is set
	owner, operation string
	payload          string // a file
	payloadTerraform bool
	emulator         bool

	options  []gcslock.Option // the lock's, as the flags have them
	client   *storage.Client  // set by open
	lossTold bool

	// What gcslock terraform has otherwise.
	endpoint    string                      // not Google's and not an emulator's
	setting     []string                    // more of the command's environment
	interrupts  bool                        // the command is asked to end by SIGINT alone
	interrupted bool                        // that was done
	ready       func(context.Context) error // called once the lock is held
}

func newRun() *cobra.Command {
	r := &runner{teller: &teller{}}
	cmd := &cobra.Command{
		Use:   "run [flags] gs://BUCKET/OBJECT -- COMMAND ARG...",
		Short: "Run a command under a lock",
		Long: `Takes the lock, runs the command, releases the lock when the command has ended,
and exits with the command's code. While it waits it says who holds the lock.

The command gets a process group of its own. SIGINT, SIGTERM and SIGHUP are
passed on to the group. If the lease is lost, the group gets SIGTERM at once and
SIGKILL after the grace, or earlier, before others can have the lock. If gcslock
itself is killed, the command is, too (on Linux; not the command's children).
What the command leaves running in the background when it ends is not waited
for.

The command sees GCSLOCK_BUCKET, GCSLOCK_OBJECT, GCSLOCK_TOKEN (the lock
object's generation) and GCSLOCK_OWNER.

Credentials are Application Default Credentials; STORAGE_EMULATOR_HOST names an
emulator instead. They need storage.objects.create, get, update, delete and list,
as in roles/storage.objectUser; without list a free lock may look forbidden.

` + jsonHelp + "\n\n" + exitCodeTable,
		Example: `  # one nightly import at a time, give up after ten minutes
  gcslock run --wait 10m --operation 'nightly import' gs://jobs/nightly/lock -- ./import.sh

  # a script that changes a state of Terraform's
  gcslock run --payload-terraform gs://states/network/default.tflock -- ./repair.sh

  # without a bucket: try it in two terminals
  gcslock run --emulator gs://demo/lock -- sleep 60`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r.out = cmd.ErrOrStderr()
			r.limitWait = cmd.Flags().Changed("wait")
			if err := r.parse(args, cmd.ArgsLenAtDash()); err != nil {
				return usageError{err}
			}
			return r.run(cmd.Context())
		},
	}
	r.addFlags(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&r.ttl, "ttl", gcslock.DefaultTTL, "how long the lock outlives a crash, 3s to 24h")
	flags.StringVar(&r.operation, "operation", "", "what the lock is held for, for people")
	flags.StringVar(&r.payload, "payload", "", "`file` whose content the lock object gets")
	flags.BoolVar(&r.payloadTerraform, "payload-terraform", false, "the lock object gets Terraform's lock information; its name has to end in .tflock")
	cmd.MarkFlagsMutuallyExclusive("payload", "payload-terraform")
	flags.DurationVar(&r.grace, "grace", 5*time.Second, "from SIGTERM to SIGKILL when the lease is lost")
	flags.BoolVar(&r.emulator, "emulator", false, "use a local server in memory, started if there is none")
	return cmd
}

// addFlags adds those that all commands have that take a lock, with one default.
func (r *runner) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&r.wait, "wait", 0, "longest wait for the lock; 0: try once (default: no limit)")
	flags.StringVar(&r.owner, "owner", defaultOwner(), "label that tells people who holds the lock")
	// The default is the process's own: in the help and the man page it would be
	// somebody's who is long gone.
	flags.Lookup("owner").DefValue = "HOST/PID"
	flags.BoolVar(&r.quiet, "quiet", false, "tell errors only")
	flags.BoolVar(&r.json, "json", false, "tell in JSON, a line each")
}

// defaultOwner is the library's default, which the command's environment shows,
// too.
func defaultOwner() string {
	host, _ := os.Hostname() // empty where the system does not know
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// parse checks the command line. All mistakes are found here, before any
// request.
func (r *runner) parse(args []string, dash int) error {
	if dash != 1 || len(args) < 2 {
		return errors.New("want gs://BUCKET/OBJECT -- COMMAND ARG...; see gcslock run --help")
	}
	var err error
	if r.bucket, r.object, err = parseTarget(args[0]); err != nil {
		return err
	}
	r.command = args[1:]
	switch {
	case r.payloadTerraform:
		if err := r.becomeStateLock(); err != nil {
			return err
		}
	case r.payload != "":
		body, err := os.ReadFile(r.payload)
		if err != nil {
			return fmt.Errorf("--payload: %w", err)
		}
		r.options = append(r.options, gcslock.WithPayload(mime.TypeByExtension(filepath.Ext(r.payload)), body))
	}
	return r.configure()
}

// configure checks what all commands have that take a lock, and makes the
// lock's options of it.
func (r *runner) configure() error {
	if r.limitWait && r.wait < 0 {
		return fmt.Errorf("--wait %v is negative", r.wait)
	}
	if r.grace < 0 {
		return fmt.Errorf("--grace %v is negative", r.grace)
	}
	r.lock = inside.URL(r.bucket, r.object)
	r.options = append(r.options,
		gcslock.WithTTL(r.ttl), gcslock.WithOwner(r.owner), gcslock.WithOperation(r.operation),
		gcslock.WithLogger(slog.New(r.teller)))
	if r.wait > 0 {
		r.options = append(r.options, gcslock.WithMaxWait(r.wait))
	}
	// The library's own checks, on a client that never sends a request.
	_, err := gcslock.New(new(storage.Client).Bucket(r.bucket), r.object, r.options...)
	return err
}

// run takes the lock and runs the command. What goes wrong is told here; the
// error is the exit code.
func (r *runner) run(ctx context.Context) error {
	if err := r.lookUp(); err != nil {
		return err
	}
	signals := catchSignals()
	defer signals.stop()
	lock, closeClient, err := r.open(ctx)
	if err != nil {
		return r.fail(exitStorage, err)
	}
	defer closeClient()

	lease, err := r.acquire(ctx, lock, signals)
	if err != nil {
		return err
	}
	r.tell(message{Event: eventAcquired, Token: lease.Token(), Text: fmt.Sprintf("acquired %s, token %d", r.lock, lease.Token())})
	if r.ready != nil {
		if err := r.ready(ctx); err != nil {
			_ = r.fail(exitStorage, err)
			return r.finish(ctx, lease, exitStorage, nil)
		}
	}
	code, err := r.supervise(lease, signals)
	return r.finish(ctx, lease, code, err)
}

// lookUp finds the command's program, before the lock is taken for nothing.
func (r *runner) lookUp() error {
	path, err := exec.LookPath(r.command[0])
	switch {
	case err == nil:
		r.path = path
		return nil
	case errors.Is(err, fs.ErrPermission):
		return r.fail(exitNotExecutable, err)
	}
	return r.fail(exitNotFound, err)
}

func (r *runner) open(ctx context.Context) (*gcslock.Lock, func(), error) {
	emulator, err := findEmulator(ctx, r.emulator, r.bucket)
	if err != nil {
		return nil, nil, err
	}
	if emulator != "" {
		r.tell(message{Event: eventEmulator, Text: "using the local emulator at " + emulator})
	}
	opts := emulatorOptions(emulator)
	if r.endpoint != "" {
		opts = []option.ClientOption{option.WithEndpoint(r.endpoint)}
	}
	client, err := openClient(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	r.client = client
	lock, err := gcslock.New(client.Bucket(r.bucket), r.object, r.options...)
	return lock, func() { _ = client.Close() }, err
}

// acquire waits for the lock, until a signal comes.
func (r *runner) acquire(parent context.Context, lock *gcslock.Lock, signals *signals) (*gcslock.Lease, error) {
	ctx, stop := signals.context(parent)
	acquire := lock.Acquire
	if r.limitWait && r.wait == 0 {
		acquire = lock.TryAcquire
	}
	lease, err := acquire(ctx)
	caught := stop()
	switch {
	case caught != nil && err == nil:
		// It came just as the lock was won. The command has not begun.
		err = lease.Release(ctx)
		fallthrough
	case caught != nil:
		text := fmt.Sprintf("ended by signal %v while waiting for %s", caught, r.lock)
		if err != nil && !errors.Is(err, context.Canceled) {
			text += ": " + oneLine(err)
		}
		return nil, r.fail(exitSignal+signalNumber(caught), errors.New(text))
	case err != nil:
		return nil, r.fail(lockCode(err), r.explain(parent, err))
	}
	return lease, nil
}

// finish releases the lock after the command has ended with code, or could not
// be started. A code of ours has been told.
func (r *runner) finish(ctx context.Context, lease *gcslock.Lease, code int, failed error) error {
	if failed != nil {
		_ = r.fail(exitNotExecutable, failed)
		code = exitNotExecutable
	}
	err := lease.Release(ctx)
	switch {
	case errors.Is(err, gcslock.ErrLockAbandoned):
		if !r.lossTold {
			r.tell(message{Event: eventLost, Token: lease.Token(), Text: oneLine(err)})
		}
		return codeError{exitLost}
	case err != nil:
		// The command did its work: its code stands.
		_ = r.fail(exitStorage, err)
	default:
		r.tell(message{Event: eventReleased, Token: lease.Token(), Text: "released " + r.lock})
	}
	if code == 0 {
		return nil
	}
	return codeError{code}
}

// environment is the command's.
func (r *runner) environment(lease *gcslock.Lease) []string {
	return append(append(os.Environ(), r.setting...),
		"GCSLOCK_BUCKET="+r.bucket,
		"GCSLOCK_OBJECT="+r.object,
		"GCSLOCK_TOKEN="+strconv.FormatInt(lease.Token(), 10),
		"GCSLOCK_OWNER="+r.owner)
}
