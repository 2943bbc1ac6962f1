package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/textpage"
)

// fullEnvironment has everything that there is to say.
func fullEnvironment() *result.Environment {
	return &result.Environment{
		Host: host.Machine{OS: "linux", Arch: "amd64", Kernel: "6.8.0", CPU: "AMD EPYC 7543", Cores: 64, MemoryBytes: 256 << 30, Go: "go1.26.0",
			Build: "5f0b02c75b57", LimitCores: trace.Ptr(2.5), LimitMemory: trace.Ptr(int64(4 << 30))},
		Servers: []result.ServerModels{
			{Engine: "vllm", Version: "0.11.0", Models: []result.ServedModel{{ID: "m", OwnedBy: "vllm", MaxLen: 4096}}},
			{Engine: "vllm", Version: "0.11.0", Models: []result.ServedModel{{ID: "m", OwnedBy: "vllm", MaxLen: 4096}}},
		},
		GPUs: []host.GPU{{Name: "NVIDIA H100", Count: 8, MemoryMiB: 81920, Driver: "550.54", PowerLimitW: 700}},
		Deployment: &result.Deployment{GPU: "H100", GPUs: 8, GPUMemoryGB: 80, Interconnect: "NVLink", Parameters: 70e9, Quantization: "fp8", TP: 8, PP: 1,
			Engine: "vllm 0.11.0", EngineFlags: "--max-num-seqs 256"},
	}
}

// made are the facts of where a run was made that tests of its environment hold.
func made(run result.Run) (rows [][]string) {
	for _, f := range Made(Summary{Run: run}) {
		if slices.Contains([]string{"Engine", "Model", "GPUs", "Engine's flags", "Client"}, f.Label) {
			rows = append(rows, []string{f.Label, f.Value})
		}
	}
	return rows
}

func TestEnvironment(t *testing.T) {
	run := result.Run{Load: result.Load{Model: "m"}, Environment: fullEnvironment()}
	want := [][]string{
		{"GPUs", "8 × H100, 80 GB each, NVLink, as given"},
		{"Client", "linux/amd64, AMD EPYC 7543, 64 cores, 256 GiB, limited to 2.5 cores, limited to 4 GiB, kernel 6.8.0, go1.26.0"},
		{"Engine", "vllm 0.11.0 (as given), vllm 0.11.0 (as the server says)"},
		{"Engine's flags", "--max-num-seqs 256"},
		{"Model", "m, 70B parameters, fp8, TP 8, PP 1"},
	}
	if got := made(run); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	run.Environment.Deployment = nil
	run.Environment.Servers[0].Models[0].Parameters = 494032768
	want = [][]string{
		{"GPUs", "8 × NVIDIA H100, 80 GiB each, 700 W each at most, driver 550.54, of the client's host, where the server is too"},
		want[1],
		{"Engine", "vllm 0.11.0 (as the server says)"},
		{"Model", "m, 494M parameters"},
	}
	if got := made(run); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	run.Environment.Servers = []result.ServerModels{{Version: "7", Models: []result.ServedModel{{ID: "m", OwnedBy: "vllm"}}}}
	if got := made(run)[2][1]; got != "version 7 (as the server says)" {
		t.Errorf("the owner of a model is taken for the engine: %s", got)
	}
}

// The text and the page begin and end with it, within their bounds.
func TestEnvironmentShown(t *testing.T) {
	run, results, opts := smallRun()
	run.Environment = fullEnvironment()
	run.Environment.Deployment.EngineFlags = strings.Repeat("--flag \x1b ", 50)
	s := summarise(t, run, opts, results...)
	var text, html bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	holdWidth(t, text.String())
	if err := Page(s).Write(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 × H100, 80 GB each, NVLink", "AMD EPYC 7543"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(html.String(), want) {
			t.Errorf("%q is not shown", want)
		}
	}
}
