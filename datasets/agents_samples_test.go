package datasets

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// agentSamples are the folders of real session files, each a source, by their format.
var agentSamples = map[string][]string{
	"claude-code": {"sniffly/-Users-chip-dev-ai-music", "tracelab", "viewer", "claude-code-log", "claude-code-log-broken"},
	"cline":       {"CoreGems-Cline-Xray/task_sample", "haram-333-fineye", "Jeehunter-mcp-vscode-server/MCP"},
	"codex":       {"localpush", "tracelab", "ccusage/legacy", "ccusage/modern"},
	"gemini-cli":  {"."},
	"opencode":    {"."},
	"qwen-code":   {"."},
	"weka":        {"."},
	"openhands":   {"multi_swe_bench"},
	"swe-agent":   {"demonstrations", "tests"},
	"aider":       {"."},
}

// brokenSamples are how many records of a folder are broken on purpose.
var brokenSamples = map[string]int64{"claude-code/claude-code-log-broken": 4, "codex/ccusage/modern": 1}

// Real sessions of agents are recognised and read whole: calls and tokens are those
// that a script in another language counts in the same folder.
func TestAgentSamples(t *testing.T) {
	root := os.Getenv("REPRISE_TEST_SAMPLES")
	if root == "" {
		t.Skip("REPRISE_TEST_SAMPLES does not name a folder of real sessions")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3, which counts the samples")
	}
	for format, folders := range agentSamples {
		for _, folder := range folders {
			t.Run(format+"/"+folder, func(t *testing.T) {
				path := filepath.Join(root, format, folder)
				files, err := Expand(path)
				if err != nil {
					t.Skip(err)
				}
				all, info, err := readTogether(files, Options{AllowLongSpan: true, MaxBad: 0.5})
				if err != nil || info.Format != format || info.Bad != brokenSamples[format+"/"+folder] {
					t.Fatalf("read as %s with %d bad records: %v", info.Format, info.Bad, err)
				}
				var sums [4]int64
				for i := range all {
					checkEntry(t, &all[i], int64(i), &info)
					for k, n := range []*int32{all[i].InputTokens, all[i].OutputTokens, all[i].Cached, all[i].Reasoning} {
						if n != nil {
							sums[k] += int64(*n)
						}
					}
				}
				got := fmt.Sprintf("[%d, %d, %d, %d, %d]", len(all), sums[0], sums[1], sums[2], sums[3])
				want, err := exec.Command(python, "testdata/agents.py", format, path).Output()
				if err != nil || got != strings.TrimSpace(string(want)) {
					t.Errorf("%s, and the script counts %s, %v", got, want, err)
				}
				t.Logf("%d files: %s\n%s", len(files), got, strings.Join(info.Notes, "\n"))
			})
		}
	}
}
