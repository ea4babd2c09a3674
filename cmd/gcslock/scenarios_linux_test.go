package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gcslock/gcslock/gcstest"
)

// scenarios are those of all lines of docs/cli.md's table, by kind, which and
// command.
func scenarios() map[string]scenario {
	all := map[string]scenario{
		"signal SIGINT: run":  passesOn(syscall.SIGINT),
		"signal SIGTERM: run": passesOn(syscall.SIGTERM),
		"signal SIGHUP: run":  passesOn(syscall.SIGHUP),
		"signal SIGKILL: run": killed("run"),

		"signal SIGINT: emulator":  endsEmulator(syscall.SIGINT),
		"signal SIGTERM: emulator": endsEmulator(syscall.SIGTERM),
		"signal SIGHUP: emulator":  endsEmulator(syscall.SIGHUP),

		"signal sent SIGTERM: run": lost(`trap "echo stopped; exit 0" TERM; `, "stopped"),
		"signal sent SIGKILL: run": lost(`trap "" TERM; `, ""),
	}
	exitScenarios(all)
	lookScenarios(all)
	checkScenarios(all)
	terraformScenarios(all)
	for name, value := range map[string]string{"BUCKET": "jobs", "OBJECT": "lock", "OWNER": "jo", "TOKEN": ""} {
		all["variable set GCSLOCK_"+name+": run"] = setsVariable("run", value)
	}
	emulator := func(command string, env []string, says string) scenario {
		return func(s *site, _ string) { s.usesEmulator(command, env, says) }
	}
	for _, command := range append([]string{"run", "terraform", "check"}, lookCommands...) {
		all["variable STORAGE_EMULATOR_HOST: "+command] = func(s *site, _ string) {
			s.start(s.anyArgs(command)...)
			s.untilRequested()
		}
		all["variable GOOGLE_APPLICATION_CREDENTIALS: "+command] = readsCredentials(command)
		if command == "terraform" {
			continue // which has no --emulator
		}
		all["variable XDG_RUNTIME_DIR: "+command] = emulator(command, []string{"XDG_RUNTIME_DIR=HERE", idleVariable + "=15s"}, "gcslock/emulator.json")
		all["variable TMPDIR: "+command] = emulator(command, []string{"XDG_RUNTIME_DIR=", "TMPDIR=HERE", idleVariable + "=15s"}, "gcslock-*/emulator.json")
		all["variable GCSLOCK_EMULATOR_IDLE: "+command] = emulator(command, []string{"XDG_RUNTIME_DIR=HERE", idleVariable + "=soon"}, "")
	}
	return all
}

// exitScenarios are those of exit codes.
func exitScenarios(all map[string]scenario) {
	nothing := func(*site) {}
	forbidden := func(s *site) { s.server.Inject(gcstest.Fault{Do: gcstest.FailStatus(403)}) }
	held := func(s *site) { s.rival("somebody") }
	exits := func(code, command string, prepare func(*site), args ...string) {
		all[kindExit+" "+code+": "+command] = func(s *site, which string) {
			prepare(s)
			got, _, stderr := s.run(append([]string{command}, args...)...)
			s.isCode(got, which, stderr)
		}
	}
	for _, command := range []string{"run", "terraform", "check", "status", "list", "watch", "break", "emulator", "man", "version"} {
		exits("64", command, nothing, "--bogus")
	}
	exits("0", "run", nothing, target, "--", "true")
	exits("0", "status", held, target)
	exits("0", "list", nothing, "gs://jobs")
	exits("0", "break", nothing, target, "--id", "1")
	exits("0", "version", nothing)
	exits("0", "check", nothing, target)
	exits("69", "check", nothing, "gs://nowhere/lock")
	exits("78", "check", forbid("storage.objects.create"), target)
	all[kindExit+" 0: man"] = func(s *site, which string) {
		code, _, stderr := s.run("man", s.TempDir())
		s.isCode(code, which, stderr)
	}
	all[kindExit+" 0: emulator"] = endsEmulator(syscall.SIGTERM)
	exits("3", "status", nothing, target)
	exits("69", "run", forbidden, target, "--", "true")
	exits("69", "status", forbidden, target)
	exits("69", "list", forbidden, "gs://jobs")
	exits("69", "watch", forbidden, target)
	exits("69", "break", forbidden, target, "--id", "1")
	exits("70", "run", func(s *site) {
		s.server.Inject(gcstest.Fault{Op: gcstest.Delete, Times: 1, Do: gcstest.FailStatus(404)})
	}, target, "--", "true")
	exits("75", "run", held, "--wait", "0", target, "--", "true")
	exits("75", "break", held, target, "--id", "1")
	exits("126", "run", nothing, target, "--", "/dev/null")
	exits("127", "run", nothing, target, "--", "no-such-command")
	all[kindExit+" 128+n: run"] = func(s *site, which string) {
		s.diesOfSignals(which, func() { s.rival("somebody") }, "run", target, "--", "sh", "-c", "kill -TERM $$")
	}

	all[kindExit+" 74: man"] = func(s *site, which string) {
		code, _, stderr := s.run("man", "/dev/null/directory")
		s.isCode(code, which, stderr)
	}
	for command, args := range map[string][]string{"version": {"version"}, "emulator": {"emulator"}} {
		all[kindExit+" 74: "+command] = func(s *site, which string) { s.fillsDisk(which, args) }
	}
	for _, command := range lookCommands {
		all[kindExit+" 74: "+command] = func(s *site, which string) { s.fillsDisk(which, s.lookArgs(command, stale)) }
	}
}

// lookScenarios are those that the commands share that look at locks.
func lookScenarios(all map[string]scenario) {
	for _, command := range lookCommands {
		for name, sig := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
			all["signal "+name+": "+command] = func(s *site, _ string) { s.diesOf(sig, command) }
		}
		colourScenarios(all, command)
	}
}

// checkScenarios are check's.
func checkScenarios(all map[string]scenario) {
	for name, sig := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
		all["signal "+name+": check"] = interruptsCheck(sig)
	}
	all[kindExit+" 128+n: check"] = interruptsCheck(syscall.SIGTERM)
	all[kindExit+" 74: check"] = func(s *site, which string) { s.fillsDisk(which, []string{"check", target}) }
	colourScenarios(all, "check")
}

// colourScenarios are for those who want none.
func colourScenarios(all map[string]scenario, command string) {
	for _, setting := range []string{"NO_COLOR=1", "TERM=dumb"} {
		name, _, _ := strings.Cut(setting, "=")
		all["variable "+name+": "+command] = func(s *site, _ string) {
			if shown := s.onTerminal(nil, s.lookArgs(command, stale)...); !strings.Contains(shown, "\x1b") {
				s.Errorf("no colour without it: %q", shown)
			}
			if shown := s.onTerminal([]string{setting}, s.lookArgs(command, stale)...); strings.Contains(shown, "\x1b") {
				s.Errorf("colour: %q", shown)
			}
		}
	}
}

// isCode compares an exit code with that of the table's line.
func (s *site) isCode(got int, which, stderr string) {
	s.Helper()
	if text := fmt.Sprint(got); text != which {
		s.Errorf("exit code %s, stderr %q; docs/cli.md says %s", text, stderr, which)
	}
}

// untilRequested waits for a request.
func (s *site) untilRequested() {
	for end := time.Now().Add(time.Minute); s.ops() == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatal("no request")
		}
	}
}

// anyArgs have the command send requests.
func (s *site) anyArgs(command string) []string {
	switch command {
	case "run":
		return []string{"run", target, "--", "true"}
	case "terraform":
		s.addState("")
		return apply
	}
	return s.lookArgs(command, free)
}

// fillsDisk runs a command whose output no longer finds room.
func (s *site) fillsDisk(which string, args []string) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		s.Fatal(err)
	}
	defer full.Close()
	var stderr strings.Builder
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = full, &stderr
	s.isCode(s.code(cmd.Run()), which, stderr.String())
	if !strings.Contains(stderr.String(), "no space left") {
		s.Errorf("told %q", stderr.String())
	}
}

// diesOf sends a signal to a command that waits for an answer.
func (s *site) diesOf(sig syscall.Signal, command string) {
	if signal.Ignored(sig) {
		s.Skipf("%v is ignored here, as under nohup, and so it is in what is started", sig)
	}
	args := s.lookArgs(command, stale)
	s.server.Inject(gcstest.Fault{Do: gcstest.Hang()})
	p := s.start(args...)
	s.untilRequested()
	p.signal(sig)
	_ = p.cmd.Wait() // what it says is in the state
	if n, ok := killedBy(p.cmd.ProcessState); !ok || n != int(sig) {
		s.Errorf("ended with %v", p.cmd.ProcessState)
	}
}

func endsEmulator(sig syscall.Signal) scenario {
	return func(s *site, _ string) {
		p := s.start("emulator")
		p.stdout.until(announcement)
		p.signal(sig)
		if code := p.wait(); code != 0 {
			s.Errorf("exit code %d", code)
		}
	}
}

// diesOfSignals has the command die of SIGTERM, which args do, and gcslock get one
// while it waits for the lock, which hold takes.
func (s *site) diesOfSignals(which string, hold func(), args ...string) {
	code, _, _ := s.run(args...)
	s.isCode(code, strings.Replace(which, "128+n", "143", 1), "")
	hold()
	p := s.start(args...)
	p.stderr.until("waiting")
	p.signal(syscall.SIGINT)
	s.isCode(p.wait(), strings.Replace(which, "128+n", "130", 1), "")
}

func setsVariable(command, value string) scenario {
	return func(s *site, which string) {
		script := `printf %s "$` + which + `"`
		args := []string{"run", "--owner", "jo", target, "--", "sh", "-c", script}
		if command == "terraform" {
			s.addState(script)
			args = slices.Insert(slices.Clone(apply), 1, "--owner", "jo")
		}
		_, stdout, _ := s.run(args...)
		if which == "GCSLOCK_TOKEN" {
			// The delete names the object's generation.
			requests := s.server.Requests()
			value = generationText(requests[len(requests)-1].Generation)
		}
		if stdout != value {
			s.Errorf("%s is %q, want %q", which, stdout, value)
		}
	}
}

func readsCredentials(command string) scenario {
	return func(s *site, which string) {
		file := filepath.Join(s.TempDir(), "credentials.json")
		args := s.anyArgs(command)
		s.env = append(s.env, "STORAGE_EMULATOR_HOST=", which+"="+file)
		if code, _, stderr := s.run(args...); code != exitStorage || !strings.Contains(stderr, file) {
			s.Errorf("exit code %d, stderr %q", code, stderr)
		}
	}
}

// usesEmulator runs the command with an emulator, whose state is then where the
// pattern says; "": the emulator does not start.
func (s *site) usesEmulator(command string, env []string, pattern string) {
	directory := s.TempDir()
	args := slices.Insert(s.anyArgs(command), 1, "--emulator")
	s.env = nil
	for _, setting := range env {
		s.env = append(s.env, strings.Replace(setting, "HERE", directory, 1))
	}
	if pattern == "" {
		if code, _, stderr := s.run(args...); code != exitStorage || !strings.Contains(stderr, "the emulator did not start") {
			s.Errorf("exit code %d, stderr %q", code, stderr)
		}
		return
	}
	p := s.start(args...)
	if command == "watch" {
		p.stdout.until("free")
		_ = p.cmd.Process.Kill() // it would go on, and keep the emulator
	}
	_ = p.cmd.Wait() // free is 3, and watch was killed
	if files, err := filepath.Glob(filepath.Join(directory, pattern)); err != nil || len(files) != 1 {
		s.Errorf("%q, %v; stderr %q", files, err, p.stderr.rest())
	}
}
