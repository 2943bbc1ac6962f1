package job

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
)

// logs is an import with one of everything.
func logs() Import {
	return Import{Job: Job{Name: "june", Shards: 32, Inputs: []string{"/data/logs", "/data/more.jsonl"}, Args: []string{"--format=openai-log", "--map=a=$(HOME)"},
		Image: "registry.example/reprise@sha256:" + strings.Repeat("0a", 32), Results: "shards", Data: "logs", Key: "import-key/key", Cores: 2, Memory: "512Mi", Deadline: 24 * time.Hour},
		Parallel: 8}
}

func TestImportGolden(t *testing.T) {
	m := logs()
	m.MergeOpens = true
	for name, print := range map[string]func() ([]byte, error){"import.yaml": m.Kubernetes, "importmerge.yaml": m.KubernetesMerge} {
		got, err := print()
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, got)
	}
	m.Results, m.KeyFile, m.Inputs = "/shared/results", "/shared/the key", []string{"/shared/logs"}
	got, err := m.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "import.sh", got)
}

// What must hold of an import job whatever the options: the key comes from the Secret as a file
// and is in no argument and no variable; each shard is tried again by itself, and not when its command line is
// wrong; logs are read only; no more pods run at once than there are shards.
func TestImportJob(t *testing.T) {
	for _, parallel := range []int{0, 8, 100} {
		m := logs()
		m.Parallel = parallel
		out, err := m.Kubernetes()
		if err != nil {
			t.Fatal(err)
		}
		var job map[string]any
		if err := yaml.Unmarshal(out, &job); err != nil {
			t.Fatal(err)
		}
		spec := at(t, job, "spec")
		pod := at(t, spec, "template", "spec")
		container := at(t, pod, "containers", 0)
		running := map[int]uint64{0: 32, 8: 8, 100: 32}[parallel]
		for path, want := range map[string]any{"completionMode": "Indexed", "completions": uint64(32), "parallelism": running, "backoffLimitPerIndex": uint64(3), "activeDeadlineSeconds": uint64(86400)} {
			if got := at(t, spec, path); got != want {
				t.Errorf("%s: %v, want %v", path, got, want)
			}
		}
		if at(t, spec, "maxFailedIndexes") != nil {
			t.Error("one index that fails ends the others, whose shards are wanted all the same")
		}
		if rule := at(t, spec, "podFailurePolicy", "rules", 0); at(t, rule, "action") != "Ignore" || at(t, rule, "onPodConditions", 0, "type") != "DisruptionTarget" {
			t.Errorf("rule %v", rule)
		}
		if rule := at(t, spec, "podFailurePolicy", "rules", 1); at(t, rule, "action") != "FailIndex" || at(t, rule, "onExitCodes", "values", 0) != uint64(2) || at(t, rule, "onExitCodes", "containerName") != at(t, container, "name") {
			t.Errorf("rule %v", rule)
		}
		args, _ := at(t, container, "args").([]any)
		var words []string
		for _, a := range args {
			words = append(words, a.(string))
		}
		want := []string{"import", "/data/logs", "/data/more.jsonl", "--format=openai-log", "--map=a=$$(HOME)", "--shard=/32", "--key-file=/run/reprise/key", "--output=/results", "--quiet"}
		if !slices.Equal(words, want) {
			t.Errorf("arguments %q, want %q", words, want)
		}
		mounts, _ := at(t, container, "volumeMounts").([]any)
		seen := map[any]bool{}
		for _, mount := range mounts {
			path := at(t, mount, "mountPath")
			seen[path] = true
			if readOnly := at(t, mount, "readOnly") == true; readOnly != (path == "/data" || path == "/run/reprise") {
				t.Errorf("%v: read only %v", path, readOnly)
			}
			if path == "/results" && at(t, mount, "subPath") != "june" {
				t.Errorf("the shards go to %v", mount)
			}
		}
		for _, path := range []string{"/data", "/results", "/tmp", "/run/reprise"} {
			if !seen[path] {
				t.Errorf("nothing is mounted at %s", path)
			}
		}
		if env := at(t, container, "env"); strings.Contains(string(out), "secretKeyRef") {
			t.Errorf("the key is in a variable: %v", env)
		}
	}
	m := logs()
	plain, err := m.KubernetesMerge()
	if err != nil || strings.Contains(string(plain), "import-key") || !strings.Contains(string(plain), "--finish") {
		t.Errorf("a merge that opens nothing has the key, or does not finish: %v\n%s", err, plain)
	}
}

// The shell runs what was meant, and the array runs no more tasks at once than were asked for.
func TestImportSlurm(t *testing.T) {
	dir := t.TempDir()
	m := logs()
	m.Results, m.KeyFile, m.Inputs, m.Args = dir, dir+"/the key", []string{"/shared/my logs"}, []string{"--map=a=$x'y"}
	out, err := m.Slurm()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "#SBATCH --array=0-31%8\n") || !strings.Contains(string(out), "#SBATCH --requeue\n") {
		t.Errorf("%s", out)
	}
	script := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(script, out, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "srun"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", script)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := append([]string{"reprise"}, m.shardArgs(m.KeyFile, dir+"/june")...)
	if got := strings.Split(strings.TrimSpace(string(said)), "\n"); !slices.Equal(got, want) {
		t.Errorf("the shell runs %q, want %q", got, want)
	}
	if _, err := os.Stat(dir + "/june"); err != nil {
		t.Error("the folder of the shards is not made")
	}
}

func TestImportRefuses(t *testing.T) {
	for want, change := range map[string]func(*Import){
		"below /data":      func(m *Import) { m.Inputs = []string{"/data/logs", "/logs"} },
		"needs an input":   func(m *Import) { m.Inputs = nil },
		"NAME/KEY":         func(m *Import) { m.Key = "" },
		"the secret":       func(m *Import) { m.Key = "key" },
		"at least one":     func(m *Import) { m.Parallel = -1 },
		"0 shards":         func(m *Import) { m.Shards = 0 },
		"volume for the r": func(m *Import) { m.Results = "A B" },
	} {
		m := logs()
		change(&m)
		for _, print := range []func() ([]byte, error){m.Kubernetes, m.KubernetesMerge} {
			if _, err := print(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	for want, change := range map[string]func(*Import){
		"that all nodes see": func(m *Import) { m.KeyFile = "" },
		"for the results":    func(m *Import) { m.Results = "a b" },
	} {
		m := logs()
		m.Results, m.KeyFile = "/shared", "/shared/key"
		change(&m)
		if _, err := m.Slurm(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
