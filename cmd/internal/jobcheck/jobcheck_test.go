package jobcheck

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"sigs.k8s.io/yaml"
)

// An option of job replay: each of its values is tried with each of the others'.
var options = [][][]string{
	{{"--shards", "1"}, {"--shards", "16"}, {"--shards", "1000"}},
	{{}, {"--alone"}},
	{{}, {"--data-claim", "workloads"}},
	{{}, {"--api-key-secret", "llm-key/token"}, {"--api-key-secret", "llm-key/token", "--api-key-env", "MY_KEY"}},
	{{}, {"--namespace", "bench", "--name", "load-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz"}},
	{{}, {"--cores", "8", "--memory", "512Mi", "--deadline", "90min"}},
	{{}, {"--set", "clock-peer=ntp.example:123", "--set", "max-clock-offset=5ms"}},
	{{}, {"--merge-step"}},
	{{}, {"--header", "X-Quote=it's \"$(HOME)\": {a}", "--extra-body", `{"a":[1,"#"]}`, "--speed", "2", "--duration", "10min", "--warmup", "30s"}, {"--sessions", "4000", "--set", "ramp-up=1min"}},
}

// The same of job import.
var importOptions = [][][]string{
	{{"--shards", "1"}, {"--shards", "32"}, {"--shards", "1000", "--parallel", "50"}},
	{{}, {"--data-claim", "logs"}},
	{{}, {"--namespace", "bench", "--name", "june-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz"}},
	{{}, {"--cores", "8", "--memory", "4Gi", "--deadline", "90min"}},
	{{}, {"--keep-templates", "--set", "k-template=20"}},
	{{}, {"--format", "openai-log", "--map", "a=$(HOME)\": {a}", "--tokenizer", "/data/tokenizer.json"}},
	{{}, {"--merge-step"}},
}

// combine calls each with every combination.
func combine(rest [][][]string, args []string, each func([]string)) {
	if len(rest) == 0 {
		each(args)
		return
	}
	for _, values := range rest[0] {
		combine(rest[1:], append(args[:len(args):len(args)], values...), each)
	}
}

// Every combination of options gives manifests that the API server takes.
func TestManifestsAreValid(t *testing.T) {
	binary := build(t)
	combinations, objects := 0, map[string]int{}
	image := []string{"--image", "registry.example/reprise@sha256:" + strings.Repeat("0a", 32)}
	volume, bucket := append(image, "--results-claim", "results"), append(image, "--results-bucket", "s3://bench/runs")
	each := func(args []string) {
		var stderr bytes.Buffer
		cmd := exec.Command(binary, args...)
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, &stderr)
		}
		combinations++
		for _, doc := range bytes.Split(out, []byte("\n---\n")) {
			kind, faults := check(doc)
			objects[kind]++
			for _, fault := range faults {
				t.Errorf("%v: %s", args, fault)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	combine(options, append([]string{"job", "replay", "/data/w.parquet", "--url", "http://llm:8000", "--start-clock", "+20min"}, volume...), each)
	combine(importOptions, append([]string{"job", "import", "/data/logs", "/data/more/*.jsonl", "--key-secret", "import-key/key"}, volume...), each)
	granted := [][]string{{}, {"--bucket-secret", "s3-key"}}
	combine(append([][][]string{granted}, options[1:]...), append([]string{"job", "replay", "s3://bench/w.parquet", "--shards", "16", "--url", "http://llm:8000", "--start-clock", "+20min"}, bucket...), each)
	combine(append([][][]string{granted}, importOptions[1:]...), append([]string{"job", "import", "s3://logs/may", "--shards", "32", "--key-secret", "import-key/key"}, bucket...), each)
	t.Logf("%d combinations of options, %v", combinations, objects)
}

// The check finds what it is for: a manifest that is broken in one place is refused.
func TestFaultsAreFound(t *testing.T) {
	binary := build(t)
	out, err := exec.Command(binary, "job", "replay", "/data/w.parquet", "--shards", "4", "--image", "a/b", "--results-claim", "results", "--start-clock", "+20min").Output()
	if err != nil {
		t.Fatal(err)
	}
	docs := bytes.Split(out, []byte("\n---\n"))
	for i, doc := range docs {
		if _, faults := check(doc); len(faults) > 0 {
			t.Fatalf("document %d: %v", i, faults)
		}
	}
	for _, fault := range [][2]string{
		{"completionMode: Indexed", "completionMode: NonIndexed"},
		{"backoffLimitPerIndex: 0", "backoffLimitPerIndexx: 0"},
		{"restartPolicy: Never", "restartPolicy: Always"},
		{"podReplacementPolicy: Failed", "podReplacementPolicy: Sometimes"},
		{"maxFailedIndexes: 0", "maxFailedIndexes: 100001"},
		{"cpu: \"2\"", "cpu: \"-2\""},
		{"name: tmp\n          mountPath", "name: temp\n          mountPath"},
		{"fieldPath: metadata.annotations", "fieldPath: metadata.annotation"},
		{"topologyKey: kubernetes.io/hostname", "topologyKey: kubernetes.io/host/name"},
	} {
		broken := strings.Replace(string(docs[1]), fault[0], fault[1], 1)
		if broken == string(docs[1]) {
			t.Errorf("the manifest has no %q", fault[0])
		} else if _, faults := check([]byte(broken)); len(faults) == 0 {
			t.Errorf("%q is taken", fault[1])
		}
	}
}

// And in a manifest of an import.
func TestImportFaultsAreFound(t *testing.T) {
	out, err := exec.Command(build(t), "job", "import", "/data/logs", "--shards", "4", "--image", "a/b", "--results-claim", "results", "--key-secret", "import-key/key").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, faults := check(out); len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, fault := range [][2]string{
		{"backoffLimitPerIndex: 3\n", "\n"},
		{"action: FailIndex", "action: Fail_Index"},
		{"type: DisruptionTarget", "type: \"\""},
		{"containerName: import", "containerName: other"},
		{"operator: In", "operator: Is"},
		{"defaultMode: 288", "defaultMode: 4096"},
		{"secretName: import-key", "secretNames: import-key"},
		{"path: key", "path: ../key"},
	} {
		broken := strings.Replace(string(out), fault[0], fault[1], 1)
		if broken == string(out) {
			t.Errorf("the manifest has no %q", fault[0])
		} else if _, faults := check([]byte(broken)); len(faults) == 0 {
			t.Errorf("%q is taken", fault[1])
		}
	}
}

// check decodes an object strictly and has the API server's validation look at it.
func check(doc []byte) (kind string, faults []string) {
	var head struct{ Kind string }
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return "", []string{err.Error()}
	}
	switch head.Kind {
	case "Job":
		var given batchv1.Job
		var job batch.Job
		if err := decode(doc, &given, &job, func() {
			if given.Namespace == "" {
				given.Namespace = "default"
			}
			// As the server does when a job is created (batch/job/strategy.go).
			given.UID = "7e9f0000-0000-0000-0000-000000000000"
			labels := map[string]string{"batch.kubernetes.io/controller-uid": string(given.UID)}
			given.Spec.Selector = selectorOf(labels)
			for k, v := range map[string]string{"batch.kubernetes.io/controller-uid": string(given.UID), "batch.kubernetes.io/job-name": given.Name,
				"controller-uid": string(given.UID), "job-name": given.Name} {
				given.Spec.Template.Labels[k] = v
			}
		}); err != nil {
			return head.Kind, []string{err.Error()}
		}
		for _, e := range batchvalidation.ValidateJob(&job, batchvalidation.JobValidationOptions{RequirePrefixedLabels: true}) {
			faults = append(faults, e.Error())
		}
	case "Service":
		var given corev1.Service
		var service core.Service
		if err := decode(doc, &given, &service, func() {
			if given.Namespace == "" {
				given.Namespace = "default"
			}
			// As the server's allocators do for a headless Service.
			policy := corev1.IPFamilyPolicySingleStack
			given.Spec.ClusterIPs, given.Spec.IPFamilies, given.Spec.IPFamilyPolicy = []string{"None"}, []corev1.IPFamily{corev1.IPv4Protocol}, &policy
		}); err != nil {
			return head.Kind, []string{err.Error()}
		}
		for _, e := range corevalidation.ValidateServiceCreate(&service) {
			faults = append(faults, e.Error())
		}
	default:
		faults = []string{fmt.Sprintf("an object of kind %q", head.Kind)}
	}
	return head.Kind, faults
}

// build makes the program of this tree.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reprise")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/reprise")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
