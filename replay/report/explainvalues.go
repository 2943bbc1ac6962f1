package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Measure adds what the numbers are in a summary, and how many values each rests on.
func (e *Explanation) Measure(s Summary) error {
	root, err := asDocument(s)
	if err != nil {
		return err
	}
	all := Definitions()
	e.Values, e.Loosened = []Explained{}, s.Verdict.Loosened
	for _, pattern := range e.Paths {
		for _, path := range expand(root, strings.Split(pattern, "."), "") {
			v := Explained{Path: path}
			v.Value, _ = lookup(root, path).(json.Number)
			if d, ok := definitionOf(all, path); ok {
				v.Unit = unitOf(&d, path)
				v.Samples = samplesOf(root, &d, path)
			}
			if method, ok := lookup(root, beside(path, "method")).(string); ok {
				v.Method = method
			}
			e.Values = append(e.Values, v)
		}
	}
	return nil
}

// asDocument is a summary as its JSON reads back, with its numbers as they are written.
func asDocument(s Summary) (root any, err error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("report: the summary's own JSON: %w", err)
	}
	return root, nil
}

// expand lists the paths of a document that a pattern has, null values included.
func expand(v any, pattern []string, path string) []string {
	if len(pattern) == 0 {
		return []string{path}
	}
	var out []string
	at := func(name string, v any) {
		out = append(out, expand(v, pattern[1:], strings.TrimPrefix(path+"."+name, "."))...)
	}
	switch v := v.(type) {
	case map[string]any:
		if pattern[0] != "*" {
			if x, ok := v[pattern[0]]; ok {
				at(pattern[0], x)
			}
			return out
		}
		for k, x := range v {
			at(k, x)
		}
		slices.Sort(out)
	case []any:
		for i, x := range v {
			if name := strconv.Itoa(i); pattern[0] == "*" || pattern[0] == name {
				at(name, x)
			}
		}
	}
	return out
}

// lookup is the value at a path, nil where there is none.
func lookup(v any, path string) any {
	for _, name := range strings.Split(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(of) {
				return nil
			}
			v = of[i]
		default:
			return nil
		}
	}
	return v
}

// beside is the path of a number's neighbour.
func beside(path, name string) string { return path[:strings.LastIndex(path, ".")+1] + name }

// samplesOf is how many values a number rests on; nil where that says nothing.
func samplesOf(root any, d *Definition, path string) *int64 {
	sum := func(paths ...string) *int64 {
		var n int64
		for _, p := range paths {
			v, ok := lookup(root, p).(json.Number)
			one, err := v.Int64()
			if !ok || err != nil {
				return nil
			}
			n += one
		}
		return &n
	}
	if d.Name == "error_share" {
		return sum(beside(path, "succeeded"), beside(path, "failed"))
	}
	if d.rests != "" {
		return sum(strings.Fields(d.rests)...)
	}
	if strings.HasSuffix(path, "_ratio") || d.Name == "difference" || d.Name == "rounding_loss" {
		return sum(beside(path, "rows"))
	}
	if s := statisticOf(path); s == "" || s == "count" {
		return nil
	}
	ofMetric := ofGroup.FindString(path[strings.LastIndex(path, ".")+1:])
	for _, name := range []string{"count", ofMetric + "count", "turns"} {
		if n := sum(beside(path, name)); n != nil {
			return n
		}
	}
	return nil
}

// unitOf is the unit of one number of a definition that has several.
func unitOf(d *Definition, path string) string {
	last := path[strings.LastIndex(path, ".")+1:]
	switch {
	case last == "count":
		return "values"
	case strings.HasSuffix(last, "_per_s"):
		return "1/s"
	case strings.HasSuffix(last, "share"):
		return "share"
	case d.Name == "goodput":
		return "requests"
	}
	group := path[:max(len(path)-len(last)-1, 0)]
	group = group[strings.LastIndex(group, ".")+1:]
	if i := slices.Index([]string{"running", "waiting", "kv_cache_use", "gpu_utilisation", "gpu_power_w",
		"gpu_memory_mib"}, group); i >= 0 {
		return []string{"requests", "requests", "share", "share", "W", "MiB"}[i]
	}
	return d.Unit
}
