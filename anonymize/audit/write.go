package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteJSON writes the result as one indented object.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of tier %s", r.Kind, orNone(r.Tier))
	if r.Digest != "" {
		fmt.Fprintf(&b, ", rows %s", r.Digest)
	}
	fmt.Fprintf(&b, "\nfile sha256:%s\n\n", r.FileSHA256)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-12s  %-16s  %s\n", f.Status, f.Check, f.Why)
		for _, name := range slices.Sorted(maps.Keys(f.Figures)) {
			fmt.Fprintf(&b, "%32s%s: %v\n", "", strings.ReplaceAll(name, "_", " "), shown(f.Figures[name]))
		}
	}
	fmt.Fprintf(&b, "\n%d passed, %d failed, %d inconclusive, %d skipped\n", r.Count(Pass), r.Count(Fail), r.Count(Inconclusive), r.Count(Skipped))
	_, err := io.WriteString(w, b.String())
	return err
}

// shown is a figure as a person reads it.
func shown(v any) any {
	switch v := v.(type) {
	case float64:
		return fmt.Sprintf("%.4g", v)
	case []string:
		return strings.Join(v, ", ")
	}
	return v
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
