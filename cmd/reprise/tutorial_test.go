package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
)

// A shown is a command of the tutorial, and what the page says that it prints.
type shown struct {
	command string
	lines   []string
	live    bool // against a server, by the clock: its figures are never the same
}

// showings are the commands of a page, in order.
func showings(doc string) (all []shown) {
	for _, block := range regexp.MustCompile("(?s)```console( live)?\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		text := strings.ReplaceAll(block[2], "\\\n", " ")
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, shown{command: command, live: block[1] != ""})
			} else {
				last := &all[len(all)-1]
				last.lines = append(last.lines, line)
			}
		}
	}
	return all
}

// shellWords splits a command at its spaces, but for those in single quotes.
func shellWords(command string) (words []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// prints says whether a line of the output is this one, where … stands for anything.
func prints(output, line string) bool {
	parts := strings.Split(line, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile("(?m)^ *" + strings.Join(parts, ".*") + " *$").MatchString(output)
}

// What the tutorial shows is what its commands print: they run in virtual time, so
// that every figure comes out again. Of the live run only the command is tried, with
// fewer requests.
func TestTutorial(t *testing.T) {
	long(t)
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(docs, "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join("..", "..", "datasets", "demo.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	_, contract, _ := strings.Cut(string(doc), "```yaml\n")
	contract, _, _ = strings.Cut(contract, "```")
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"gateway.jsonl.gz": string(log), "contract.yaml": contract})
	url, code, ran := simulate(t), cli.Good, 0
	for _, s := range showings(string(doc)) {
		switch {
		case s.command == "echo $?":
			if want := strconv.Itoa(code); !s.live && strings.Join(s.lines, " ") != want {
				t.Errorf("the page says that the exit code is %q, and it is %d", s.lines, code)
			}
			continue
		case strings.HasPrefix(s.command, "reprise serve "):
			runServe(t, strings.TrimPrefix(s.command, "reprise ")+" --listen 127.0.0.1:0")
			continue
		}
		args := shellWords(strings.ReplaceAll(s.command, "http://127.0.0.1:8000", url))
		if s.live {
			args = append(args, "--max-requests", "5", "--max-lag", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1", "--max-lag-p50", "1h", "--max-lag-drift", "1h")
		}
		var out, errs string
		if file, ok := strings.CutPrefix(s.command, "cat "); ok {
			out = string(read(t, file))
		} else {
			out, errs, code = reprise(t, args[1:]...)
			ran++
		}
		if code != cli.Good && code != cli.Check && (code != cli.Untrusted || !s.live) {
			t.Fatalf("%s: exit code %d\n%s", s.command, code, errs)
		}
		for _, line := range s.lines {
			if !s.live && !prints(out+errs, line) {
				t.Errorf("%s\ndoes not print, as the page says,\n%s", s.command, line)
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d commands were found", ran)
	}
	for _, picture := range regexp.MustCompile(`\]\((img/[^)]+)\)`).FindAllStringSubmatch(string(doc), -1) {
		if _, err := os.Stat(filepath.Join(docs, picture[1])); err != nil {
			t.Error(err)
		}
	}
}

// The commands of the README work one after the other in an empty folder, with a log and a file of prompts in it, and
// with servers where it names some. Those against a server send fewer requests.
func TestReadme(t *testing.T) {
	long(t)
	doc, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join("..", "..", "datasets", "demo.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	prompts := read(t, conversations(t, 20))
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"gateway.jsonl": string(log), "sharegpt.json": string(prompts)})

	servers := strings.NewReplacer("http://localhost:8000", simulate(t), "$BASE", simulate(t), "$HEAD", simulate(t))
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimSpace(line)
			recorded := strings.HasPrefix(line, "reprise record ") || strings.Contains(line, "traces/")
			if !strings.HasPrefix(line, "reprise ") || recorded { // recording has tests of its own
				continue
			}
			live := servers.Replace(line)
			if live != line && !strings.Contains(line, "--requests") {
				live += " --max-requests 12"
			}
			if strings.HasPrefix(line, "reprise compare ") {
				live += " --rest 0s --speed 50"
			}
			_, errs, code := reprise(t, shellWords(live)[1:]...)
			if code != cli.Good && (code != cli.Untrusted && code != cli.Check || live == line) {
				t.Errorf("%s: exit code %d\n%s", line, code, errs)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("only %d commands were found", ran)
	}
}
