package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.file.Close()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	watched := newHolder(f)
	wantHolder := func(want string) {
		t.Helper()
		if got, err := watched.find(); err != nil || got != want {
			t.Errorf("holder %q, %v, want %q", got, err, want)
		}
	}

	halves := func(first, second string) {
		t.Helper()
		before, _ := watched.find()
		for _, half := range []string{first, second} {
			wantHolder(before)
			if _, err := j.file.WriteString(half); err != nil {
				t.Fatal(err)
			}
		}
	}

	wantHolder("")
	lines := []line{
		{1, begins, "1/1", 1600000000000001, 5, ""},
		{2, wrong, "1/1", 0, 0, "two\nlines, of me@home"},
		{3, ends, "1/1", 1600000000000001, 5, ""},
	}
	j.write(lines[0])
	wantHolder("1/1")
	j.write(lines[1])
	wantHolder("1/1")
	j.write(lines[2])
	wantHolder("")
	if _, err := j.file.WriteString("@4 begin 2/"); err != nil { // by one that is killed
		t.Fatal(err)
	}
	wantHolder("")
	j.write(line{5, begins, "3/1", 2, 9, ""})
	wantHolder("3/1")
	halves("@6 begin 4", "/1 3 9 \n") // as a reader may find them
	wantHolder("4/1")

	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	got, torn, err := parse(f)
	if err != nil || torn != 1 {
		t.Errorf("%d torn, %v, want 1", torn, err)
	}
	lines[1].text = "two; lines, of me(at)home"
	if want := append(lines, line{5, begins, "3/1", 2, 9, ""}, line{6, begins, "4/1", 3, 9, ""}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
