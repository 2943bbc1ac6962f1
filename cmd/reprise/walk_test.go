package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace/textpage"
)

// A walked is a command line with all that it prints held to the rules of output: an
// answer in one screen, first; no line wider than the terminal; no escape codes; and with
// --json one document.
type walked struct {
	line   string
	code   int
	answer string // what the text begins with: stdout, or else stderr
	json   string // how the document begins, without blanks; empty has no --json
}

// walkLines are the commands and their modes, in an order in which each finds its files.
var walkLines = []walked{
	{"import log.jsonl -o t.parquet", 0, "t.parquet: 242 requests", `{"`},
	{"import chats.json --arrivals poisson:2 -o chats.parquet", 0, "chats.parquet: ", `{"`},
	{"import chats.json -o x.parquet", 2, "reprise: sharegpt has no times", ""},
	{"import windows.csv --map time=when,input_tokens=n --max-bad 1 -o bad.parquet", 0, "bad.parquet: 3 requests", `{"`},
	{"import own.jsonl -o x.parquet", 1, "reprise: own.jsonl:1:1: unrecognised format", ""},
	{"import log.jsonl --tier raw --keep-model -o kept.parquet", 0, "kept.parquet: 242 requests", `{"`},
	{"import crowd.jsonl --map time=ts,user=user,input_tokens=in,output_tokens=out --tier partner --capture-begin 2026-05-01T00:00:00Z --capture-end 2026-05-03T00:00:00Z --ledger shared.jsonl --i-understand --max-input 512 --max-output 512 -o shared.parquet", 0, "shared.parquet: ", `{"`},
	{"import --inspect log.jsonl", 0, "log.jsonl: format openai-log", `{"`},
	{"import --inspect own.jsonl", 0, "own.jsonl: unrecognised format", `{"`},
	{"profile t.parquet", 0, "236 requests, 7.92 requests/s", `{"`},
	{"profile t.parquet --replicas 4 --html p.html", 0, "236 requests, 7.92 requests/s", `{"`},
	{"slice t.parquet --end 10s -o s.parquet", 0, "s.parquet: 61 of 242 requests", `{"`},
	{"import crowd.jsonl --map time=ts,user=user,input_tokens=in,output_tokens=out --capture-begin 2026-05-01T00:00:00Z --capture-end 2026-05-03T00:00:00Z -o crowd.parquet", 0, "crowd.parquet: 12,000 requests", `{"`},
	{"anonymize crowd.parquet --i-understand --max-input 512 --max-output 512 -o partner.parquet", 0, "partner.parquet: ", `{"`},
	{"anonymize crowd.parquet --tier public --unit request --epsilon 8 --i-understand --max-input 512 --max-output 512 -o public.parquet", 0, "public.parquet: ", `{"`},
	{"anonymize crowd.parquet --tier public --epsilon 0.1 --i-understand --unit request -o public2.parquet", 3, "reprise: crowd.parquet: ", ""},
	{"anonymize --card t.parquet", 0, "t.parquet: tier internal", `{"`},
	{"anonymize --card partner.parquet", 0, "partner.parquet: tier partner", `{"`},
	{"anonymize --card public.parquet", 0, "public.parquet: tier public", `{"`},
	{"audit t.parquet", 0, "No check failed", `{"`},
	{"audit partner.parquet --internal crowd.parquet --only card,times,ids,linkage", 0, "No check failed", `{"`},
	{"synth chat -n 12 --arrivals constant:40 -o w.parquet", 0, "w.parquet: 12 requests", `{"`},
	{"synth long.yaml -o long.parquet", 0, "long.parquet: 200 requests", `{"`},
	{"synth t.parquet -o fitted.parquet", 0, "fitted.parquet: 236 requests", `{"`},
	{"synth --mirror t.parquet -o mirror.parquet", 0, "mirror.parquet: 242 requests", `{"`},
	{"synth fit t.parquet -o m.parquet", 0, "m.parquet: a model of 236 requests", `{"`},
	{"synth fit crowd.parquet --tier public --unit request --epsilon 8 --i-understand --max-input 512 --max-output 512 -o pm.parquet", 0, "pm.parquet: a model of ", `{"`},
	{"synth m.parquet -n 50 -o few.parquet", 0, "few.parquet: 50 requests", `{"`},
	{"fidelity t.parquet mirror.parquet --max copies=off", 0, "All 33 checks hold", `{"`},
	{"fidelity t.parquet fitted.parquet --html f.html", 0, "All ", `{"`},
	{"fidelity t.parquet s.parquet --html f2.html", 3, "", `{"`},
	{"export t.parquet --to mooncake -o e.jsonl", 0, "e.jsonl: 242 requests", `{"`},
	{"export w.parquet --to vllm-custom -o e2.jsonl", 0, "e2.jsonl: 12 requests", `{"`},
	{"export w.parquet --to aiperf -o e3.jsonl", 0, "e3.jsonl: 12 requests", `{"`},
	{"serve --list-quirks", 0, "", ""},
	{"simulate long.parquet PRESET -o r.parquet", 0, "Simulated:", `{"`},
	{"simulate long.parquet PRESET --speed 2 -o r2.parquet", 0, "Simulated:", `{"`},
	{"simulate long.parquet PRESET --replicas 4 --router all", 0, "router ", `[{"`},
	{"simulate --presets", 0, "preset ", `[{"`},
	{"export r.parquet --to table -o table.csv", 0, "table.csv: 200 requests", `{"`},
	{"export r.parquet r2.parquet --to table -o table.parquet", 0, "table.parquet: 400 requests", `{"`},
	{"replay w.parquet URL -o live.parquet TRUSTING", 0, "Trustworthy", `{"`},
	{"replay w.parquet URL --max-lag 1ns -o untrusted.parquet", 4, "Not trustworthy", `{"`},
	{"replay w.parquet --dry-run --set price-input=1 --set price-output=2", 0, "Dry run: nothing was sent", `{"`},
	{"report live.parquet TRUSTING", 0, "Trustworthy", `{"`},
	{"report r.parquet --slo ttft:200ms --contract contract.yaml --html r.html", 0, "Simulated:", `{"`},
	{"report r.parquet r2.parquet", 0, "Each of the 2 runs", `[`},
	{"report r.parquet --explain p99_ttft", 0, "ttft", `{"`},
	{"report --explain list", 0, "", `[{"`},
	{"report r.parquet --format markdown", 0, "", ""},
	{"report r.parquet --format junit", 0, "", ""},
	{"compare r.parquet r2.parquet", 0, "", `{"`},
	{"compare w.parquet PRESET --costs-b step=9ms --rounds 3 -o rounds", 0, "No verdict", `{"`},
	{"sweep chat PRESET --rates 5,20 --level-duration 5s --level-requests 0 --no-confirm -o swept", 0, "20 req/s is below the knee", `{"`},
	{"sweep chat PRESET --rates 5,20,200 --level-duration 5s --level-requests 0 --contract contract.yaml --no-confirm -o swept2", 0, "", `{"`},
	{"capacity swept --target-rate 100 --price-per-gpu-hour 2.5 --html c.html", 0, "6 instances on 6 GPUs", `{"`},
	{"capacity predict --params 8B --bandwidth 600GB --flops 121T --prompt-tokens 500", 0, "", `{"`},
	{"capacity predict r.parquet --params 0.5B --bandwidth 300GB", 0, "", `{"`},
	{"bench --list", 0, "", `[{"`},
	{"bench serving --dry-run", 0, "Dry run: nothing was sent. 5 runs", `[{"`},
	{"bench serving PRESET -o bench1", 0, "Suite serving: 5 workloads, 5 runs: every one is trustworthy", `{"`},
	{"bench serving PRESET --max-num-seqs 4 -o bench2 --baseline bench1", 0, "Suite serving: 5 workloads, 5 runs: every one is trustworthy", `{"`},
	{"bench matrix PRESET --row a --row b -o bench3", 0, "Suite matrix: 2 workloads, 2 runs: every one is trustworthy", `{"`},
	{"demo -o demo --speed 100", 0, "", `{"`},
	{"help replya", 2, "reprise: there is no command \"replya\": did you mean reprise replay?", ""},
	{"version", 0, "reprise unversioned", `{"`},
	{"datasets", 0, "", `{"`},
	{"completion bash", 0, "", ""},
}

// walkFiles makes the files that the walk begins with.
func walkFiles(t *testing.T) {
	source, err := datasets.Demo()
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	log, err := io.ReadAll(source)
	if err != nil {
		t.Fatal(err)
	}
	crowd := new(strings.Builder)
	for i := range 12000 {
		fmt.Fprintf(crowd, `{"ts":"2026-05-01T%02d:%02d:%02dZ","user":"u%d","in":%d,"out":%d}`+"\n", i/3600, i/60%60, i%60, i%900, 50+i*7%400, 10+i*3%200)
	}
	writeFiles(t, map[string]string{
		"log.jsonl": string(log), "crowd.jsonl": crowd.String(),
		"chats.json":    `[{"id":"a_0","conversations":[{"from":"human","value":"Hello there"},{"from":"gpt","value":"Hi!"}]}]`,
		"own.jsonl":     `{"begin":1767323045123,"who":{"customer_id":"a b"},"tokens":{"prompt tokens":120,"completion":{"tokens_out":4}}}` + "\n",
		"windows.csv":   "when,n\n2026-05-01 09:00:01,5\n2026-05-01 09:00:02,6\n2026-05-01 09:00:02,x\n2026-05-01 09:00:02,6\n",
		"long.yaml":     "requests: 200\narrivals: poisson:5\nlengths: {input: 400, output: 40}\n",
		"contract.yaml": "clauses: [p95 ttft <= 500ms, p50 e2e <= 2s]\n",
	})
}

// wholeLines counts the lines of reasons, warnings and loosened limits, which are whole whatever a
// screen has room for: those after a mark, with what is indented below it, and those of the sentence.
func wholeLines(out string) (n int) {
	under, sentence := -1, false
	for line := range strings.Lines(out) {
		words := strings.TrimLeft(line, " ")
		indent := len(line) - len(words)
		sentence = words != "\n" && (sentence || strings.Contains(line, "loosened: ") || strings.HasSuffix(line, " limits\n"))
		switch {
		case strings.HasPrefix(words, "- "), strings.HasPrefix(words, "warning: "), strings.HasPrefix(words, "Warning: "):
			under = indent
			n++
		case under >= 0 && indent > under, sentence:
			n++
		default:
			under = -1
		}
	}
	return n
}

// What every command prints, in every mode.
func TestEveryOutput(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	t.Setenv("NO_COLOR", "1")
	walkFiles(t)
	url := simulateStream(t, time.Millisecond)
	real := strings.NewReplacer("PRESET", "--preset l4-qwen2.5-0.5b", "URL", "--url "+url, "TRUSTING",
		"--trust max-stall=off,max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off,max-cpu=off,max-gc-pause=off")
	for _, c := range walkLines {
		args := strings.Fields(real.Replace(c.line))
		cmd, _, err := rootCommand(nil).Find(args)
		hasDetails := err == nil && cmd.Flags().Lookup("details") != nil
		for _, width := range []int{60, 80, 120} { // runs are made for the first, and read for the others
			var mode []string
			if width == 60 && hasDetails {
				mode = []string{"--details"}
			}
			t.Setenv("COLUMNS", strconv.Itoa(width))
			out, errs, code := reprise(t, slices.Concat(args, mode)...)
			shown := fmt.Sprintf("%s %s at %d columns: exit code %d\n%s%s", c.line, mode, width, code, out, errs)
			n := strings.Count(out+errs, "\n") - wholeLines(out)
			whole := isDocument(c.line) || strings.HasPrefix(c.line, "serve --list") || c.line == "simulate --presets" ||
				strings.HasPrefix(c.line, "demo ") && strings.HasPrefix(out, "Not trustworthy") // a busy machine has more limitations to tell
			if n > textpage.Screen && width == 80 && !whole {
				t.Errorf("%d lines: %s", n, shown)
			}
			for line := range strings.Lines(out + errs) {
				if n := text.StringWidth(strings.TrimRight(line, "\n")); n > width && !isDocument(c.line) && !strings.Contains(line, "https://") { // an address is not cut
					t.Errorf("a line of %d columns, %q: %s", n, line, shown)
					break
				}
			}
			if strings.Contains(out+errs, "\x1b") {
				t.Errorf("an escape code: %s", shown)
			}
			if answer := strings.Join(strings.Fields(out+errs), " "); code != c.code || mode == nil && !strings.HasPrefix(answer, c.answer) {
				t.Errorf("want %d and first %q: %s", c.code, c.answer, shown)
			}
		}
		if c.json == "" {
			continue
		}
		out, errs, code := reprise(t, append(args, "--json")...)
		decoder := json.NewDecoder(strings.NewReader(out))
		var document any
		if err := decoder.Decode(&document); err != nil || code != c.code {
			t.Errorf("%s --json: exit code %d, %v\n%.300s\n%s", c.line, code, err, out, errs)
		} else if err := decoder.Decode(&document); !errors.Is(err, io.EOF) {
			t.Errorf("%s --json: more than one document, %v", c.line, err)
		}
		if begin := strings.Join(strings.Fields(out), ""); !strings.HasPrefix(begin, c.json) {
			t.Errorf("%s --json begins with %.40s", c.line, begin)
		}
	}
}

// isDocument says whether what a command prints is a document in a format of others, as
// wide and as long as that is.
func isDocument(line string) bool {
	return strings.Contains(line, "--format") || strings.HasPrefix(line, "completion") || line == "report --explain list"
}

// A command without --json prints no table, or runs until it is stopped.
func TestJSONIsOffered(t *testing.T) {
	without := []string{"reprise serve", "reprise help", "reprise job", "reprise job replay"}
	for _, c := range allCommands() {
		if has := c.Flags().Lookup("json") != nil; has == (slices.Contains(without, c.CommandPath()) || strings.HasPrefix(c.CommandPath(), "reprise completion")) {
			t.Errorf("%s has --json: %v", c.CommandPath(), has)
		}
	}
	if _, errs, code := reprise(t, "completion", "bash", "--json"); code != cli.Usage || !strings.HasPrefix(errs, "reprise: unknown flag: --json\n") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
