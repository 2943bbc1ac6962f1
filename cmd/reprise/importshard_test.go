package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

const shardKey = "00112233445566778899aabbccddeeff0123456789abcdef0123456789abcdef\n"

// shardLogs writes the files of a log, in which conversations go on from file to file, many
// requests arrive at one instant, and one record is bad.
func shardLogs(t *testing.T, dir string, files int) {
	t.Helper()
	r := rand.New(rand.NewPCG(4, 4))
	talks := map[string][]string{}
	texts := map[string]string{"key": shardKey}
	for f := range files {
		var b strings.Builder
		for i := range 20 + r.IntN(30) {
			id := fmt.Sprint("s", r.IntN(12))
			if len(talks[id]) == 0 || len(talks[id]) > 12 {
				talks[id] = []string{fmt.Sprintf(`{"role":"system","content":"You are agent %d of the company, who answers politely and at length."}`, r.IntN(3))}
			}
			talks[id] = append(talks[id], fmt.Sprintf(`{"role":"user","content":"question %d %s"}`, r.IntN(9000), strings.Repeat("and so on ", r.IntN(40))))
			prompt := strings.Join(talks[id], ",")
			fmt.Fprintf(&b, `{"timestamp":"2026-01-02T03:%02d:%02dZ","model":"m%d","user":"customer-%d","session_id":"%s","messages":[%s],"response":{"choices":[{"message":{"role":"assistant","content":"answer %d"}}]},"usage":{"prompt_tokens":%d,"completion_tokens":4}}`+"\n",
				f, i/2, r.IntN(2), r.IntN(30), id, prompt, i, len(prompt)/5)
			talks[id] = append(talks[id], fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, i))
		}
		texts[fmt.Sprintf("%s/log-%02d.jsonl", dir, f)] = b.String()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, texts)
	if err := os.Chmod("key", 0o400); err != nil {
		t.Fatal(err)
	}
}

// importShards imports a log in so many shards, to a folder.
func importShards(t *testing.T, folder string, of int, more ...string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range of {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		args := append([]string{"import", "log", "--key-file", "key", "-o", folder}, more...)
		if i%2 == 0 {
			args = append(args, "--shard", fmt.Sprintf("%d/%d", i, of))
		} else {
			args = append(args, "--shard", fmt.Sprint("/", of))
		}
		must(t, args...)
	}
}

func digestOf(t *testing.T, path string) string {
	t.Helper()
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Meta.Digest
}

// An import in any number of shards gives the trace of one process: its digest, its profile,
// its system prompts and the counts that are told.
func TestImportInShards(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 9)
	more := []string{"--keep-templates", "--set", "k-template=10", "--block-size", "16"}
	told := must(t, append([]string{"import", "log", "-o", "whole.parquet", "--json"}, more...)...)
	prompts, err := os.ReadFile("whole.templates.json")
	if err != nil || !strings.Contains(string(prompts), "You are agent") {
		t.Fatalf("%s, %v", prompts, err)
	}
	profile := must(t, "profile", "whole.parquet", "--json")
	for _, of := range []int{1, 4, 12} {
		folder := fmt.Sprint("shards", of)
		importShards(t, folder, of, more...)
		out := folder + ".parquet"
		got := must(t, "merge", "--finish", folder, "-o", out, "--key-file", "key", "--json")
		if digestOf(t, out) != digestOf(t, "whole.parquet") {
			t.Errorf("%d shards have another digest", of)
		}
		var a, b map[string]any
		if err := json.Unmarshal([]byte(got), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(told), &b); err != nil {
			t.Fatal(err)
		}
		for name := range b {
			if name != "notes" && name != "prefix_breakers" && fmt.Sprint(a[name]) != fmt.Sprint(b[name]) {
				t.Errorf("%d shards: %s is %v, in one process %v", of, name, a[name], b[name])
			}
		}
		kept, err := os.ReadFile(folder + ".templates.json")
		if err != nil || string(kept) != string(prompts) {
			t.Errorf("%d shards keep %s, one process %s; %v", of, kept, prompts, err)
		}
		if p := must(t, "profile", out, "--json"); withoutBreakers(t, p) != withoutBreakers(t, profile) {
			t.Errorf("%d shards have another profile", of)
		}
		for _, name := range matches(t, folder+"/*") { // no text and no name of the source
			shard, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{"agent", "politely", "question", "answer", "customer-", `"m1"`} {
				if strings.Contains(string(shard), secret) {
					t.Errorf("%s holds %q", name, secret)
				}
			}
		}
	}
}

// What job import prints, run as the pods would run it, makes the trace of one process: by
// Kubernetes' arguments and by those of the merge step.
func TestJobImport(t *testing.T) {
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 5)
	must(t, "import", "log", "--block-size", "16", "--format", "openai-log", "--keep-templates", "--set", "k-template=10", "-o", "whole.parquet")
	if err := os.Mkdir("june", 0o700); err != nil {
		t.Fatal(err)
	}
	job := []string{"import", "/data", "--block-size", "16", "--format", "openai-log", "--keep-templates", "--set", "k-template=10", "--shards", "3", "--image", "a/b", "--results-claim", "r", "--key-secret", "import-key/key", "--name", "june"}
	here := func(args []string, results string) (out []string) {
		for _, a := range args {
			out = append(out, strings.NewReplacer("/run/reprise/key", "key", "/results/", "", "/results", results, "/data", "log").Replace(a))
		}
		return out
	}
	for i := range 3 {
		t.Setenv("JOB_COMPLETION_INDEX", fmt.Sprint(i))
		must(t, here(jobArguments(t, job...), "june")...)
	}
	must(t, here(jobArguments(t, append(job, "--merge-step")...), "")...)
	if digestOf(t, "june.parquet") != digestOf(t, "whole.parquet") {
		t.Error("the job makes another trace than one process")
	}
	if kept, prompts := contents(t, "june.templates.json"), contents(t, "whole.templates.json"); kept != prompts {
		t.Errorf("the job keeps %s, one process %s", kept, prompts)
	}
	kube := []string{"--shards", "4", "--image", "a/b", "--results-claim", "r", "--key-secret", "k/k"}
	for want, args := range map[string][]string{
		"needs --image, --key-secret, and --results-claim or --results-bucket": {"/data", "--shards", "4"},
		"--shards: say how many":      {"/data"},
		"below /data":                 append([]string{"logs"}, kube...),
		"stdin cannot be shared":      append([]string{"-"}, kube...),
		"--output is not for a job":   append([]string{"/data", "-o", "t.parquet"}, kube...),
		"--shard is not for a job":    append([]string{"/data", "--shard", "1/4"}, kube...),
		"--tier is not for a job":     append([]string{"/data", "--tier", "partner"}, kube...),
		"--arrivals is not for a job": append([]string{"/data", "--arrivals", "poisson:2"}, kube...),
		"--inspect is not for a job":  append([]string{"/data", "--inspect"}, kube...),
		"are for --slurm":             append([]string{"/data", "--key-file", "key"}, kube...),
		"are for Kubernetes":          append([]string{"/data", "--slurm", "--results-dir", "/x"}, kube...),
		"--slurm needs":               {"/data", "--shards", "4", "--slurm"},
	} {
		if _, errs, code := reprise(t, append([]string{"job", "import"}, args...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d, %s, want %q", args, code, errs, want)
		}
	}
}

// withoutBreakers is a profile but for where prompts diverge, which shards find alone.
func withoutBreakers(t *testing.T, text string) string {
	var p map[string]any
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	delete(p, "prefix_breakers")
	delete(p, "name")
	out, _ := json.Marshal(p)
	return string(out)
}

func matches(t *testing.T, pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing is %s: %v", pattern, err)
	}
	return found
}

// A shard that is imported again replaces itself, and one that is missing, of another key or of
// other settings is named.
func TestShardsThatDoNotGoTogether(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 5)
	writeFiles(t, map[string]string{"other": strings.Replace(shardKey, "00", "ff", 1)})
	if err := os.Chmod("other", 0o600); err != nil {
		t.Fatal(err)
	}
	importShards(t, "s", 3)
	must(t, "merge", "--finish", "s", "-o", "t.parquet")
	want := digestOf(t, "t.parquet")
	must(t, "import", "log", "--shard", "1/3", "--key-file", "key", "-o", "s")
	must(t, "merge", "--finish", "s", "-o", "t.parquet")
	if digestOf(t, "t.parquet") != want {
		t.Error("a shard that was imported again changes the trace")
	}
	second := "s/import-1-of-3.shard.parquet"
	before, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(want string, more ...string) {
		t.Helper()
		if len(more) > 0 {
			must(t, append([]string{"import", "log", "--shard", "1/3", "-o", "s"}, more...)...)
		}
		if _, errs, code := reprise(t, "merge", "--finish", "s", "-o", "no.parquet"); code == cli.Good || !strings.Contains(strings.ReplaceAll(errs, "\n  ", " "), want) {
			t.Errorf("want %s: exit code %d\n%s", want, code, errs)
		}
		if _, err := os.Stat("no.parquet"); err == nil {
			t.Error("a trace was written all the same")
		}
		if err := os.WriteFile(second, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refuse(second+" was imported under another key", "--key-file", "other")
	refuse(second+" was imported with the tokenizer cl100k_base", "--key-file", "key", "--tokenizer", "cl100k_base")
	refuse(second+" was imported with the chat template qwen3", "--key-file", "key", "--template", "qwen3")
	refuse(second+" was imported with another block_size (64, not 512)", "--key-file", "key", "--block-size", "64")
	refuse(second+" was imported with another --tz", "--key-file", "key", "--tz", "Europe/Paris")
	os.Remove(second)
	refuse("of 3 shards number 1 is missing: run import --shard I/3 again")
	writeFiles(t, map[string]string{"log/log-05.jsonl": `{"timestamp":"2026-01-02T03:04:05Z","prompt":"one more"}` + "\n"})
	refuse(second+" is foreign", "--key-file", "key")
	if err := os.WriteFile("s/copy.shard.parquet", before, 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("are both shard 1 of 3")
}

// What bad records and contradicting counts mean is judged for all shards together.
func TestShardsAreJudgedTogether(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 4)
	f, err := os.OpenFile("log/log-03.jsonl", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, `{"timestamp":"2026-01-02T03:05:05Z","messages":7}`)
	f.Close()
	for _, max := range []string{"0.02", "0.001"} { // of the last file it is more than 2 %
		folder := "s" + max
		importShards(t, folder, 4, "--max-bad", max)
		_, wholeErrs, whole := reprise(t, "import", "log", "-o", "whole.parquet", "--max-bad", max)
		_, errs, code := reprise(t, "merge", "--finish", folder, "-o", "t.parquet")
		if code != whole || (code == cli.Good) != (max == "0.02") {
			t.Fatalf("--max-bad %s: exit code %d in shards, %d in one process\n%s\n%s", max, code, whole, errs, wholeErrs)
		}
		if code != cli.Good && !strings.Contains(errs, "log-03.jsonl:") {
			t.Errorf("the place is not named: %s", errs)
		}
		if code == cli.Good && digestOf(t, "t.parquet") != digestOf(t, "whole.parquet") {
			t.Error("another digest")
		}
	}
}

func TestImportShardMistakes(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 2)
	writeFiles(t, map[string]string{"open": shardKey, "short": shardKey[:60], "zero": strings.Repeat("0", 64), "untimed.jsonl": `{"messages":[{"role":"user","content":"a"}]}` + "\n"})
	for name, mode := range map[string]os.FileMode{"open": 0o644, "short": 0o600, "zero": 0o600} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("s", 0o700); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"import log --shard 0/2 -o s":                                               "--shard needs --key-file FILE",
		"import log --key-file key -o t.parquet":                                    "--key-file is for --shard",
		"import log --shard 0/2 --key-file key":                                     "name a folder for all shards with -o",
		"import log --shard 0/2 --key-file key -o -":                                "name a folder for all shards with -o",
		"import log --shard 0/2 --key-file key -o none":                             "-o none is no folder: make it first",
		"import log --shard 0/2 --key-file key -o t.parquet":                        "is no folder",
		"import log --shard 2/2 --key-file key -o s":                                "is no shard",
		"import log --shard /2 --key-file key -o s":                                 "takes its index from JOB_COMPLETION_INDEX",
		"import log --shard 0/2 --key-file none -o s":                               "none",
		"import log --shard 0/2 --key-file open -o s":                               "others than its owner have access",
		"import log --shard 0/2 --key-file short -o s":                              "it holds no key",
		"import log --shard 0/2 --key-file zero -o s":                               "its key is not random",
		"import log --shard 0/2 --key-file key -o s --tier raw":                     "--shard imports tier internal",
		"import log --shard 0/2 --key-file key -o s --tier public":                  "--shard imports tier internal",
		"import log --shard 0/2 --key-file key -o s --arrivals poisson:1":           "--arrivals makes times up",
		"import untimed.jsonl --shard 0/2 --key-file key -o s":                      "does not say when requests arrived",
		"import - --shard 0/2 --key-file key -o s":                                  "is no regular file",
		"merge --finish s -o t.parquet --key-file key":                              "are for the shards of an import: s has none",
		"merge --finish s -o t.parquet":                                             "it holds no parts of a recording",
		"merge --finish s/import-0-of-2.shard.parquet -o t.parquet":                 "import-0-of-2.shard.parquet",
		"profile good/import-0-of-1.shard.parquet":                                  "reprise merge --finish FOLDER",
		"merge --finish good -o t.parquet --lengths text":                           "import the shards again with --lengths text",
		"merge --finish good -o t.parquet":                                          "--key-file FILE",
		"merge --finish good -o t.parquet --key-file zero":                          "its key is not random",
		"merge --finish good -o - --key-file key":                                   "give -o FILE.parquet",
		"import log --shard 0/1 --key-file key -o good/import-0-of-1.shard.parquet": "exists",
	} {
		if strings.Contains(args, "good") {
			importShards(t, "good", 1, "--keep-templates", "--set", "k-template=2")
		}
		t.Setenv("JOB_COMPLETION_INDEX", "")
		var out, errs strings.Builder
		code := run(t.Context(), strings.Fields(args), strings.NewReader(`{"timestamp":"2026-01-02T03:04:05Z","prompt":"a"}`), &out, &errs)
		if said := strings.ReplaceAll(errs.String(), "\n  ", " "); code == cli.Good || !strings.Contains(said, want) || strings.Contains(said, shardKey[:16]) {
			t.Errorf("%s: want %s, exit code %d\n%s", args, want, code, errs.String())
		}
	}
	if left, _ := filepath.Glob("s/*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
