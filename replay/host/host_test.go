package host

import (
	"encoding/json"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// A description of the host says what explains a number, and nothing that names it.
func TestThisHost(t *testing.T) {
	h := This()
	if h.OS != runtime.GOOS || h.Arch != runtime.GOARCH || h.Cores < 1 || h.Go != runtime.Version() {
		t.Errorf("%+v", h)
	}
	if runtime.GOOS == "linux" && (h.Kernel == "" || h.MemoryBytes < 1<<20) {
		t.Errorf("Linux tells more than %+v", h)
	}
	doc, err := json.Marshal(h)
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

// What keeps the process from its cores is counted by either version of control groups, of
// the groups above it too, and the time that the host of the machine stole.
func TestCPULimits(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	read := func(files fstest.MapFS) *CPULimits {
		before := fstest.MapFS{"proc/self/cgroup": files["proc/self/cgroup"], "proc/stat": file("cpu  100 0 50 800 0 0 0 50 7 0\ncpu0 1\n")}
		return readCPUCounters(files).since(readCPUCounters(before))
	}
	version2 := fstest.MapFS{
		"proc/self/cgroup":           file("0::/a/b\n"),
		"proc/stat":                  file("cpu  160 0 80 1000 0 0 0 60 9 0\ncpu0 1\n"),
		"sys/fs/cgroup/a/b/cpu.max":  file("10000 100000"),
		"sys/fs/cgroup/a/b/cpu.stat": file("usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 2000\n"),
		"sys/fs/cgroup/a/cpu.stat":   file("nr_throttled 1\nthrottled_usec 5\n"),
	}
	got := read(version2)
	if got.QuotaCores != 0.1 || got.Throttled != 31 || got.ThrottledNS != 2005000 || *got.StealShare != 10.0/300 {
		t.Errorf("version 2: %+v", got)
	}
	got = read(fstest.MapFS{
		"proc/self/cgroup":                     file("3:cpu,cpuacct:/x\n2:memory:/y\n0::/\n"),
		"sys/fs/cgroup/cpu/x/cpu.stat":         file("nr_periods 4\nnr_throttled 3\nthrottled_time 77\n"),
		"sys/fs/cgroup/memory/y/cpu.stat":      file("nr_throttled 100\n"),
		"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": file("50000"), "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": file("100000"),
	})
	if got.QuotaCores != 0.5 || got.Throttled != 3 || got.ThrottledNS != 77 || got.StealShare != nil {
		t.Errorf("version 1: %+v", got)
	}
	if got := read(fstest.MapFS{}); got != nil {
		t.Errorf("without either: %+v", got)
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
	if n := counted(got); n != 3 {
		t.Errorf("%d GPUs", n)
	}
	for _, bad := range []string{"", "No devices were found\n", "name, memory.total [MiB]\nH100\n"} {
		if got, err := parseGPUs(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func counted(gpus []GPU) (n int) {
	for _, g := range gpus {
		n += g.Count
	}
	return n
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
	if got := GPUs(t.Context()); got != nil {
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
		if n := counted(GPUs(t.Context())); n != want {
			t.Errorf("%s: %d GPUs", script, n)
		}
	}
}

// Only what no network carries is this machine's own: a name that is looked up, and an address of the machine in a
// network, may be reached by others.
func TestLoopback(t *testing.T) {
	for name, want := range map[string]bool{"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true,
		"::1": true, "0.0.0.0": false, "10.0.0.1": false, "localhost.example.com": false, "gateway": false, "": false} {
		if got := Loopback(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
