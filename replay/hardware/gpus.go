package hardware

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A GPU is a row of a data sheet: peaks without sparsity, tensor cores accumulating in
// FP32. Rates are decimal; 0 is what the GPU has no units for.
type GPU struct {
	Name      string  // as a flag takes it
	Label     string  // for people
	MemoryMiB int     // as nvidia-smi or rocm-smi shows it, error correction taken off
	Bandwidth float64 // bytes per second
	BF16      float64 // FLOP per second
	FP8, FP4  float64
	Link      float64 // bytes per second in one direction to the other GPUs of a server
	Watts     float64 // of the board; 0 is not stated
	Source    string
}

// gpusCSV are the data sheets, each row with its source.
//
//go:embed gpus.csv
var gpusCSV string

// GPUs lists the data sheets.
func GPUs() []GPU {
	all, err := ReadGPUs(strings.NewReader(gpusCSV))
	if err != nil {
		return nil // which a test of the file excludes
	}
	return all
}

// gpuColumns are the columns of a file of data sheets, with the unit of what they hold.
var gpuColumns = []struct {
	name string
	unit float64
	set  func(g *GPU) *float64
	need bool
}{
	{"bandwidth_gb_s", 1e9, func(g *GPU) *float64 { return &g.Bandwidth }, true},
	{"bf16_tflops", 1e12, func(g *GPU) *float64 { return &g.BF16 }, true},
	{"fp8_tflops", 1e12, func(g *GPU) *float64 { return &g.FP8 }, false},
	{"fp4_tflops", 1e12, func(g *GPU) *float64 { return &g.FP4 }, false},
	{"link_gb_s", 1e9, func(g *GPU) *float64 { return &g.Link }, true},
	{"watts", 1, func(g *GPU) *float64 { return &g.Watts }, false},
}

// ReadGPUs reads data sheets: CSV with a header that names the columns name, memory_mib, bandwidth_gb_s, bf16_tflops
// and link_gb_s, and if need be label, fp8_tflops, fp4_tflops, watts and source. An error names line and column.
func ReadGPUs(in io.Reader) (all []GPU, err error) {
	r := csv.NewReader(io.LimitReader(in, maxConfig))
	header, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("it has no header of columns: %w", err)
	}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		g, column, err := readGPU(func(column string) string {
			if at := slices.Index(header, column); at >= 0 {
				return strings.TrimSpace(fields[at])
			}
			return ""
		})
		if err != nil {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("line %d: %s: %w", line, column, err)
		}
		all = append(all, g)
	}
	if len(all) == 0 {
		return nil, errors.New("it has no GPU below its header")
	}
	return all, nil
}

// mostMemory is the largest memory of a GPU in MiB.
const mostMemory = 1 << 24

func readGPU(field func(column string) string) (g GPU, column string, err error) {
	if g.Name = strings.ToLower(field("name")); g.Name == "" {
		return g, "name", errors.New("it is empty, or there is no such column")
	}
	if g.Label, g.Source = field("label"), field("source"); g.Label == "" {
		g.Label = field("name")
	}
	if g.MemoryMiB, err = strconv.Atoi(field("memory_mib")); err != nil || g.MemoryMiB < 1 || g.MemoryMiB > mostMemory {
		return g, "memory_mib", fmt.Errorf("want a whole number from 1 to %d", mostMemory)
	}
	for _, c := range gpuColumns {
		text := field(c.name)
		if text == "" && !c.need {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value >= 0 && value <= 1e9) || c.need && value == 0 {
			return g, c.name, errors.New("want a number above 0, at most 1e9, in the unit that ends the column's name")
		}
		*c.set(&g) = value * c.unit
	}
	return g, "", nil
}

// FindGPU finds a GPU by its name; without one the error lists them.
func FindGPU(name string) (GPU, error) { return findGPU(GPUs(), name) }

// FindIn finds a GPU among the data sheets of a user's file; no name means the only one.
func FindIn(all []GPU, name string) (GPU, error) {
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	return findGPU(all, name)
}

func findGPU(all []GPU, name string) (GPU, error) {
	var names []string
	for _, g := range all {
		if g.Name == strings.ToLower(name) {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return GPU{}, fmt.Errorf("no data sheet of that GPU: want one of %s", strings.Join(names, ", "))
}
