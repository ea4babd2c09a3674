package main

import "testing"

// TestMutantsApply: a mutant whose place has gone from the code is a check less,
// and is to be mended or removed. That each is caught is what the command is
// for; it takes too long for a test.
func TestMutantsApply(t *testing.T) {
	names := make(map[string]bool)
	for _, m := range mutants {
		if _, err := m.apply("../.."); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if names[m.name] {
			t.Errorf("two mutants are named %s", m.name)
		}
		names[m.name] = true
	}
	if len(names) < 25 {
		t.Errorf("%d mutants, want 25 at least", len(names))
	}
}
