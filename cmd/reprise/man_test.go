package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestVersion(t *testing.T) {
	var b map[string]string
	if err := json.Unmarshal([]byte(must(t, "version", "--json")), &b); err != nil {
		t.Fatal(err)
	}
	if b["version"] == "" || b["go"] != runtime.Version() || b["platform"] != runtime.GOOS+"/"+runtime.GOARCH || len(b) != 5 {
		t.Errorf("%v", b)
	}
	text := must(t, "version")
	if !strings.HasPrefix(text, "reprise "+b["version"]+"\n") || !strings.Contains(text, b["go"]) || !strings.Contains(text, b["platform"]) {
		t.Error(text)
	}
}

// There is a page for every command, with each of its flags.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	must(t, "man", dir)
	for _, cmd := range allCommands() {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(page), `.TH "`+strings.ToUpper(name)+`"`) && !strings.Contains(string(page), ".TH "+strings.ToUpper(name)) {
			t.Errorf("%s begins with %.80s", name, page)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(page), "--"+f.Name) {
				t.Errorf("%s.1 has no --%s", name, f.Name)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(dir, "reprise.1")); err != nil {
		t.Error(err)
	}
}

// Every shell gets a script, and flags are completed.
func TestCompletion(t *testing.T) {
	help := must(t, "--help")
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := must(t, "completion", shell); len(script) < 1000 || !strings.Contains(script, "reprise") {
			t.Errorf("%s: %d bytes", shell, len(script))
		}
		if name := strings.Replace(shell, "powershell", "PowerShell", 1); !strings.Contains(help, name) {
			t.Errorf("the help does not list completion for %s", name)
		}
	}
	if out := must(t, "__complete", "replay", "--max-in"); !strings.HasPrefix(out, "--max-in-flight\t") {
		t.Error(out)
	}
}
