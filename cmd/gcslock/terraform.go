package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/spf13/cobra"

	"github.com/gcslock/gcslock"
	"github.com/gcslock/gcslock/cmd/gcslock/internal/terraform"
	"github.com/gcslock/gcslock/internal/inside"
	"github.com/gcslock/gcslock/internal/shell"
)

const (
	// terraformTTL is longer than that of other locks, because a tenth of it is
	// what Terraform has to save its state once its lease has run out. Terraform's
	// own lock never expires, so nobody is used to a short one.
	terraformTTL = 5 * time.Minute

	// terraformGrace is what the default ttl allows, and a little less.
	terraformGrace = 20 * time.Second
)

// refreshInterval is the library's default for the ttl, or 20 seconds: it is how
// long a holder does not know of a force-unlock.
func refreshInterval(ttl time.Duration) time.Duration { return min(ttl/3, 20*time.Second) }

// A terraformRun is one call of gcslock terraform.
type terraformRun struct {
	*runner
	parsed    terraform.Command
	workspace string
	chosen    bool // workspace is set
}

const terraformHelp = `Holds the lock object of Terraform's gcs backend, PREFIX/WORKSPACE.tflock, while
the command runs, and switches the command's own locking of that state off, by
-lock=false in TF_CLI_ARGS_apply and the like. Plain terraform is kept out
meanwhile, and keeps us out; its own locks are never taken over. If gcslock is
killed, the next one has the lock when the ttl is over.

This is for apply, destroy, plan, refresh, import, taint, untaint and state mv,
rm, push and replace-provider. All other commands run as they are, and gcslock
sends no request for them. BUCKET and PREFIX have to be those of the backend that
terraform init has set up, and the workspace has to have a state (else exit code
69): Terraform takes the lock for itself to create one.

SIGINT, SIGTERM and SIGHUP are passed on as SIGINT: Terraform stops, saves its
state and ends. At a second one it would not wait for what it was doing, so that
after the first only SIGINT is passed on. If the lease is lost, Terraform gets
SIGINT at once, unless it had one, and SIGKILL after the grace, or earlier, before
others can have the lock. If gcslock itself is killed, Terraform is, too (on
Linux).

Credentials are Application Default Credentials; STORAGE_EMULATOR_HOST names an
emulator instead. They need storage.objects.create, get, update, delete and list,
as in roles/storage.objectUser; without list a free lock may look forbidden.`

func newTerraform() *cobra.Command {
	t := &terraformRun{runner: &runner{teller: &teller{}, interrupts: true}}
	cmd := &cobra.Command{
		Use:   "terraform [flags] gs://BUCKET/PREFIX -- terraform COMMAND ARG...",
		Short: "Run Terraform or OpenTofu under a state lock that frees itself",
		Long:  terraformHelp + "\n\n" + jsonHelp + "\n\n" + exitCodeTable,
		Example: `  gcslock terraform --wait 30m gs://states/network -- terraform apply -input=false plan.out
  gcslock terraform --workspace prod gs://states/network -- tofu plan`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.out = cmd.ErrOrStderr()
			t.limitWait = cmd.Flags().Changed("wait")
			t.chosen = cmd.Flags().Changed("workspace")
			locks, err := t.parse(args, cmd.ArgsLenAtDash())
			if err != nil {
				return usageError{err}
			}
			if !locks {
				return t.asIs()
			}
			if err := t.describe(cmd.Context()); err != nil {
				return err
			}
			return t.run(cmd.Context())
		},
	}
	t.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&t.workspace, "workspace", "", "workspace (default: TF_WORKSPACE, or the one that is selected)")
	flags.DurationVar(&t.ttl, "ttl", terraformTTL, "how long the lock outlives a crash, 3s to 24h")
	flags.StringVar(&t.operation, "operation", "", "what the lock is held for, for people (default: the command, without its arguments)")
	flags.DurationVar(&t.grace, "grace", terraformGrace, "from SIGINT to SIGKILL when the lease is lost, at most about a tenth of the ttl")
	return cmd
}

// parse checks the command line against itself, the environment and the
// directory that terraform is about to work in. locks tells whether the command
// locks the state; for others there is little to check.
func (t *terraformRun) parse(args []string, dash int) (locks bool, err error) {
	if dash != 1 || len(args) < 2 {
		return false, errors.New("want gs://BUCKET/PREFIX -- terraform COMMAND ARG...; see gcslock terraform --help")
	}
	var state terraform.State
	if state.Bucket, state.Prefix, err = parsePrefix(args[0]); err != nil {
		return false, err
	}
	t.command = args[1:]
	t.parsed = terraform.Parse(t.command)
	if err := t.checkWorkspace(); err != nil {
		return false, err
	}
	if _, locks = t.parsed.Operation(); !locks {
		return false, nil
	}
	state.Workspace = t.workspace
	if !t.chosen {
		if state.Workspace, err = t.parsed.Workspace(os.Getenv); err != nil {
			return false, err
		}
	}
	t.bucket, t.object = state.Bucket, state.Lock()
	t.operation = cmp.Or(t.operation, t.parsed.String())
	t.options = append(t.options, gcslock.WithRefreshInterval(refreshInterval(t.ttl)))
	if err := t.configure(); err != nil {
		return false, err
	}
	return true, t.check(state)
}

// checkWorkspace refuses a --workspace that is none, or that the environment
// contradicts: one of the two is a mistake.
func (t *terraformRun) checkWorkspace() error {
	if !t.chosen {
		return nil
	}
	if set := os.Getenv("TF_WORKSPACE"); set != "" && set != t.workspace {
		return fmt.Errorf("--workspace %s, but TF_WORKSPACE is %s", t.workspace, set)
	}
	return terraform.CheckWorkspace(t.workspace)
}

// check refuses a command that the lock would not protect, and has the others
// run in the state's workspace, without their own locking.
func (t *terraformRun) check(state terraform.State) error {
	if err := t.parsed.CheckLockFlag(os.Getenv); err != nil {
		return err
	}
	endpoint, err := t.parsed.CheckBackend(state, os.Getenv)
	if err != nil {
		return err
	}
	if err := t.parsed.CheckPlan(state); err != nil {
		return err
	}
	t.setting = []string{"TF_WORKSPACE=" + state.Workspace, t.parsed.Unlocked(os.Getenv)}
	t.ready = func(ctx context.Context) error { return t.findState(ctx, state) }
	return t.chooseEndpoint(cmp.Or(endpoint,
		os.Getenv("GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"), os.Getenv("GOOGLE_STORAGE_CUSTOM_ENDPOINT")))
}

// chooseEndpoint has our requests go where the backend's go.
func (t *terraformRun) chooseEndpoint(backend string) error {
	emulator := os.Getenv("STORAGE_EMULATOR_HOST")
	switch {
	case backend == "":
	case emulator == "":
		t.endpoint = backend
	case host(backend) != host(emulator):
		return fmt.Errorf("the backend's storage_custom_endpoint is %s, but STORAGE_EMULATOR_HOST is %s: the lock would be somewhere else", backend, emulator)
	}
	return nil
}

// host is a URL's host and port.
func host(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// asIs runs a command that does not lock the state.
func (t *terraformRun) asIs() error {
	if err := t.lookUp(); err != nil {
		return err
	}
	if t.chosen {
		if err := os.Setenv("TF_WORKSPACE", t.workspace); err != nil {
			return t.fail(exitNotExecutable, err)
		}
	}
	code, err := become(t.path, t.command, os.Environ())
	switch {
	case err != nil:
		return t.fail(exitNotExecutable, err)
	case code != 0:
		return codeError{code}
	}
	return nil
}

// findStateLimit is for one small request.
const findStateLimit = 10 * time.Second

// findState refuses a workspace that has no state yet. Terraform locks the state
// to create it, also with -lock=false, and would be kept out by us. What else
// goes wrong here is Terraform's to meet, and to tell.
func (t *terraformRun) findState(ctx context.Context, state terraform.State) error {
	ctx, cancel := context.WithTimeout(ctx, findStateLimit)
	defer cancel()
	_, err := t.client.Bucket(state.Bucket).Object(state.Object()).Attrs(ctx)
	if !errors.Is(err, storage.ErrObjectNotExist) {
		return nil
	}
	create := "init"
	if state.Workspace != "default" {
		create = "workspace new " + state.Workspace
	}
	program := shell.Word(filepath.Base(t.parsed.Program))
	return fmt.Errorf("%s does not exist yet, and %s needs the lock for itself to create it: run %s %s first",
		inside.URL(state.Bucket, state.Object()), program, program, create)
}
