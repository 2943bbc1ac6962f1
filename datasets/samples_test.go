package datasets

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// samples are the formats that are tried on real files, by the name of their folder.
var samples = []string{"langfuse", "aibrix", "api-log", "langsmith", "mlflow", "otel-genai", "dynamo-requests", "trtllm-trace", "trie"}

// Real exports are recognised and read whole: requests and tokens are those that a
// script in another language counts. The files belong to others and are not part of the
// project; REPRISE_TEST_SAMPLES names their folder, with a folder for each format.
func TestRealSamples(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_SAMPLES")
	if root == "" {
		t.Skip("REPRISE_TEST_SAMPLES does not name a folder of real exports")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which counts the samples")
	}
	for _, format := range samples {
		t.Run(format, func(t *testing.T) {
			var paths []string
			err := filepath.WalkDir(filepath.Join(root, format), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					paths = append(paths, path)
				}
				return err
			})
			if err != nil || len(paths) == 0 {
				t.Skipf("%d files: %v", len(paths), err)
			}
			out, err := exec.Command(python, append([]string{"testdata/count.py", format}, paths...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			counts := strings.Split(strings.TrimSpace(string(out)), "\n")
			for i, path := range paths {
				if got := countSample(t, path, format); i >= len(counts) || got != counts[i] {
					t.Errorf("%s: %s, and the script counts %s", path, got, slices.Concat(counts, []string{"nothing"})[min(i, len(counts))])
				}
			}
			t.Logf("%d files", len(paths))
		})
	}
}

// What the calls of real Langfuse traces waited for, and how long tools ran, is what a script
// counts that goes about it in another way.
func TestRealLangfuseLinks(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("REPRISE_TEST_SAMPLES"), "langfuse", "*.trace.json"))
	python, err := exec.LookPath("python3")
	if err != nil || len(paths) == 0 {
		t.Skip("there are no real traces, or no python3")
	}
	out, err := exec.Command(python, append([]string{"testdata/langfuse_tools.py"}, paths...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		all, _, err := readTogether([]File{fileNamed(paths[i])}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var sums [4]int64
		for k := range all {
			if n := len(all[k].Parents); n > 0 {
				sums[0], sums[1], sums[3] = sums[0]+1, sums[1]+int64(n), sums[3]+all[k].Think.Milliseconds()
				if all[k].Tool != nil {
					sums[2] += all[k].Tool.Milliseconds()
				}
			}
		}
		if got := strings.ReplaceAll(fmt.Sprint(sums), " ", ", "); got != want {
			t.Errorf("%s: %s, and the script counts %s", paths[i], got, want)
		} else {
			t.Logf("%s: %s", filepath.Base(paths[i]), got)
		}
	}
}

// countSample reads a file and sums up what it holds.
func countSample(t *testing.T, path, format string) string {
	t.Helper()
	all, info, err := readTogether([]File{fileNamed(path)}, Options{})
	if err != nil || info.Format != format || info.Bad > 0 {
		return fmt.Sprintf("read as %s with %d bad records: %v", info.Format, info.Bad, err)
	}
	var sums [4]int64
	for i := range all {
		for k, n := range []*int32{all[i].InputTokens, all[i].OutputTokens, all[i].Cached, all[i].Reasoning} {
			if n != nil {
				sums[k] += int64(*n)
			}
		}
	}
	return fmt.Sprintf("[%d, %d, %d, %d, %d]", len(all), sums[0], sums[1], sums[2], sums[3])
}
