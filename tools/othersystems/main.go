// Othersystems checks the types of all packages of the module above, tests included,
// for each GOOS that it is given. A build for a system would compile everything that the
// storage client brings; the types of ours need the declarations of that alone, which takes
// a tenth of the time on a machine that has compiled nothing yet.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: othersystems GOOS...")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		fail(err)
	}
	for _, system := range os.Args[1:] {
		if err := check(root, system); err != nil {
			fail(err)
		}
	}
}

func fail(reason any) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(1)
}

// check prints what is wrong with the packages on the system.
func check(root, system string) error {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:   root,
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(set *token.FileSet, name string, source []byte) (*ast.File, error) {
			return parse(set, name, source, strings.HasPrefix(name, root+string(filepath.Separator)))
		},
	}, "./...")
	if err != nil {
		return fmt.Errorf("%s: %w", system, err)
	}
	if len(loaded) == 0 {
		return fmt.Errorf("%s: no packages in %s", system, root)
	}
	wrong := 0
	for _, p := range loaded {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue // the main package that the go command makes for tests
		}
		for _, e := range p.Errors {
			wrong++
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, e)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d errors", system, wrong)
	}
	fmt.Printf("%s: %d packages and tests\n", system, len(loaded))
	return nil
}

// parse leaves the bodies out of functions that are not ours. What that makes wrong, such
// as imports that are unused, are errors of packages that check does not look at.
func parse(set *token.FileSet, name string, source []byte, whole bool) (*ast.File, error) {
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || whole {
		return file, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
	return file, nil
}
