package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMarkerLines(t *testing.T) {
	// The markers are put together here, so that this file has none.
	ours, theirs := "<<<<"+"<<<", ">>>>"+">>>"
	text := "Title\n=======\n" + ours + " HEAD\na\n=======\nb\n" + theirs + "\n" + ours + "x\n"
	if got := markerLines([]byte(text)); !slices.Equal(got, []int{3, 7}) {
		t.Errorf("markers at lines %v, want 3 and 7", got)
	}
}

func TestAddedCommands(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package main
func rootCommand() *cobra.Command {
	root := &cobra.Command{Use: "tool"}
	root.AddCommand(readCommand(), writeCommand())
	return root
}
func readCommand() *cobra.Command { return &cobra.Command{Use: "read FILE [flags]"} }
func writeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "write"}
	cmd.AddCommand(partCommand())
	return cmd
}
func partCommand() *cobra.Command { return &cobra.Command{Use: "part"} }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(addedCommands([]*ast.File{f})))
	if !slices.Equal(got, []string{"read", "write"}) {
		t.Errorf("commands of the root: %v, want read and write", got)
	}
}

func TestDeadFaults(t *testing.T) {
	printed := "trace/block/key.go:26:12\tm/trace/block\tKey.String\n" +
		"trace/block/key.go:40:6\tm/trace/block\tString\n" +
		"a/a.go:3:17\tm/a\tT.Close\n"
	got, err := deadFaults(printed, "m")
	if err != nil || len(got) != 2 || got[0].where != "trace/block/key.go:40:6" || got[1].where != "a/a.go:3:17" {
		t.Errorf("%v, %v; want String and T.Close, as Key.String is kept", got, err)
	}
	if got, err := deadFaults("", "m"); err != nil || len(got) != 0 {
		t.Errorf("nothing printed gives %v, %v", got, err)
	}
	if got, err := deadFaults("a/a.go:3:17: unreachable func: T.Close\n", "m"); err == nil {
		t.Errorf("another format is taken: %v", got)
	}
}

// moduleOf loads a module of the given files.
func moduleOf(t *testing.T, files map[string]string) *module {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	m, err := loadModule(dir)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A name is needed that another package or its tests name, and so are the types in its
// declaration, their constants, and the constants declared with one that is needed.
func TestUnusedExports(t *testing.T) {
	faults, err := moduleOf(t, map[string]string{
		"a/a.go":      "package a\n\ntype Mode int\n\nconst Fast Mode = 1\n\nfunc Used(Mode) {}\n\nfunc Unused() { Inside() }\n\nfunc Inside() {}\n\nfunc Tested() {}\n\nconst (\n\tOne = 1\n\tTwo = 2\n)\n",
		"b/b.go":      "package main\n\nimport \"m/a\"\n\nfunc main() { a.Used(a.One) }\n",
		"b/b_test.go": "package main\n\nimport \"m/a\"\n\nfunc init() { a.Tested() }\n",
		"a/a_test.go": "package a_test\n\nimport \"m/a\"\n\nfunc init() { a.Unused() }\n",
		"atest/a.go":  "package atest\n\nfunc ForTests() {}\n",
		"trace/t.go":  "package trace\n\nfunc Promised() {}\n",
	}).unusedExports()
	var where []string
	for _, f := range faults {
		where = append(where, f.where)
	}
	if slices.Sort(where); err != nil || !slices.Equal(where, []string{"a/a.go:11", "a/a.go:9"}) {
		t.Errorf("%v, %v; want Unused and Inside", faults, err)
	}
}

func TestCaughtPanics(t *testing.T) {
	begin := "package a\n\nfunc f(g group, done func(), c crash) {\n"
	files := map[string]string{
		"a/a.go":              "package a\n\ntype group interface{ Go(func()) }\n\ntype crash interface{ Caught() }\n",
		"a/named.go":          begin + "\tgo done()\n}\n",
		"a/bare.go":           begin + "\tg.Go(func() { done() })\n}\n",
		"a/first.go":          begin + "\tgo func() {\n\t\tdefer c.Caught()\n\t\tdefer done()\n\t}()\n}\n",
		"a/good.go":           begin + "\tgo func() {\n\t\tdefer done()\n\t\tdefer c.Caught()\n\t\tdone()\n\t}()\n}\n",
		"a/own.go":            begin + "\tg.Go(func() {\n\t\tdefer func() { _ = recover() }()\n\t\tdone()\n\t})\n}\n",
		"examples/e/e.go":     "package e\n\nfunc f(done func()) { go done() }\n",
		"cmd/internal/c/c.go": "package c\n\nfunc f(done func()) { go done() }\n",
	}
	for name := range files {
		files[name] = strings.Replace(files[name], "func f(", "func "+strings.TrimSuffix(filepath.Base(name), ".go")+"(", 1)
	}
	faults, err := moduleOf(t, files).caughtPanics()
	var where []string
	for _, f := range faults {
		where = append(where, f.where)
	}
	if err != nil || !slices.Equal(where, []string{"a/bare.go:4", "a/first.go:4", "a/named.go:4"}) {
		t.Errorf("%v, %v; want bare, first and named", faults, err)
	}
}

func TestListedFiles(t *testing.T) {
	faults, err := moduleOf(t, map[string]string{
		"a/doc.go":        "// Package a is a.\n//\n//   - read.go: reads\n//   - lock_unix.go: locks\n//   - gone.go: was\npackage a\n",
		"a/read.go":       "package a\n",
		"a/write.go":      "package a\n",
		"a/write_test.go": "package a\n",
		"a/lock_unix.go":  "//go:build unix\n\npackage a\n",
		"a/lock_other.go": "//go:build !unix\n\npackage a\n",
		"b/b.go":          "// Package b is so small that it needs no list.\npackage b\n",
	}).listedFiles()
	if err != nil || len(faults) != 2 || !strings.Contains(faults[0].what, "gone.go") || !strings.Contains(faults[1].what, "write.go") {
		t.Errorf("%v, %v; want gone.go and write.go", faults, err)
	}
}

func TestLongFunctions(t *testing.T) {
	body := func(lines int) string { return "{\n" + strings.Repeat("\tprintln()\n", lines) + "}\n" }
	faults, err := moduleOf(t, map[string]string{
		"a/a.go": "package a\n\nfunc Just() " + body(bodyLines) + "\nfunc Beyond() " + body(bodyLines+1),
	}).longFunctions()
	if err != nil || len(faults) != 1 || faults[0].where != fmt.Sprintf("a/a.go:%d", 3+bodyLines+3) {
		t.Errorf("%v, %v; want Beyond alone", faults, err)
	}
}

func TestNeedsTag(t *testing.T) {
	for head, want := range map[string]bool{
		"//go:build clouds":          true,
		"//go:build clouds && linux": true,
		"//go:build !clouds":         false,
		"//go:build linux":           false,
		"// All clouds go:build.":    false,
	} {
		if got := needsTag(head + "\n\npackage x\n"); got != want {
			t.Errorf("%s: %t, want %t", head, got, want)
		}
	}
}
