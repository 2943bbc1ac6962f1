package flags

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var updateGone = flag.Bool("update", false, "rewrite the table of what is gone in docs/migration.md")

// Who names a command or a flag that is gone is told what to use, and the table of
// docs/migration.md is this one.
func TestWhatIsGoneSaysWhatToUse(t *testing.T) {
	root := &cobra.Command{Use: "reprise"}
	var rows strings.Builder
	for _, d := range departures {
		name, cmd := d.command, &cobra.Command{Use: d.command, Run: func(*cobra.Command, []string) {}}
		said := UnknownCommand(root, `"`+d.command+`"`)
		if d.flag != "" {
			name = strings.TrimSpace(d.command + " --" + d.flag)
			root.AddCommand(cmd)
			said = Mistake(cmd, cmd.ParseFlags([]string{"--" + d.flag}))
			root.RemoveCommand(cmd)
		}
		if said == nil || !strings.HasSuffix(said.Error(), " is gone: "+d.instead) || strings.ContainsAny(said.Error(), "\n|") {
			t.Errorf("%s: %v", name, said)
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", name, d.instead)
	}
	if err := departed("replay", "no-such-flag"); err != nil {
		t.Error(err)
	}

	const page, head = "../../../../docs/migration.md", "| gone | use instead |\n|---|---|\n"
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(doc), head)
	if !found {
		t.Fatal(errors.New("docs/migration.md has no table of what is gone"))
	}
	after := rest
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	want := before + head + rows.String() + after
	if string(doc) == want {
		return
	}
	if !*updateGone {
		t.Fatal("docs/migration.md has another table of what is gone: go test ./cmd/reprise/internal/flags -run WhatIsGone -update")
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
