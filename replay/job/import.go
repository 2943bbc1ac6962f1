package job

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An Import is an import of logs in shards. Its shards need not run at once, and each is tried
// again by itself.
type Import struct {
	Job
	Parallel   int    // pods at once; 0 is all
	KeyFile    string // of Slurm: the key that all shards share, in a file that all nodes see
	MergeOpens bool   // the merge needs the key too, as with --keep-templates
}

// Where the key is in a pod.
const (
	keyAt   = "/run/reprise"
	keyPath = keyAt + "/key"
)

// retries is how often a shard is tried again. What it had written by then is nowhere: a shard
// appears whole.
const retries = 3

// usageError is the exit code of a command line that no repetition makes right.
const usageError = 2

func (m *Import) check() error {
	if m.Parallel < 0 {
		return errors.New("at least one shard must run")
	}
	return m.Job.check()
}

func (m *Import) kubernetes() error {
	if err := m.check(); err != nil {
		return err
	}
	if m.Key == "" {
		return errors.New("all shards hash under one key: name the Secret that has it, as NAME/KEY")
	}
	return m.Job.kubernetes()
}

// shardArgs are the arguments of any shard, which takes its index from its environment.
func (m *Import) shardArgs(key, folder string) []string {
	return append(slices.Concat([]string{"import"}, m.Inputs, m.Args), "--shard=/"+strconv.Itoa(m.Shards),
		"--key-file="+key, "--output="+folder, "--quiet")
}

// Kubernetes is the manifest of the Indexed Job that imports the shards, to a folder of the volume
// or the bucket. A pod
// that is evicted or drained is started again and not counted; one that fails is tried again some
// times; one whose command line is wrong is not.
func (m *Import) Kubernetes() ([]byte, error) {
	if err := m.kubernetes(); err != nil {
		return nil, err
	}
	again, labels := retries, m.labels("import")
	c := m.container("import", literally(m.shardArgs(keyPath, m.folder())))
	m.mount(&c)
	pod := m.pod("shard", c)
	m.giveKey(&pod)
	pod.Metadata.Labels = labels
	parallel := m.Shards
	if m.Parallel > 0 {
		parallel = min(m.Parallel, m.Shards)
	}
	load := batchJob{"batch/v1", "Job", meta{m.Name, m.Namespace, labels}, jobSpec{
		Mode: "Indexed", Completions: m.Shards, Parallelism: parallel, BackoffPerIndex: &again,
		Failures: &failurePolicy{[]failureRule{
			{Action: "Ignore", Conditions: []podCondition{{"DisruptionTarget", "True"}}},
			{Action: "FailIndex", ExitCodes: &exitCodes{"import", "In", []int{usageError}}},
		}},
		Deadline: int64(m.Deadline / time.Second), Template: pod,
	}}
	secret, key, _ := strings.Cut(m.Key, "/")
	head := fmt.Sprintf(`# %[1]d shards of one import, %[2]d at once. Their key is made once, and deleted with the shards:
#   openssl rand -hex 32 > key && kubectl%[3]s create secret generic %[4]s --from-file=%[5]s=key && rm key
# When all are complete, make the trace:
#   kubectl%[3]s wait --for=condition=complete --timeout=%[6]ds job/%[7]s
#   reprise job import … --merge-step | kubectl apply -f -
`, m.Shards, parallel, m.inNamespace(), secret, key, int(m.Deadline.Seconds()), m.Name)
	return documents(head, load)
}

// KubernetesMerge is the manifest of the Job that makes a trace of the shards, which ends as
// NAME.parquet on the volume or in the bucket.
func (m *Import) KubernetesMerge() ([]byte, error) {
	if err := m.kubernetes(); err != nil {
		return nil, err
	}
	if !m.MergeOpens {
		return documents("", m.merging("--finish"))
	}
	merge := m.merging("--finish", "--key-file="+keyPath)
	m.giveKey(&merge.Spec.Template)
	return documents("", merge)
}

// giveKey mounts the key.
func (m *Import) giveKey(pod *template) {
	secret, key, _ := strings.Cut(m.Key, "/")
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		volume{Name: "key", Secret: &secretFiles{secret, 0o440, []secretFile{{key, "key"}}}})
	c := &pod.Spec.Containers[0]
	c.Mounts = append(c.Mounts, volumeMount{Name: "key", Path: keyAt, ReadOnly: true})
}

// Slurm is the script of an array with a task for each shard, for sbatch. Results is a folder
// that all nodes see.
func (m *Import) Slurm() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if !folderOf.MatchString(m.Results) {
		return nil, fmt.Errorf("the folder %q for the results: name one that all nodes see, by letters, "+
			"digits, and ._-/", m.Results)
	}
	if m.KeyFile == "" {
		return nil, errors.New("all shards hash under one key: name a file that has it and that all nodes see")
	}
	folder := strings.TrimSuffix(m.Results, "/") + "/" + m.Name
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	array := fmt.Sprintf("0-%d", m.Shards-1)
	if m.Parallel > 0 && m.Parallel < m.Shards {
		array += "%" + strconv.Itoa(m.Parallel)
	}
	m.head(line, array)
	line("#SBATCH --requeue")
	line("#SBATCH --output=%s-%%a.log", m.Name)
	line("#")
	line("# %d shards of one import. Submit this and the step that makes the trace:", m.Shards)
	line("#   import=$(sbatch --parsable %s.sh)", m.Name)
	finish := "reprise merge --finish " + folder + " -o " + folder + ".parquet"
	if m.MergeOpens {
		finish += " --key-file=" + quoted(m.KeyFile)
	}
	line("#   sbatch --dependency=afterok:$import --wrap %s", quoted(finish))
	line("# A shard that failed is submitted again by its number: sbatch --array=3 %s.sh", m.Name)
	line("set -eu")
	line("mkdir -p %s", folder)
	words := []string{"exec", "srun", "reprise"}
	for _, a := range m.shardArgs(m.KeyFile, folder) {
		words = append(words, quoted(a))
	}
	line("%s", strings.Join(words, " \\\n  "))
	return b.Bytes(), nil
}
