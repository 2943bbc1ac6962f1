package job

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "write the golden files")

// load is a load with one of everything.
func load() Spec {
	return Spec{Job: Job{Name: "chat", Shards: 16, Inputs: []string{"/data/w.parquet"}, Args: []string{"--url=http://llm:8000", "--speed=2", `--header=X-A=it's $(HOME)`},
		Image: "registry.example/reprise@sha256:" + strings.Repeat("0a", 32), Results: "results", Key: "llm/token", Cores: 2, Memory: "2Gi", Deadline: 90 * time.Minute},
		Start: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), KeyName: "OPENAI_API_KEY"}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is another (%v): run with -update and look at the difference\n%s", path, err, got)
	}
}

// With a bucket in place of the volume, shards write objects into its folder and the merge reads
// them there; only a volume with inputs is mounted.
func TestBucket(t *testing.T) {
	s := load()
	s.Results, s.Bucket, s.Grant, s.Inputs = "", "s3://bench/runs/", "s3-key", []string{"s3://bench/w.parquet"}
	got, err := s.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	merge, err := s.KubernetesMerge()
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{string(got), string(merge)} {
		if strings.Contains(doc, "persistentVolumeClaim") || strings.Contains(doc, "/results") || strings.Contains(doc, "/data") {
			t.Errorf("a volume:\n%s", doc)
		}
		if !strings.Contains(doc, "envFrom:\n        - secretRef:\n            name: s3-key\n") {
			t.Errorf("no credentials:\n%s", doc)
		}
	}
	for doc, wants := range map[string][]string{string(got): {"- s3://bench/w.parquet\n", "- --output=s3://bench/runs/chat/shard-$(JOB_COMPLETION_INDEX).parquet\n"},
		string(merge): {"- s3://bench/runs/chat\n", "- s3://bench/runs/chat.parquet\n"}} {
		for _, want := range wants {
			if !strings.Contains(doc, want) {
				t.Errorf("no %q:\n%s", want, doc)
			}
		}
	}
	s.Inputs, s.Data = []string{"/data/w.parquet"}, "workloads"
	if got, err = s.Kubernetes(); err != nil || !strings.Contains(string(got), "claimName: workloads") || !strings.Contains(string(got), "mountPath: /data") {
		t.Errorf("%v\n%s", err, got)
	}
	for name, change := range map[string]func(*Spec){
		"no volume is at /data":      func(s *Spec) { s.Data = "" },
		"to a volume or to a bucket": func(s *Spec) { s.Results = "results" },
		"name a folder of a store":   func(s *Spec) { s.Bucket = "s3://Bench?key=1" },
		"store's credentials":        func(s *Spec) { s.Grant = "S3" },
		"as an object":               func(s *Spec) { s.Inputs = []string{"s3://bench/w?sig=1"} },
	} {
		bad := s
		change(&bad)
		if _, err := bad.Kubernetes(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is printed is what was looked at. The module cmd/internal/jobcheck holds it to the
// validation of Kubernetes.
func TestGolden(t *testing.T) {
	s := load()
	for name, print := range map[string]func() ([]byte, error){"load.yaml": s.Kubernetes, "merge.yaml": s.KubernetesMerge} {
		got, err := print()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, got)
	}
	s.Results, s.Image, s.Key = "/shared/results/", "", ""
	got, err := s.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "load.sh", got)
}

// at is the value at a path of a document.
func at(t *testing.T, doc any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, _ := doc.(map[string]any)
			doc = m[key]
		case int:
			l, _ := doc.([]any)
			if key >= len(l) {
				t.Fatalf("%v: there are %d", path, len(l))
			}
			doc = l[key]
		}
	}
	return doc
}

// What must hold of a load job whatever the options: all pods at once and none replaced, requests
// that are limits, no secret in it, the shard's own file, the clock of the first.
func TestLoadJob(t *testing.T) {
	for _, alone := range []bool{false, true} {
		s := load()
		s.Alone, s.Data, s.Namespace = alone, "workloads", "bench"
		out, err := s.Kubernetes()
		if err != nil {
			t.Fatal(err)
		}
		docs := strings.Split(string(out), "\n---\n")
		var job, service map[string]any
		if err := yaml.Unmarshal([]byte(docs[1]), &job); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(docs[0]), &service); err != nil {
			t.Fatal(err)
		}
		spec := at(t, job, "spec")
		pod := at(t, spec, "template", "spec")
		container := at(t, pod, "containers", 0)
		for path, want := range map[string]any{"completionMode": "Indexed", "completions": uint64(16), "parallelism": uint64(16), "backoffLimitPerIndex": uint64(0),
			"maxFailedIndexes": uint64(0), "podReplacementPolicy": "Failed", "activeDeadlineSeconds": uint64(5400)} {
			if got := at(t, spec, path); got != want {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
		if at(t, pod, "restartPolicy") != "Never" || at(t, pod, "subdomain") != at(t, service, "metadata", "name") || at(t, service, "spec", "clusterIP") != "None" {
			t.Errorf("pod %v, service %v", pod, service)
		}
		for _, amount := range []string{"cpu", "memory"} {
			if r, l := at(t, container, "resources", "requests", amount), at(t, container, "resources", "limits", amount); r != l || r == nil {
				t.Errorf("%s: requests %v, limits %v", amount, r, l)
			}
		}
		required := at(t, pod, "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
		if (required != nil) != alone {
			t.Errorf("alone %v: required anti-affinity %v", alone, required)
		}
		args, _ := at(t, container, "args").([]any)
		for _, want := range []any{"--shard=/16", "--start-clock=2026-05-01T12:00:00Z", "--output=/results/shard-$(JOB_COMPLETION_INDEX).parquet", "--set=clock-peer=chat-0.chat:7123", "--header=X-A=it's $$(HOME)"} {
			if !slices.Contains(args, want) {
				t.Errorf("%v is not in %v", want, args)
			}
		}
		env := at(t, container, "env", 2)
		if at(t, env, "valueFrom", "secretKeyRef", "name") != "llm" || at(t, env, "value") != nil {
			t.Errorf("the key comes from %v", env)
		}
	}
}

// The script is one that a shell reads, and its words are the arguments that were given.
func TestSlurmWords(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	s := load()
	s.Results, s.Image, s.Key, s.Alone, s.ClockPeer = t.TempDir(), "", "", true, "ntp:123"
	s.Args = append(s.Args, `--extra-body={"a": "b c\n$x`+"`y`"+`'"}`)
	script, err := s.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "srun"), []byte("#!/bin/bash\nprintf '%s\\0' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash)
	cmd.Stdin = bytes.NewReader(script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "SLURM_ARRAY_TASK_ID=7")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	want := append([]string{"reprise"}, s.shardArgs()...)
	want = append(want, "--set=clock-peer=ntp:123", "--output="+s.Results+"/chat/shard-7.parquet")
	if !slices.Equal(got, want) {
		t.Errorf("the shell reads\n%q\nwant\n%q", got, want)
	}
	if text := string(script); !strings.Contains(text, "#SBATCH --array=0-15\n") || !strings.Contains(text, "#SBATCH --time=0-01:30:00\n") || !strings.Contains(text, "#SBATCH --exclusive\n") {
		t.Error(text)
	}
}

// What no cluster takes is refused with what to write.
func TestSpecRefuses(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"the name":               func(s *Spec) { s.Name = "Chat" },
		"none for a Service":     func(s *Spec) { s.Name = strings.Repeat("a", 51) },
		"shards":                 func(s *Spec) { s.Shards = mostShards + 1 },
		"a core at least":        func(s *Spec) { s.Cores = 0 },
		"the memory":             func(s *Spec) { s.Memory = "lots" },
		"the deadline":           func(s *Spec) { s.Deadline = 0 },
		"the instant":            func(s *Spec) { s.Start = time.Time{} },
		"the image":              func(s *Spec) { s.Image = "a b" },
		"PersistentVolumeClaim":  func(s *Spec) { s.Results = "Results/x" },
		"volume with the inputs": func(s *Spec) { s.Data = "A" },
		"below /data":            func(s *Spec) { s.Inputs = []string{"w.parquet"} },
		"the secret":             func(s *Spec) { s.Key = "llm" },
		"the namespace":          func(s *Spec) { s.Namespace = "a.b" },
	} {
		s := load()
		s.Args = slices.Clone(s.Args)
		change(&s)
		if _, err := s.Kubernetes(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s := load()
	s.Results = "/shared/$(rm -rf)"
	if _, err := s.Slurm(); err == nil || !strings.Contains(err.Error(), "the folder") {
		t.Errorf("a folder that a shell would run: %v", err)
	}
}
