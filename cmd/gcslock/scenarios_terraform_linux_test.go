package main

import (
	"slices"
	"strings"
	"syscall"

	"github.com/gcslock/gcslock/gcstest"
)

// apply is a command line for a site with a state.
var apply = []string{"terraform", stateTarget, "--", "terraform", "apply"}

// terraformScenarios are gcslock terraform's.
func terraformScenarios(all map[string]scenario) {
	for name, sig := range map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGHUP": syscall.SIGHUP} {
		all["signal "+name+": terraform"] = interruptsTerraform(sig)
	}
	all["signal SIGKILL: terraform"] = killed("terraform")
	all["signal sent SIGINT: terraform"] = lostTerraform
	all["signal sent SIGKILL: terraform"] = cutOffTerraform
	for name, value := range map[string]string{"BUCKET": "jobs", "OBJECT": stateLock, "OWNER": "jo", "TOKEN": ""} {
		all["variable set GCSLOCK_"+name+": terraform"] = setsVariable("terraform", value)
	}
	terraformExits(all)
	terraformVariables(all)
}

// terraformExits are those of exit codes.
func terraformExits(all map[string]scenario) {
	exits := func(code string, prepare func(*site), args ...string) {
		all[kindExit+" "+code+": terraform"] = func(s *site, which string) {
			s.addState("")
			prepare(s)
			got, _, stderr := s.run(args...)
			s.isCode(got, which, stderr)
		}
	}
	nothing := func(*site) {}
	exits("0", nothing, apply...)
	exits("69", func(s *site) { s.server.Delete("jobs", stateObject) }, apply...)
	exits("70", func(s *site) {
		s.server.Inject(gcstest.Fault{Op: gcstest.Delete, Times: 1, Do: gcstest.FailStatus(404)})
	}, apply...)
	exits("75", func(s *site) { s.plainLock(plainInfo) }, slices.Insert(slices.Clone(apply), 1, "--wait", "0")...)
	exits("126", nothing, "terraform", stateTarget, "--", "/dev/null", "apply")
	exits("127", nothing, "terraform", stateTarget, "--", "no-such-terraform", "apply")
	all[kindExit+" 128+n: terraform"] = func(s *site, which string) {
		s.addState("kill -TERM $$")
		s.diesOfSignals(which, func() { s.plainLock(plainInfo) }, apply...)
	}
}

// terraformVariables are those of the environment.
func terraformVariables(all map[string]scenario) {
	all["variable TF_WORKSPACE: terraform"] = func(s *site, which string) {
		s.addState("")
		s.server.Put("jobs", "team/app/stage.tfstate", gcstest.Object{})
		s.env = append(s.env, which+"=stage")
		if code, _, stderr := s.run(apply...); code != 0 || !strings.Contains(stderr, "acquired gs://jobs/team/app/stage.tflock,") {
			s.Errorf("exit code %d, stderr %q", code, stderr)
		}
	}
	all["variable set TF_WORKSPACE: terraform"] = setsVariable("terraform", "default")
	// In the next two the command is apply.
	both := func(s *site, _ string) {
		s.addState(`printf %s "$TF_CLI_ARGS_apply"`)
		s.env = append(s.env, "TF_CLI_ARGS_apply=-parallelism=2")
		if _, stdout, stderr := s.run(apply...); stdout != "-parallelism=2 -lock=false" {
			s.Errorf("stdout %q, stderr %q", stdout, stderr)
		}
	}
	all["variable TF_CLI_ARGS_<command>: terraform"] = both
	all["variable set TF_CLI_ARGS_<command>: terraform"] = both
	refused := func(value, says string) scenario {
		return func(s *site, which string) {
			s.addState("")
			s.env = append(s.env, which+"="+value)
			if code, _, stderr := s.run(apply...); code != exitUsage || !strings.Contains(stderr, says) {
				s.Errorf("exit code %d, stderr %q", code, stderr)
			}
		}
	}
	all["variable TF_CLI_ARGS: terraform"] = refused("-lock", "-lock in TF_CLI_ARGS can't be had")
	all["variable TF_DATA_DIR: terraform"] = refused("none", "there is no none/terraform.tfstate")
	for _, name := range []string{"GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT", "GOOGLE_STORAGE_CUSTOM_ENDPOINT"} {
		all["variable "+name+": terraform"] = func(s *site, which string) {
			s.addState("echo ran")
			s.env = append(s.env, which+"="+s.endpoint())
			s.ranAtEndpoint()
		}
	}
}
