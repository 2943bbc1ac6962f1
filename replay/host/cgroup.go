package host

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// groupLimits reads what Linux' control groups allow the process: cores, and bytes of
// memory when that is less than the machine has. Of a group and those above it the
// smallest limit holds. In version 2 all groups are below /sys/fs/cgroup, in version 1
// below a directory for each controller.
func groupLimits(root fs.FS, memory int64) (cores *float64, bytes *int64) {
	for controller, group := range groupsOf(root) {
		dir := path.Join("sys/fs/cgroup", controller)
		for {
			at := path.Join(dir, group)
			// such as "150000 100000", or "max 100000"
			quota, period := word(root, at+"/cpu.max", 0), word(root, at+"/cpu.max", 1)
			if quota == 0 {
				quota, period = word(root, at+"/cpu.cfs_quota_us", 0), word(root, at+"/cpu.cfs_period_us", 0)
			}
			if quota > 0 && period > 0 {
				if v := float64(quota) / float64(period); cores == nil || v < *cores {
					cores = &v
				}
			}
			limit := word(root, at+"/memory.max", 0)
			if limit <= 0 {
				limit = word(root, at+"/memory.limit_in_bytes", 0)
			}
			if limit > 0 && (memory == 0 || limit < memory) && (bytes == nil || limit < *bytes) {
				bytes = &limit
			}
			if group == "/" || group == "." || group == "" {
				break
			}
			group = path.Dir(group)
		}
	}
	return cores, bytes
}

// CPULimits say what kept the process from cores that the machine has, over some time.
type CPULimits struct {
	QuotaCores  float64 `json:"quota_cores,omitempty"` // that its control group allows; 0 is no limit
	Throttled   int64   `json:"throttled_periods"`     // in which its group, or one above it, had to wait
	ThrottledNS int64   `json:"throttled_ns"`          // that they waited, all cores together
	// StealShare is the part of all cores' time that the host of a virtual machine gave to
	// others; null is not known.
	StealShare *float64 `json:"steal_share"`
}

// cpuCounters are what Linux counts since it started.
type cpuCounters struct {
	quota                  *float64
	throttled, throttledNS int64
	stolen, time           int64 // ticks of all cores; no time is not known
}

// readCPUCounters reads the throttling of the process's groups, and the steal of the
// machine. Version 1 of control groups counts throttled_time in ns, version 2
// throttled_usec.
func readCPUCounters(root fs.FS) *cpuCounters {
	c := &cpuCounters{}
	c.quota, _ = groupLimits(root, 0)
	for controller, group := range groupsOf(root) {
		for controller != "memory" {
			doc, _ := fs.ReadFile(root, path.Join("sys/fs/cgroup", controller, group, "cpu.stat"))
			for line := range strings.Lines(string(doc)) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				n, err := strconv.ParseInt(value, 10, 64)
				switch {
				case err != nil:
				case key == "nr_throttled":
					c.throttled += n
				case key == "throttled_time":
					c.throttledNS += n
				case key == "throttled_usec":
					c.throttledNS += 1000 * n
				}
			}
			if group == "/" {
				break
			}
			group = path.Dir(group)
		}
	}
	doc, _ := fs.ReadFile(root, "proc/stat")
	line, _, _ := strings.Cut(string(doc), "\n")
	if words := strings.Fields(line); len(words) > 8 && words[0] == "cpu" {
		// user nice system idle iowait irq softirq steal
		for i, word := range words[1:9] {
			n, _ := strconv.ParseInt(word, 10, 64)
			if c.time += n; i == 7 {
				c.stolen = n
			}
		}
	}
	return c
}

// since is what c counts beyond what there was before, nil where it knows nothing.
func (c *cpuCounters) since(before *cpuCounters) *CPULimits {
	out := &CPULimits{Throttled: c.throttled - before.throttled, ThrottledNS: c.throttledNS - before.throttledNS}
	if c.quota != nil {
		out.QuotaCores = *c.quota
	}
	switch ticks := c.time - before.time; {
	case ticks > 0:
		out.StealShare = new(float64(max(c.stolen-before.stolen, 0)) / float64(ticks))
	case c.quota == nil:
		return nil
	}
	return out
}

// groupsOf lists the groups of the process by the controllers that may limit it; ""
// is version 2.
func groupsOf(root fs.FS) map[string]string {
	doc, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(doc)); lines.Scan(); {
		// Such as 4:cpu,cpuacct:/group, and 0::/group in version 2.
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) < 3 {
			continue
		}
		group := path.Clean("/" + parts[2]) // nothing leads out of the tree
		for _, controller := range strings.Split(parts[1], ",") {
			if controller == "" || controller == "cpu" || controller == "memory" {
				out[controller] = group
			}
		}
	}
	return out
}

// word is a number in a file, 0 where there is none.
func word(root fs.FS, name string, i int) int64 {
	doc, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	words := strings.Fields(string(doc))
	if i >= len(words) {
		return 0
	}
	n, err := strconv.ParseInt(words[i], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// armModel names an ARM CPU by the numbers that Linux lists, since it lists no name.
func armModel(root fs.FS) string {
	doc, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return ""
	}
	found := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(doc)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if key = strings.TrimSpace(key); found[key] == "" {
			found[key] = strings.TrimSpace(value)
		}
	}
	if found["CPU part"] == "" {
		return Label(found["model name"])
	}
	return Label("ARM implementer " + found["CPU implementer"] + ", part " + found["CPU part"])
}
