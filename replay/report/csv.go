package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/textpage"
)

// csvHead names the columns of [WriteCSV].
var csvHead = []string{"name", "of", "unit", "statistic", "value", "count"}

// leftOut are the parts of the JSON that are no measurements.
var leftOut = []string{"run.", "verdict.", "peer.", "goodput.slo.", "contract."}

// WriteCSV writes a row for every number that was measured, in the order of the JSON:
// its name, which is its path there without the unit and the statistic; what of the
// requests it is of, where that is a part of them, such as category=cold; its unit;
// the statistic, or value; the number, empty where there are too few values for it;
// and how many values or requests it rests on, if that is said.
func WriteCSV(w io.Writer, s Summary) error {
	root, err := asDocument(s)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(csvHead); err != nil {
		return err
	}
	all := Definitions()
	for _, pattern := range numberPaths() {
		if slices.ContainsFunc(leftOut, func(p string) bool { return strings.HasPrefix(pattern, p) }) {
			continue
		}
		for _, path := range expand(root, strings.Split(pattern, "."), "") {
			d, ok := definitionOf(all, path)
			if !ok {
				continue // a test holds that there is none
			}
			if err := out.Write(csvRow(root, &d, path)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func csvRow(root any, d *Definition, path string) []string {
	name, of := withoutElements(root, path)
	statistic := statisticOf(path)
	if statistic == "" {
		statistic = "value"
		// The unit of a time stands in a column of its own. That of a rate stays in the
		// name: requests are another number than requests_per_s.
		for _, unit := range []string{"_ms", "_ns", "_s"} {
			if bare, ok := strings.CutSuffix(name, unit); ok && !strings.HasSuffix(name, "_per_s") {
				name = bare
				break
			}
		}
	} else {
		metric := ofGroup.FindString(name[strings.LastIndex(name, ".")+1:])
		name = name[:max(strings.LastIndex(name, "."), 0)]
		if metric != "" {
			name += "." + strings.TrimSuffix(metric, "_")
		}
	}
	value, _ := lookup(root, path).(json.Number)
	rests := ""
	if n := samplesOf(root, d, path); n != nil {
		rests = strconv.FormatInt(*n, 10)
	}
	return []string{name, of, unitOf(d, path), statistic, value.String(), rests}
}

// labels name the elements of lists, by the field that tells them apart.
var labels = []struct{ list, field, label string }{
	{"by_category", "category", "category"},
	{"by_class", "class", "class"},
	{"each", "user", "user"},
	{"by_input_length", "lo_tokens", "prompt_tokens_from"},
	{"by_turn", "lo", "turn_from"},
	{"by_depth", "lo", "depth_from"},
	{"by_endpoint", "name", "endpoint"},
	{"groups", "by", "by"},
	{"by_response_header", "header", "header"},
	{"each", "value", "value"},
	{"values", "name", "value"},
	{"errors", "class", "error"},
	{"kinds", "kind", "kind"},
}

// withoutElements takes the numbers of elements out of a path, and says which
// elements they are.
func withoutElements(root any, path string) (name, of string) {
	var parts, which []string
	at := ""
	for _, part := range strings.Split(path, ".") {
		at = strings.TrimPrefix(at+"."+part, ".")
		if _, err := strconv.Atoi(part); err != nil || len(parts) == 0 {
			parts = append(parts, part)
			continue
		}
		for _, l := range labels {
			if l.list != parts[len(parts)-1] {
				continue
			}
			switch v := lookup(root, at+"."+l.field).(type) {
			case string:
				which = append(which, l.label+"="+textpage.Plain(v))
			case json.Number:
				which = append(which, l.label+"="+v.String())
			case nil:
				if l.field == "value" && parts[0] == "groups" { // requests without one
					which = append(which, "value=none")
				}
			}
		}
	}
	return strings.Join(parts, "."), strings.Join(which, " ")
}
