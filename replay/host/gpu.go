package host

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A GPU is one kind of GPU of this machine, as nvidia-smi reports it. A field that
// nvidia-smi does not report is empty. Serial numbers are never asked for.
type GPU struct {
	Name        string  `json:"name"`
	Count       int     `json:"count"`
	MemoryMiB   int64   `json:"memory_mib,omitempty"` // of each
	Driver      string  `json:"driver,omitempty"`
	PowerLimitW float64 `json:"power_limit_w,omitempty"` // of each
	PCIe        string  `json:"pcie,omitempty"`          // most that the link can be, such as 5.0 x16
}

// gpuFields are what nvidia-smi is asked for. Drivers of many years know them all:
// one that does not know a field answers nothing.
const gpuFields = "name,memory.total,driver_version,power.limit,pcie.link.gen.max,pcie.link.width.max"

// nvidiaTimeout is how long nvidia-smi may take, which wakes the driver up.
const nvidiaTimeout = 10 * time.Second

// GPUs asks nvidia-smi for the GPUs of this machine, for at most 10 seconds. It returns
// nil when nvidia-smi is not installed, fails, or prints something else.
func GPUs(ctx context.Context) []GPU {
	ctx, cancel := context.WithTimeout(ctx, nvidiaTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu="+gpuFields, "--format=csv")
	cmd.WaitDelay = time.Second // a child of it may hold the pipe
	out := &bounded{left: 1 << 20}
	cmd.Stdout = out
	if cmd.Run() != nil {
		return nil
	}
	gpus, err := parseGPUs(&out.buf)
	if err != nil {
		return nil
	}
	return gpus
}

// bounded keeps the beginning of what is written.
type bounded struct {
	buf  bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	keep := p[:min(len(p), b.left)]
	b.left -= len(keep)
	b.buf.Write(keep)
	return len(p), nil
}

// mostGPUs bounds what is kept.
const mostGPUs = 64

// parseGPUs reads nvidia-smi's CSV, whose head names fields and units, such as
// "memory.total [MiB]". GPUs that are the same are one entry.
func parseGPUs(r io.Reader) ([]GPU, error) {
	c := csv.NewReader(r)
	c.TrimLeadingSpace = true
	head, err := c.Read()
	if err != nil {
		return nil, errors.New("host: nvidia-smi printed no table")
	}
	column := map[string]int{}
	for i, name := range head {
		name, _, _ = strings.Cut(name, " [")
		column[strings.TrimSpace(name)] = i
	}
	if _, ok := column["name"]; !ok {
		return nil, errors.New("host: nvidia-smi printed a table without names")
	}
	var out []GPU
	at := map[GPU]int{}
	for {
		row, err := c.Read()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, errors.New("host: nvidia-smi printed a damaged table")
		}
		value := func(field string) string {
			i, ok := column[field]
			if !ok || strings.HasPrefix(strings.TrimSpace(row[i]), "[") { // [N/A], [Not Supported] and others
				return ""
			}
			return strings.TrimSpace(row[i])
		}
		g := GPU{Name: Label(value("name")), Driver: Label(value("driver_version"))}
		g.MemoryMiB = int64(measured(value("memory.total"), "MiB"))
		g.PowerLimitW = measured(value("power.limit"), "W")
		if gen, width := value("pcie.link.gen.max"), value("pcie.link.width.max"); gen != "" && width != "" {
			g.PCIe = Label(gen + ".0 x" + width)
		}
		if i, ok := at[g]; ok {
			out[i].Count++
		} else if len(out) < mostGPUs && g.Name != "" {
			at[g] = len(out)
			out = append(out, g)
			out[len(out)-1].Count = 1
		}
	}
}

// measured reads a number before its unit; 0 is none.
func measured(s, unit string) float64 {
	number, ok := strings.CutSuffix(s, unit)
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(v >= 0 && v < 1e12) {
		return 0
	}
	return v
}
