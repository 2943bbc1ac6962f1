package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
)

// loosened are all limits that a command takes, each above its default or off, as --trust reads
// them, and the sentence about them.
func loosened(cmd *cobra.Command) (trust, sentence string) {
	var set []string
	limits := report.DefaultLimits()
	for i, l := range report.LimitList() {
		switch {
		case cmd.Flags().Lookup(l.Key) == nil:
		case i%2 == 0 && l.Duration != nil:
			*l.Duration(&limits) = -1
			set = append(set, l.Key+"=off")
		case i%2 == 0:
			*l.Share(&limits) = -1
			set = append(set, l.Key+"=off")
		case l.Duration != nil:
			*l.Duration(&limits) = 26 * time.Hour
			set = append(set, l.Key+"=26h")
		default:
			*l.Share(&limits) = 0.99
			set = append(set, l.Key+"=99%")
		}
	}
	return strings.Join(set, ","), limits.Loosened().String()
}

// Every command that judges runs says, wherever it prints what it found, which of its limits are
// loosened: in a text of any width, with --details, as JSON and on its page. What reads results
// that were judged before says it too.
func TestLoosenedLimitsAreSaidByEveryCommand(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	t.Setenv("NO_COLOR", "1")
	writeFiles(t, map[string]string{
		"w.yaml": "requests: 40\narrivals: poisson:20\nlengths: {input: 40, output: 5}\n",
		"s.yaml": "rows:\n  - {name: one, workload: baseline, requests: 6, output: \"constant:4\", load: sequential}\n",
	})
	walkFiles(t)
	must(t, "import", "log.jsonl", "-o", "t.parquet")
	must(t, "simulate", "t.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "t-results.parquet")
	must(t, "synth", "w.yaml", "-o", "w.parquet")
	must(t, "simulate", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "a.parquet")
	must(t, "simulate", "w.parquet", "--preset", "l4-qwen2.5-0.5b", "--speed", "2", "-o", "b.parquet")
	real := strings.NewReplacer("PRESET", "--preset l4-qwen2.5-0.5b", "URL", simulateStream(t, 3*time.Millisecond))
	const found = "--trust LIMITS" // else the limits are those of a file that was read
	seen := map[string]bool{}
	for _, c := range []struct {
		line  string
		forms string // beside the text: json, details, page, or a file that the command writes
	}{
		{"simulate w.parquet PRESET -o r.parquet " + found, "json details page"},
		{"replay w.parquet --url URL -o r.parquet " + found, "json details page"},
		{"report a.parquet " + found, "json details page"},
		{"report a.parquet b.parquet " + found, "json details page"},
		{"report a.parquet --definitions vllm " + found, "json details page"},
		{"report a.parquet --format markdown " + found, ""},
		{"report a.parquet --format junit " + found, ""},
		{"report a.parquet b.parquet --format decision " + found, "page"},
		{"report a.parquet --explain p99_ttft " + found, "json details"},
		{"compare a.parquet b.parquet " + found, "json details page"},
		{"compare --production t.parquet t-results.parquet " + found, "json details page"},
		{"compare w.parquet PRESET --costs-b step=9ms --rounds 2 -o rounds " + found, "json details page"},
		{"compare rounds " + found, "json details page"},
		{"sweep chat PRESET --rates 5,20 --level-duration 2s --level-requests 0 --no-confirm -o swept " + found, "json details page"},
		{"capacity swept --target-rate 100", "json details page"},
		{"sweep --frontier --url URL --lengths 16/8 --concurrencies 1 --level-requests 8 -o front " + found, "json details page"},
		{"sweep --frontier front --preset t4-llama-3.2-3b --lengths 16/8 --concurrencies 1", "json details page"},
		{"bench s.yaml PRESET -o suite " + found, "json details suite/index.html"},
		{"bench s.yaml PRESET -o suite --format markdown " + found, ""},
	} {
		args := strings.Fields(real.Replace(c.line))
		cmd, _, err := rootCommand(nil).Find(args)
		if err != nil {
			t.Fatal(err)
		}
		if cmd.Name() == "capacity" { // which has the limits of the sweep that it reads
			if cmd, _, err = rootCommand(nil).Find([]string{"sweep"}); err != nil {
				t.Fatal(err)
			}
		}
		trust, want := loosened(cmd)
		if strings.Contains(c.line, found) {
			seen[cmd.Name()] = true
		}
		if at := slices.Index(args, "LIMITS"); at >= 0 {
			args[at] = trust
		}
		try := func(form string, more ...string) string {
			out, errs, code := reprise(t, slices.Concat(args, more)...)
			if code != cli.Good && code != cli.Untrusted {
				t.Fatalf("%s, %s: exit code %d\n%s%s", c.line, form, code, out, errs)
			}
			return out
		}
		say := func(form, out string) {
			if !strings.Contains(oneLine(out), strings.TrimSuffix(want, ".")) {
				t.Errorf("%s, %s: no %q in\n%s", c.line, form, want, out)
			}
		}
		read := func(path string) string {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		for _, width := range []string{"60", "100"} {
			t.Setenv("COLUMNS", width)
			say(width+" columns", try(width))
		}
		for _, form := range strings.Fields(c.forms) {
			switch form {
			case "details":
				say(form, try(form, "--details"))
			case "page":
				try(form, "--html", "p.html")
				say(form, read("p.html"))
			case "json":
				var doc any
				out := try(form, "--json")
				if err := json.Unmarshal([]byte(out), &doc); err != nil {
					t.Fatalf("%s: %v\n%s", c.line, err, out)
				}
				if got := loosenedIn(doc); got.String() != want {
					t.Errorf("%s: the JSON has %q, want %q", c.line, got, want)
				}
			default:
				try(form)
				say(form, read(form))
			}
		}
	}
	all := rootCommand(nil)
	for _, cmd := range append(all.Commands(), all) {
		if cmd.Flags().Lookup("trust") != nil && !seen[cmd.Name()] {
			t.Errorf("%s takes --trust and is not among these", cmd.Name())
		}
	}
}

// loosenedIn are the loosened limits of the first verdict in a document that has some.
func loosenedIn(doc any) (l report.LoosenedLimits) {
	switch doc := doc.(type) {
	case map[string]any:
		for key, v := range doc {
			if strings.HasSuffix(key, "loosened_limits") {
				text, _ := json.Marshal(v)
				if json.Unmarshal(text, &l) == nil && len(l) > 0 {
					return l
				}
			}
			if l = loosenedIn(v); len(l) > 0 {
				return l
			}
		}
	case []any:
		for _, v := range doc {
			if l = loosenedIn(v); len(l) > 0 {
				return l
			}
		}
	}
	return nil
}

// oneLine joins the lines of a text, and leaves out how HTML and Markdown write blanks and signs.
func oneLine(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("\u00a0", " ", `\_`, "_").Replace(s)), " ")
}
