package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/flags"
)

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

// completed is what a shell is told for the last of these words: what it offers, and
// how it goes on.
func completed(t *testing.T, words ...string) (offered []string, directive string) {
	t.Helper()
	out, _, _ := reprise(t, append([]string{"__complete"}, words...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

func TestCompletedValues(t *testing.T) {
	for _, c := range []struct{ words, offered, directive string }{
		{"simulate --preset l4", "l4-qwen2.5-0.5b", ":0"},
		{"replay --api c", "completions chat", ":4"},
		{"replay --rate po", "poisson:", ":6"},
		{"replay --cache ", "as-is cold salted warm", ":4"},
		{"replay --trust max-stall-", "max-stall-ttft= max-stall-gap=", ":6"},
		{"serve --quirks crlf,usage-m", "crlf,usage-missing", ":4"},
		{"simulate --costs step=1ms,kv", "step=1ms,kv-token=", ":6"},
		{"bench gate.y", "", ":0"}, // a file
		{"anonymize --tier p", "partner public", ":4"},
		{"import --tier ", "internal raw partner public", ":4"},
		{"import --tokenizer o", "o200k_base", ":0"},
		{"export --to va", "", ":4"},
		{"export --to t", "table", ":4"},
		{"report --format ju", "junit", ":4"},
		{"bench --format ", "text markdown json", ":4"},
		{"bench serv", "serving server", ":0"},
		{"replay --set gap", "gap-cap=", ":6"},
		{"replay --set recycle=s", "recycle=salt recycle=same recycle=stop", ":6"},
		{"replay --timeout ", "", ":4"}, // a number: no files
		{"replay --config ", "yaml yml", ":8"},
		{"bench --output ", "", ":16"},
		{"replay ", "parquet", ":8"},
		{"report ", "parquet journal", ":8"},
	} {
		offered, directive := completed(t, strings.Split(c.words, " ")...)
		slices.Sort(offered)
		want := strings.Fields(c.offered)
		slices.Sort(want)
		if !slices.Equal(offered, want) || directive != c.directive {
			t.Errorf("%s: %v %s, want %v %s", c.words, offered, directive, want, c.directive)
		}
	}
}

// namedValues finds a flag whose help names its values: two words or more after a colon
// or at its beginning, with commas and or between them.
var namedValues = regexp.MustCompile(`(?:^|: )([a-z][a-z0-9.-]+)(?: \([^)]*\))?(?:, [a-z][a-z0-9.-]+(?: \([^)]*\))?)*,? or [a-z]|(?:^|: )([a-z][a-z0-9.-]+)(?:, [a-z][a-z0-9.-]+){2,}`)

// Every flag that has a fixed list of values completes it.
func TestEveryListIsCompleted(t *testing.T) {
	values := completedValues()
	for _, cmd := range allCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			what, usage := pflag.UnquoteUsage(f)
			if what == "file" || !namedValues.MatchString(usage) || !flags.Offered(f) || !strings.HasPrefix(f.Value.Type(), "string") {
				return
			}
			if values[f.Name] == nil && values[cmd.Name()+" "+f.Name] == nil {
				t.Errorf("%s --%s: %s", cmd.Name(), f.Name, usage)
			}
		})
	}
}
