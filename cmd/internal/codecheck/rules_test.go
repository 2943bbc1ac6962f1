package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
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

func TestListFault(t *testing.T) {
	good := "Package x does this.\n\n  1. First, and\n     more of it.\n  2. Second.\n\nThen:\n\n  1. Again.\n"
	if got := listFault(good); got != "" {
		t.Errorf("a good list: %s", got)
	}
	merged := "Package x does this.\n\n  1. First.\n  2. Second.\n  1. First, as the other branch has it.\n  2. Second.\n"
	if got := listFault(merged); got == "" {
		t.Error("two lists inside each other go unnoticed")
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

func TestFeedback(t *testing.T) {
	graph := func(arcs ...string) map[string]map[string]bool {
		g := map[string]map[string]bool{}
		for _, a := range arcs {
			if g[a[:1]] == nil {
				g[a[:1]] = map[string]bool{}
			}
			g[a[:1]][a[1:]] = true
		}
		return g
	}
	for _, c := range []struct {
		name       string
		graph      map[string]map[string]bool
		arcs, back int
	}{
		{"a chain", graph("ab", "bc", "ac"), 3, 0},
		{"a circle", graph("ab", "bc", "ca"), 3, 1},
		{"two that need each other", graph("ab", "ba", "bc", "cd"), 4, 1},
	} {
		if arcs, back := feedback(c.graph); arcs != c.arcs || back != c.back {
			t.Errorf("%s: %d arcs, %d back; want %d and %d", c.name, arcs, back, c.arcs, c.back)
		}
	}
}
