package terraform

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line, name, operation, chdir string
	}{
		{"terraform apply -auto-approve", "apply", "OperationTypeApply", ""},
		{"/opt/bin/tofu destroy", "destroy", "OperationTypeApply", ""},
		{"terraform -chdir=network plan -out=p", "plan", "OperationTypePlan", "network"},
		{"terraform -chdir=a -chdir=b refresh", "refresh", "OperationTypeRefresh", "b"},
		{"terraform plan -chdir=network", "plan", "OperationTypePlan", ""}, // Terraform refuses it there
		{"terraform -chdir=network state mv a b", "state mv", "state-mv", "network"},
		{"tofu state move a b", "state move", "state-mv", ""},
		{"terraform state rm a", "state rm", "state-rm", ""},
		{"tofu state remove a", "state remove", "state-rm", ""},
		{"terraform state push f", "state push", "state-push", ""},
		{"terraform state replace-provider a b", "state replace-provider", "state-replace-provider", ""},
		{"terraform import a b", "import", "import", ""},
		{"terraform taint a", "taint", "taint", ""},
		{"terraform untaint a", "untaint", "untaint", ""},

		{"terraform", "", "", ""},
		{"terraform -version", "", "", ""},
		{"terraform state -x mv", "state", "", ""}, // no subcommand to Terraform, either
		{"terraform state list", "state", "", ""},
		{"terraform state", "state", "", ""},
		{"terraform init", "init", "", ""},
		{"terraform workspace new apply", "workspace", "", ""},
		{"terraform console", "console", "", ""},
		{"terraform force-unlock 1", "force-unlock", "", ""},
		{"terraform output apply", "output", "", ""},
		{"terraform apply -help", "apply", "", ""},
		{"terraform -help apply", "apply", "", ""},
		{"terraform apply --version", "apply", "", ""},
	} {
		c := Parse(strings.Fields(tt.line))
		operation, locks := c.Operation()
		if c.Name != tt.name || operation != tt.operation || locks != (tt.operation != "") || c.chdir != tt.chdir {
			t.Errorf("%s: name %q, operation %q, locks %v, in %q", tt.line, c.Name, operation, locks, c.chdir)
		}
	}
}

// TestString: the arguments may be secret.
func TestString(t *testing.T) {
	for line, want := range map[string]string{
		"/opt/bin/terraform -chdir=x state mv a b": "terraform state mv",
		"tofu apply -var password=p":               "tofu apply",
		"terraform":                                "terraform",
	} {
		if got := Parse(strings.Fields(line)).String(); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestForceUnlock(t *testing.T) {
	if got := Parse(strings.Fields("/opt/bin/tofu -chdir=x apply")).ForceUnlock(17); got != "tofu -chdir=x force-unlock 17" {
		t.Error(got)
	}
}

func TestCheckLockFlag(t *testing.T) {
	for _, tt := range []struct {
		line, environment string
		refused           string
	}{
		{"terraform apply", "", ""},
		{"terraform apply -lock=false", "", ""},
		{"terraform apply -lock=0 --lock=F", "", ""},
		{"terraform apply -lock-timeout=5m", "-lock-timeout=1m", ""},
		{"terraform apply -lock=sure", "", ""}, // Terraform says what is wrong
		{"terraform apply -lock", "", "-lock"},
		{"terraform apply --lock", "", "--lock"},
		{"terraform apply -lock=true", "", "-lock=true"},
		{"terraform apply -no-color --lock=1", "", "--lock=1"},
		{"terraform apply", "-no-color -lock=true", "-lock=true in TF_CLI_ARGS"},
		{"terraform apply", `"-lock=true"`, "-lock=true in TF_CLI_ARGS"},
		{"terraform apply", "-lock=false", ""},
	} {
		err := Parse(strings.Fields(tt.line)).CheckLockFlag(func(name string) string {
			return map[string]string{"TF_CLI_ARGS": tt.environment, "TF_CLI_ARGS_apply": "-lock=true"}[name] // ours wins over the second
		})
		if (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), "terraform apply: "+tt.refused+" can't be had") {
			t.Errorf("%s with %q: %v", tt.line, tt.environment, err)
		}
	}
}

func TestUnlocked(t *testing.T) {
	for _, tt := range []struct{ line, set, want string }{
		{"terraform apply", "", "TF_CLI_ARGS_apply=-lock=false"},
		{"terraform apply", "-parallelism=2 -lock=true", "TF_CLI_ARGS_apply=-parallelism=2 -lock=true -lock=false"},
		{"terraform state replace-provider a b", "", "TF_CLI_ARGS_state_replace_provider=-lock=false"},
	} {
		name, _, _ := strings.Cut(tt.want, "=")
		got := Parse(strings.Fields(tt.line)).Unlocked(func(asked string) string {
			if asked != name {
				t.Errorf("%s: asked for %s", tt.line, asked)
			}
			return tt.set
		})
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
}
