package tender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// A difference is a figure that two documents do not agree on.
type difference struct {
	path     string // such as latency.from_due.ttft.p99_ms
	got, was string // as JSON; empty is missing
}

// differences compares two JSON documents, and counts the values that they have. Numbers are the
// same where they are written the same: what computed them computes them again.
func differences(got, want []byte) (out []difference, values int, err error) {
	a, err := decoded(got)
	if err != nil {
		return nil, 0, err
	}
	b, err := decoded(want)
	if err != nil {
		return nil, 0, err
	}
	c := comparison{}
	c.compare("", a, b)
	return c.out, c.values, nil
}

func decoded(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return nil, fmt.Errorf("it is not a JSON document")
	}
	return v, nil
}

type missing struct{}

type comparison struct {
	out    []difference
	values int
}

func (c *comparison) compare(path string, a, b any) {
	switch b := b.(type) {
	case map[string]any:
		a, ok := a.(map[string]any)
		if !ok {
			break
		}
		names := slices.Sorted(maps.Keys(b))
		for name := range a {
			if _, ok := b[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			below := name
			if path != "" {
				below = path + "." + name
			}
			c.compare(below, field(a, name), field(b, name))
		}
		return
	case []any:
		a, ok := a.([]any)
		if !ok {
			break
		}
		for i := range max(len(a), len(b)) {
			c.compare(fmt.Sprintf("%s.%d", path, i), element(a, i), element(b, i))
		}
		return
	}
	c.values++
	if x, y := shown(a), shown(b); x != y {
		c.out = append(c.out, difference{path, x, y})
	}
}

func field(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return missing{}
}

func element(l []any, i int) any {
	if i < len(l) {
		return l[i]
	}
	return missing{}
}

// shown is a value as JSON; what is missing is empty.
func shown(v any) string {
	if _, ok := v.(missing); ok {
		return ""
	}
	text, _ := json.Marshal(v)
	return string(text)
}
