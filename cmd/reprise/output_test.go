package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
)

// An output that exists is kept unless --overwrite is given, and what -o names is looked
// at before anything is done.
func TestExistingOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"log.jsonl": userLog(5), "t.parquet": "mine", "w.parquet": "mine", "r.parquet": "mine", "p.txt": "mine"})
	try := func(line string) (string, int) {
		var errs bytes.Buffer
		code := run(context.Background(), strings.Fields(line), strings.NewReader(""), &bytes.Buffer{}, &errs)
		return withoutHelp(errs.String()), code
	}
	for line, want := range map[string]string{
		"import log.jsonl -o t.parquet":                            "reprise: t.parquet exists: --overwrite replaces it\n",
		"synth chat -n 5 -o w.parquet":                             "reprise: w.parquet exists: --overwrite replaces it\n",
		"profile log.jsonl -o p.txt":                               "reprise: p.txt exists: --overwrite replaces it\n",
		"simulate w.parquet --preset l4-qwen2.5-0.5b -o r.parquet": "reprise: r.parquet exists: --overwrite replaces it\n",
		"replay w.parquet --url http://127.0.0.1:1 -o r.parquet":   "reprise: r.parquet exists: --overwrite replaces it\n",
		"import log.jsonl -o no/such/t.parquet": "reprise: folder no/such does not " +
			"exist: make it first, or name another with -o\n",
		"import log.jsonl -o .": "reprise: . is a folder: name a " +
			"file in it, such as -o out.parquet\n",
		"import log.jsonl --overwrite -o log.jsonl": "reprise: log.jsonl is an input " +
			"and would be overwritten: name another output\n",
		"import log.jsonl -o log.jsonl": "reprise: log.jsonl is an input " +
			"and would be overwritten: name another output\n",
		"replay w.parquet -o w.parquet --overwrite": "reprise: w.parquet is an input " +
			"and would be overwritten: name another output\n",
		"replay w.parquet -o x.parquet --html r.parquet": "reprise: r.parquet exists: --overwrite replaces it\n",
		"replay w.parquet -o x.parquet --html x.parquet": "reprise: two outputs have the " +
			"same name, x.parquet: give each its own file\n",
		"replay w.parquet -o x.parquet --save-result --result-filename p.txt": "reprise: p.txt exists: name " +
			"another file with --result-filename, add to it with --append-result, or replace it with --overwrite\n",
		"profile t.parquet --tables p.txt": "reprise: p.txt exists: --overwrite replaces it\n",
		"compare t.parquet t.parquet --html no/c.html": "reprise: folder no does not " +
			"exist: make it first, or name another with --html\n",
		"sweep w.parquet --html p.txt": "reprise: p.txt exists: --overwrite replaces it\n",
	} {
		if got, code := try(line); got != want || code != cli.Usage {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", line, code, got, want)
		}
	}
	// So is what a command writes beside its output, or into a folder.
	writeFiles(t, map[string]string{"card.privacy.json": "mine", "kept.raw.parquet": "mine"})
	for line, want := range map[string]string{
		"import log.jsonl -o card.parquet": "reprise: card.privacy.json exists, and would be written " +
			"beside card.parquet: name another file with -o, or replace both with --overwrite\n",
		"import log.jsonl --tier raw -o kept.parquet": "reprise: kept.raw.parquet exists, and would be written " +
			"beside kept.parquet: name another file with -o, or replace both with --overwrite\n",
		"anonymize p.txt -o card.parquet": "reprise: card.privacy.json exists, and would be written " +
			"beside card.parquet: name another file with -o, or replace both with --overwrite\n",
		"merge --finish . -o card.parquet": "reprise: card.privacy.json exists, and would be written " +
			"beside card.parquet: name another file with -o, or replace both with --overwrite\n",
	} {
		if got, code := try(line); got != want || code != cli.Usage {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", line, code, got, want)
		}
	}
	for _, name := range []string{"t.parquet", "w.parquet", "r.parquet", "p.txt", "card.privacy.json", "kept.raw.parquet"} {
		if b, err := os.ReadFile(name); err != nil || string(b) != "mine" {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
	// A plan writes nothing, a device is no file, and --overwrite replaces.
	for _, line := range []string{
		"import log.jsonl --map time=ts,input_tokens=usage.prompt_tokens --overwrite -o t.parquet",
		"synth chat -n 5 -o w.parquet --overwrite",
		"replay w.parquet --url http://127.0.0.1:1 --dry-run -o r.parquet",
		"profile t.parquet -o " + os.DevNull,
	} {
		if got, code := try(line); code != cli.Good {
			t.Errorf("%s: exit code %d\n%s", line, code, got)
		}
	}
	if b, err := os.ReadFile("t.parquet"); err != nil || !strings.HasPrefix(string(b), "PAR1") {
		t.Error("t.parquet was not replaced", err)
	}
	if left, err := filepath.Glob(".reprise-*"); len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// Every command that writes a file can replace it, and none that writes into a directory
// alone asks.
func TestOverwriteIsOffered(t *testing.T) {
	directories := "reprise bench, reprise bench matrix, reprise datasets fetch, reprise demo, reprise record"
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		out := cmp.Or(c.Flags().Lookup("html"), c.Flags().Lookup("output"))
		if isFile := out != nil && !strings.Contains(directories, c.CommandPath()); isFile != (c.Flags().Lookup("overwrite") != nil) {
			t.Errorf("%s: -o is a file: %v", c.CommandPath(), isFile)
		}
		for _, below := range c.Commands() {
			look(below)
		}
	}
	look(rootCommand(nil))
}

func TestUnwritableFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("closed", 0o500); err != nil {
		t.Fatal(err)
	}
	_, errs, code := reprise(t, "synth", "chat", "-n", "5", "-o", "closed/w.parquet")
	if want := "reprise: no permission to write to folder closed: name another with -o\n"; errs != want || code != cli.Failure {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// A report is written as the ending of its file says.
func TestReportByEnding(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "simulate", "chat", "--requests", "20", "--preset", "l4-qwen2.5-0.5b", "-o", "r.parquet")
	for ending, begins := range map[string]string{".csv": "name,of,", ".json": "{", ".md": "#", ".xml": "<?xml",
		".prom": "# HELP", ".html": "<!DOCTYPE html>", ".HTML": "<!DOCTYPE html>", ".txt": "Simulated"} {
		must(t, "report", "r.parquet", "-o", "x"+ending)
		text, err := os.ReadFile("x" + ending)
		if err != nil || !strings.HasPrefix(string(text), begins) {
			t.Errorf("x%s: %v, %.40q", ending, err, text)
		}
	}
}

// Blocks that are long beside the prompts hide what prompts share, and import says so.
func TestLongBlocksAreSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = `{"timestamp":"2026-01-02T03:04:05Z","model":"m","messages":[{"role":"user","content":"Good day"}],` +
		`"response":{"usage":{"prompt_tokens":9,"completion_tokens":1}}}` + "\n"
	writeFiles(t, map[string]string{"log.jsonl": strings.Repeat(line, 3)})
	for _, blocks := range []string{"512", "16"} {
		_, said, _ := reprise(t, "import", "log.jsonl", "--block-size", blocks, "-o", "t"+blocks+".parquet")
		line := strings.Join(strings.Fields(said), " ")
		if strings.Contains(line, "--block-size 16 is a server's block") != (blocks == "512") {
			t.Errorf("blocks of %s:\n%s", blocks, said)
		}
	}
}

// A file that is missing comes before an output that is, in plain words.
func TestMissingInput(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"w.parquet": "mine", "prompts.jsonl": "mine"})
	for line, want := range map[string]string{
		"import promts.jsonl": "reprise: there is no file or folder promts.jsonl: did you mean " +
			"prompts.jsonl?\n",
		"import no.jsonl":                     "reprise: there is no file or folder no.jsonl\n",
		"import no.jsonl -o t.parquet":        "reprise: there is no file or folder no.jsonl\n",
		"replay no.parquet":                   "reprise: there is no file or folder no.parquet\n",
		"synth fit no.parquet":                "reprise: there is no file or folder no.parquet\n",
		"profile no.parquet --html no/p.html": "reprise: there is no file or folder no.parquet\n",
		"report no.parquet":                   "reprise: there is no file or folder no.parquet\n",
	} {
		if _, errs, code := reprise(t, strings.Fields(line)...); errs != want || code != cli.Failure {
			t.Errorf("%s: exit code %d, %s", line, code, errs)
		}
	}
	must(t, "synth", "chat", "-n", "5", "-o", "c.parquet")
	if _, errs, _ := reprise(t, "profile", "c.parquet", "--html", "no/p.html"); errs != "reprise: folder no does "+
		"not exist: make it first, or name another with --html\n" {
		t.Error(errs)
	}
}
