package hardware

import (
	"slices"
	"strings"
	"testing"
)

// The data sheets that the program has are complete, and have a source each.
func TestDataSheets(t *testing.T) {
	all, err := ReadGPUs(strings.NewReader(gpusCSV))
	if err != nil || len(all) != strings.Count(gpusCSV, "\n")-1 {
		t.Fatalf("%d GPUs, %v", len(all), err)
	}
	seen := map[string]bool{}
	for _, g := range all {
		if seen[g.Name] || g.Source == "" || g.FP4 > 0 && g.FP8 == 0 || g.FP8 > 0 && g.FP8 < g.BF16 {
			t.Errorf("%+v", g)
		}
		seen[g.Name] = true
	}
	for _, name := range []string{"a100-80gb", "l4", "l40s", "h20", "h100", "h200", "b200", "b300", "gb200", "gb300",
		"mi300x", "mi325x", "mi355x", "rtx5090", "tpu-v6e", "gaudi3"} {
		if !seen[name] {
			t.Errorf("no data sheet of %s", name)
		}
	}
}

// A file of one's own needs the columns that every bound rests on, in any order, and says where it is at fault.
func TestReadGPUs(t *testing.T) {
	const header = "link_gb_s,name,memory_mib,bandwidth_gb_s,bf16_tflops\n"
	all, err := ReadGPUs(strings.NewReader(header + "450,Mine,1000,2.5,10\n100,b,2000,1,1\n"))
	want := []GPU{{Name: "mine", Label: "Mine", MemoryMiB: 1000, Bandwidth: 2.5e9, BF16: 10e12, Link: 450e9},
		{Name: "b", Label: "b", MemoryMiB: 2000, Bandwidth: 1e9, BF16: 1e12, Link: 100e9}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v, %v", all, err)
	}
	if g, err := FindIn(all[:1], ""); err != nil || g != want[0] {
		t.Errorf("the only one: %+v, %v", g, err)
	}
	if _, err := FindIn(all, ""); err == nil || !strings.Contains(err.Error(), "want one of mine, b") {
		t.Errorf("one of two: %v", err)
	}
	for text, want := range map[string]string{
		"":                                     "no header",
		header:                                 "no GPU below",
		header + "450,,1000,2.5,10\n":          "line 2: name: it is empty",
		header + "450,a,many,2.5,10\n":         "line 2: memory_mib: want a whole number",
		header + "450,a,1000,-1,10\n":          "line 2: bandwidth_gb_s: want a number",
		header + "450,a,1000,1,1\n0,b,1,1,1\n": "line 3: link_gb_s",
		header + "1,2\n":                       "wrong number of fields",
	} {
		if _, err := ReadGPUs(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// What is read can be computed with.
func FuzzReadGPUs(f *testing.F) {
	f.Add(gpusCSV)
	f.Add("name,memory_mib,bandwidth_gb_s,bf16_tflops,link_gb_s\na,1,1,1,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ReadGPUs(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, g := range all {
			if least := min(float64(g.MemoryMiB), g.Bandwidth, g.BF16, g.Link); g.Name == "" || !(least > 0) ||
				min(g.FP8, g.FP4) < 0 {
				t.Errorf("%+v", g)
			}
		}
	})
}
