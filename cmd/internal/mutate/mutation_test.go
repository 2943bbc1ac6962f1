package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every mutation of a file changes what it says it changes, and leaves a file that
// parses.
func TestMutationsIn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.go")
	src := `package x

func f(a, b int) (err error) {
	if a < b && b != 7 {
		a += 1
		g()
		a = b
	}
	return err
}
`
	if err := os.WriteFile(name, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := mutationsIn("x", name)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range list {
		said = append(said, m.what)
		mutant := src[:m.begin] + m.text + src[m.end:]
		if mutant == src {
			t.Errorf("%s: nothing changed", m.what)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", mutant, 0); err != nil {
			t.Errorf("%s: %v\n%s", m.what, err, mutant)
		}
	}
	slices.Sort(said)
	want := []string{"!= becomes ==", "&& becomes ||", "+= becomes -=", "1 becomes 1+1", "7 becomes 7+1", "< becomes <=",
		"left out: a = b", "left out: g()", "the condition is negated", "the error is dropped"}
	if !slices.Equal(said, want) {
		t.Errorf("mutations %q\nwant %q", said, want)
	}
}
