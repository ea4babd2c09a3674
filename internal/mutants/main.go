// Command mutants breaks the protocol on purpose, in one way after the other,
// and tells what notices: the simulator, or the root package's tests; for package
// fenced its own schedules and tests. One that nothing notices is a missing fault or
// a missing check, and a failure.
//
//	go run ./internal/mutants
//
// The broken files exist only in a temporary folder, which the go command lays
// over the module.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	schedules := flag.Int("schedules", 3000, "how many schedules each one has to survive")
	only := flag.String("only", "", "run those whose name contains this")
	skip := flag.Int("skip", 0, "leave out so many of the table's first")
	flag.Parse()
	survivors := 0
	fmt.Println("| mutant | caught by | after |")
	fmt.Println("|---|---|---|")
	for _, m := range mutants[*skip:] {
		if !strings.Contains(m.name, *only) {
			continue
		}
		by, after, err := m.run(*schedules)
		if err != nil {
			fmt.Fprintf(os.Stderr, "mutants: %s: %v\n", m.name, err)
			survivors++
			continue
		}
		if by == "" {
			by = "**nothing**"
			survivors++
		}
		fmt.Printf("| %s | %s | %s |\n", m.name, by, after)
	}
	if survivors > 0 {
		fmt.Fprintf(os.Stderr, "mutants: %d survived, or could not be tried\n", survivors)
		os.Exit(1)
	}
}

// A mutant is one replacement in one file of the root package or of package fenced.
type mutant struct{ name, file, old, new string }

// apply is the file's text with the replacement. The old text must be there
// once, so that a mutant does not outlive the code that it breaks.
func (m mutant) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s has the text to replace %d times, want once: %q", m.file, n, m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

var (
	finished  = regexp.MustCompile(`(\d+) schedules in`)
	violation = regexp.MustCompile(`VIOLATED (.*)`)
	testName  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	// failedSeed is what TestSchedules of package fenced says; its seeds begin at 1.
	failedSeed = regexp.MustCompile(`seed (\d+): (?:after [^:]*: )?(.*?)(?: has this history)?:?\n`)
	digits     = regexp.MustCompile(`\d+[\d.msµ]*`)
)

// run tells what caught the mutant.
func (m mutant) run(schedules int) (by, after string, err error) {
	text, err := m.apply(".")
	if err != nil {
		return "", "", err
	}
	overlay, remove, err := layOver(m.file, text)
	if err != nil {
		return "", "", err
	}
	defer remove()
	dir := filepath.Dir(overlay)
	if filepath.Dir(m.file) == "fenced" {
		return runFenced(overlay, schedules/fencedShare)
	}
	simulator := filepath.Join(dir, "simulate")
	if err := compile("build", "-overlay", overlay, "-o", simulator, "./internal/simulate"); err != nil {
		return "", "", err
	}
	if by, after := simulated(simulator, schedules); by != "" {
		return "simulator: " + by, after, nil
	}
	// The storage client is in no other schedules.
	if by, after := simulated(simulator, schedules/realShare, "-real"); by != "" {
		return "simulator, through the client: " + by, after, nil
	}
	if err := compile("test", "-c", "-overlay", overlay, "-o", filepath.Join(dir, "tests"), "."); err != nil {
		return "", "", err
	}
	said, _ := tested(filepath.Join(dir, "tests"))
	return said, fmt.Sprintf("%d schedules and the tests", schedules), nil
}

// runFenced is run for package fenced.
func runFenced(overlay string, schedules int) (by, after string, err error) {
	tests := filepath.Join(filepath.Dir(overlay), "tests")
	if err := compile("test", "-c", "-overlay", overlay, "-o", tests, "./fenced"); err != nil {
		return "", "", err
	}
	said, out := tested(tests, "-test.run", "^TestSchedules$", "-schedules", fmt.Sprint(schedules))
	if seed := failedSeed.FindSubmatch(out); said != "" && seed != nil {
		return "schedules: " + digits.ReplaceAllString(string(seed[2]), "…"), string(seed[1]) + " schedules", nil
	}
	if said == "" {
		said, _ = tested(tests, "-schedules", "0")
	}
	return said, fmt.Sprintf("%d schedules and the tests", schedules), nil
}

// tested tells which test failed, nothing if none did.
func tested(binary string, args ...string) (said string, out []byte) {
	args = append([]string{"-k", "5", "180", binary, "-test.failfast", "-test.timeout", "170s"}, args...)
	out, err := exec.Command("timeout", args...).CombinedOutput()
	if err == nil {
		return "", out
	}
	if name := testName.FindSubmatch(out); name != nil {
		return "`" + string(name[1]) + "`", out
	}
	return "tests: they hang or panic", out
}

// How much rarer schedules through the client are than others, and those of package
// fenced.
const (
	realShare   = 20
	fencedShare = 10
)

// simulated tells what the simulator said of it, and after how many schedules:
// nothing if it noticed nothing.
func simulated(simulator string, schedules int, args ...string) (said, after string) {
	args = append(args, "-schedules", fmt.Sprint(schedules))
	// A mutant may hang or spin for ever; both count as noticed.
	out, err := exec.Command("timeout", append([]string{"-k", "5", "240", simulator}, args...)...).CombinedOutput()
	if err == nil {
		return "", ""
	}
	said = "it hangs"
	if v := violation.FindSubmatch(out); v != nil {
		said = digits.ReplaceAllString(string(v[1]), "…")
	}
	if n := finished.FindSubmatch(out); n != nil {
		after = string(n[1]) + " schedules"
	}
	return said, after
}

// compile runs the go command; without symbols, which takes half the time.
func compile(args ...string) error {
	args = append([]string{args[0], "-ldflags=-s -w"}, args[1:]...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("does not compile: %s", out)
	}
	return nil
}

// layOver writes the text where the go command takes it for the file.
func layOver(file string, text []byte) (overlay string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	broken := filepath.Join(dir, filepath.Base(file))
	original, err := filepath.Abs(file)
	if err != nil {
		return "", remove, err
	}
	index, err := json.Marshal(map[string]map[string]string{"Replace": {original: broken}})
	if err != nil {
		return "", remove, err
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(broken, text, 0o600); err != nil {
		return "", remove, err
	}
	return overlay, remove, os.WriteFile(overlay, index, 0o600)
}
