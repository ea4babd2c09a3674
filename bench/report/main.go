// Command report runs the benchmarks and writes their tables and charts into
// docs/performance.md, between its markers. It runs at the top of the repository:
//
//	go run ./bench/report             # about a quarter of an hour
//	go run ./bench/report -in FILE    # from the output of an earlier run
//
// What is outside the markers stays. A figure that the page needs and the output
// does not have is an error, and nothing is written.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	in := flag.String("in", "", "read the `file` with the output of an earlier run instead of running the benchmarks")
	out := flag.String("out", "", "save the output of the run in this `file`")
	docs := flag.String("docs", "docs", "`directory` of performance.md, and of performance/ with the charts")
	flag.Parse()
	if flag.NArg() > 0 || *in != "" && *out != "" {
		flag.Usage()
		os.Exit(64)
	}
	if err := report(*in, *out, *docs); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(in, out, docs string) error {
	text, err := output(in, out)
	if err != nil {
		return err
	}
	r, err := parse(text)
	if err != nil {
		return err
	}
	return write(r, docs)
}

// output is what the benchmarks print, now or earlier.
func output(in, out string) (string, error) {
	if in != "" {
		text, err := os.ReadFile(in)
		return string(text), err
	}
	var also io.Writer = io.Discard
	if out != "" {
		file, err := os.Create(out)
		if err != nil {
			return "", err
		}
		defer file.Close() // a write that fails fails the run
		also = file
	}
	return measure(also)
}
