package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"reprise/trace"
)

// A description of the host says what explains a number, and nothing that names it.
func TestThisHost(t *testing.T) {
	h := ThisHost()
	if h.OS != runtime.GOOS || h.Arch != runtime.GOARCH || h.Cores < 1 || h.Go != runtime.Version() {
		t.Errorf("%+v", h)
	}
	if runtime.GOOS == "linux" && (h.Kernel == "" || h.MemoryBytes < 1<<20) {
		t.Errorf("Linux tells more than %+v", h)
	}
	doc, err := json.Marshal(Environment{Host: h})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if u, err := user.Current(); err == nil {
		names = append(names, u.Username, u.HomeDir)
	}
	for _, name := range names {
		if len(name) > 5 && strings.Contains(string(doc), name) {
			t.Errorf("%q is in %s", name, doc)
		}
	}
}

func TestGroupLimits(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	none := func(c *float64, m *int64) bool { return c == nil && m == nil }
	is := func(cores float64, memory int64) func(*float64, *int64) bool {
		return func(c *float64, m *int64) bool { return c != nil && *c == cores && m != nil && *m == memory }
	}
	const machine = 64 << 30
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  func(*float64, *int64) bool
	}{
		"no groups":  {fstest.MapFS{}, none},
		"version 2":  {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/cpu.max": file("150000 100000\n"), "sys/fs/cgroup/a/b/memory.max": file("1073741824\n")}, is(1.5, 1<<30)},
		"no limit":   {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/cpu.max": file("max 100000\n"), "sys/fs/cgroup/memory.max": file("max\n")}, none},
		"above":      {fstest.MapFS{"proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/cpu.max": file("200000 100000"), "sys/fs/cgroup/a/b/cpu.max": file("400000 100000"), "sys/fs/cgroup/a/memory.max": file("4096"), "sys/fs/cgroup/a/b/memory.max": file("max")}, is(2, 4096)},
		"version 1":  {fstest.MapFS{"proc/self/cgroup": file("4:memory:/x\n1:cpu,cpuacct:/y\n2:pids:/z\n0::/\n"), "sys/fs/cgroup/cpu/y/cpu.cfs_quota_us": file("50000"), "sys/fs/cgroup/cpu/y/cpu.cfs_period_us": file("100000"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("8192")}, is(0.5, 8192)},
		"unlimited":  {fstest.MapFS{"proc/self/cgroup": file("4:memory:/\n1:cpu:/\n"), "sys/fs/cgroup/cpu/cpu.cfs_quota_us": file("-1"), "sys/fs/cgroup/cpu/cpu.cfs_period_us": file("100000"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712")}, none},
		"out of it":  {fstest.MapFS{"proc/self/cgroup": file("0::/../../x\n"), "sys/fs/cgroup/x/cpu.max": file("max 100000"), "x/cpu.max": file("1 1")}, none},
		"not a file": {fstest.MapFS{"proc/self/cgroup": file("garbage\n0:\n"), "sys/fs/cgroup/cpu.max": file("1 0")}, none},
	} {
		if cores, memory := groupLimits(c.files, machine); !c.want(cores, memory) {
			t.Errorf("%s: cores %v, memory %v", name, cores, memory)
		}
	}
}

func TestArmModel(t *testing.T) {
	root := fstest.MapFS{"proc/cpuinfo": {Data: []byte("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\nprocessor\t: 1\nCPU part\t: 0xd40\n")}}
	if got := armModel(root); got != "ARM implementer 0x41, part 0xd4f" {
		t.Error(got)
	}
	if got := armModel(fstest.MapFS{}); got != "" {
		t.Error(got)
	}
}

const nvidiaCSV = `name, memory.total [MiB], driver_version, power.limit [W], pcie.link.gen.max, pcie.link.width.max
NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15, 700.00 W, 5, 16
NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15, 700.00 W, 5, 16
NVIDIA L4, 23034 MiB, 550.54.15, [N/A], [Not Supported], 16
`

func TestParseGPUs(t *testing.T) {
	got, err := parseGPUs(strings.NewReader(nvidiaCSV))
	want := []GPU{
		{Name: "NVIDIA H100 80GB HBM3", Count: 2, MemoryMiB: 81559, Driver: "550.54.15", PowerLimitW: 700, PCIe: "5.0 x16"},
		{Name: "NVIDIA L4", Count: 1, MemoryMiB: 23034, Driver: "550.54.15"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, error %v", got, err)
	}
	if n := (&Environment{GPUs: got}).GPUCount(); n != 3 {
		t.Errorf("%d GPUs", n)
	}
	for _, bad := range []string{"", "No devices were found\n", "name, memory.total [MiB]\nH100\n"} {
		if got, err := parseGPUs(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func FuzzParseGPUs(f *testing.F) {
	f.Add(nvidiaCSV)
	f.Add("name,memory.total [MiB]\n\"a\x1b\",1e300 MiB\n")
	f.Fuzz(func(t *testing.T, doc string) {
		gpus, err := parseGPUs(strings.NewReader(doc))
		if err != nil {
			return
		}
		if len(gpus) > mostGPUs {
			t.Fatalf("%d kinds of GPU", len(gpus))
		}
		for _, g := range gpus {
			if g.Name == "" || g.Count < 1 || g.MemoryMiB < 0 || g.PowerLimitW < 0 || strings.ContainsAny(g.Name+g.Driver+g.PCIe, "\x1b\n\r") {
				t.Errorf("%+v", g)
			}
		}
		if _, err := json.Marshal(gpus); err != nil {
			t.Error(err)
		}
	})
}

// What nvidia-smi prints is read where it is on the path, and nothing where it fails.
func TestLocalGPUs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in is a shell script")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got := LocalGPUs(t.Context()); got != nil {
		t.Errorf("without nvidia-smi: %+v", got)
	}
	for script, want := range map[string]int{
		"echo 'name, memory.total [MiB]'; echo 'A, 5 MiB'; echo 'A, 5 MiB'": 2,
		"echo 'name'; echo 'A'; exit 9":                                     0, // the driver does not answer
		"echo 'No devices were found'":                                      0,
	} {
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if n := (&Environment{GPUs: LocalGPUs(t.Context())}).GPUCount(); n != want {
			t.Errorf("%s: %d GPUs", script, n)
		}
	}
}

func TestLocalHost(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(10, 1, 2, 3), Mask: net.CIDRMask(8, 32)}, &net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "10.1.2.3": true, "fd00::1": true,
		"10.1.2.4": false, "gpu1": false, "example.com": false, "8.8.8.8": false, "": false,
	} {
		if localHost(host, own) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
	if localHost("10.1.2.3", func() ([]net.Addr, error) { return nil, errors.New("no") }) {
		t.Error("an address that is not known is taken for one of this host")
	}
	if !adminOf(t, "unix:///x.sock", "http://127.0.0.1:1").local() || adminOf(t, "http://127.0.0.1:1", "http://192.0.2.1").local() {
		t.Error("of several servers, all must be on this host")
	}
}

// Servers say who they are as far as they do, in bounds, and never fail a run.
func TestSurvey(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`{"id":"adapter-%d","parent":"m"}`, i))
	}
	vllm := (&adminServer{gets: map[string]string{"/version": `{"version":"0.11.0"}`,
		"/v1/models": `{"data":[` + strings.Join(many, ",") + `,{"id":"m","owned_by":"vllm","root":"/home/SECRET/m","max_model_len":4096}]}`}}).start(t)
	llama := (&adminServer{gets: map[string]string{"/v1/models": `{"data":[{"id":"q\u001b","owned_by":"` + strings.Repeat("x", 1000) + `","meta":{"n_params":494032768,"size":987654}}]}`}}).start(t)
	other := (&adminServer{gets: map[string]string{"/version": `<html>`, "/v1/models": `[]`}}).start(t)
	got := adminOf(t, vllm, llama, other).Survey(t.Context(), "m")
	if len(got) != 3 || got[0].Version != "0.11.0" || len(got[0].Models) != mostModels || got[0].Unlisted != 11 ||
		got[0].Models[0] != (ServedModel{ID: "m", OwnedBy: "vllm", MaxLen: 4096}) || got[0].Models[1].Parent != "m" {
		t.Errorf("%+v", got)
	}
	if m := got[1].Models[0]; m.ID != "q?" || len([]rune(m.OwnedBy)) != longestName || m.Parameters != 494032768 || m.Bytes != 987654 {
		t.Errorf("%+v", m)
	}
	if !reflect.DeepEqual(got[2], ServerModels{}) {
		t.Errorf("%+v", got[2])
	}
	if doc, _ := json.Marshal(got); strings.Contains(string(doc), "SECRET") {
		t.Error("where the model lies is told")
	}
	if got := adminOf(t, other).Survey(t.Context(), "m"); got != nil {
		t.Errorf("a server that says nothing: %+v", got)
	}
}

func TestDeployment(t *testing.T) {
	for given, want := range map[string]Deployment{
		"8xH100":                        {GPU: "H100", GPUs: 8},
		"8 x H100-SXM, 80GB, NVLink":    {GPU: "H100-SXM", GPUs: 8, GPUMemoryGB: 80, Interconnect: "NVLink"},
		"2×RTX 4090,PCIe 4.0 x16,24 GB": {GPU: "RTX 4090", GPUs: 2, GPUMemoryGB: 24, Interconnect: "PCIe 4.0 x16"},
		"L4":                            {GPU: "L4", GPUs: 1},
	} {
		var d Deployment
		if err := d.SetHardware(given); err != nil || d != want {
			t.Errorf("%s: %+v, error %v", given, d, err)
		}
	}
	for _, bad := range []string{"", "0xH100", "8xH100, 80GB, 80GB", "8xH100, NVLink, PCIe", "8xH100,", " , 80GB"} {
		if err := new(Deployment).SetHardware(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for given, want := range map[string]float64{"70B": 7e10, "0.5b": 5e8, "494M": 494e6, "1T": 1e12, "": 0, "70": 0, "0B": 0, "B": 0, "-1B": 0} {
		var d Deployment
		if err := d.SetModelSize(given); (err == nil) != (want > 0) || d.Parameters != want {
			t.Errorf("%q: %v, error %v", given, d.Parameters, err)
		}
	}
}

// Results hold the environment, and those of versions without it are still read.
func TestEnvironmentInResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	env := &Environment{Host: ThisHost(), GPUs: []GPU{{Name: "A", Count: 2}}, Deployment: &Deployment{GPUs: 4}}
	if n := env.GPUCount(); n != 4 {
		t.Errorf("%d GPUs: what is said stands above what is found", n)
	}
	for _, want := range []*Environment{env, nil} {
		if err := WriteResults(path, Run{Environment: want}, new(trace.SliceReader[Result])); err != nil {
			t.Fatal(err)
		}
		f, err := OpenResults(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(f.Run.Environment, want) {
			t.Errorf("%+v", f.Run.Environment)
		}
		f.Close()
	}
	if (*Environment)(nil).GPUCount() != 0 {
		t.Error("GPUs of no environment")
	}
}

// A run that goes on may be on another machine, and keeps what was said of the servers.
func TestResumedEnvironment(t *testing.T) {
	was := Run{Environment: &Environment{Host: Host{Kernel: "1"}, Deployment: &Deployment{Engine: "vllm"}}}
	r := &Resumption{run: was}
	o := Options{About: Run{Environment: &Environment{Host: Host{Kernel: "2"}}}}
	if err := r.agree(o.About); err != nil {
		t.Error(err)
	}
	r.carry(&o)
	if d := o.About.Environment.Deployment; d == nil || d.Engine != "vllm" {
		t.Errorf("%+v", d)
	}
}
