package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/replay/result"
)

// settings are the fields of a run that say how it was set up, and not its outcome.
// A note is none: it may say which round a run was, and stands with where it is from.
var settings = []string{"model", "api", "prompts", "tokenizer", "speed", "timing", "rate", "concurrency", "keep_think",
	"connections", "workload_digest",
	"seed", "in_flight_limit", "simulated", "prefix_caching", "endpoints", "balance", "sampling", "retries", "http2",
	"prompt_text", "server_version", "max_model_len",
	"cache_discipline.done", "selection", "environment", "version"}

// Differing lists the settings that are not the same in all runs: the name of each, and
// its value in each run. Of a long value it gives the parts that differ.
func Differing(runs ...*result.Run) ([][]string, error) {
	var all []map[string]string
	names := map[string]bool{}
	for _, run := range runs {
		doc, err := json.Marshal(run)
		if err != nil {
			return nil, err
		}
		var root any
		if err := json.Unmarshal(doc, &root); err != nil {
			return nil, err
		}
		values := map[string]string{}
		leaves(root, "", values)
		all = append(all, values)
		for name := range values {
			names[name] = true
		}
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !slices.ContainsFunc(settings, func(s string) bool { return name == s || strings.HasPrefix(name, s+".") }) {
			continue
		}
		row, same := []string{name}, true
		for _, values := range all {
			row = append(row, values[name])
			same = same && values[name] == all[0][name]
		}
		if same {
			continue
		}
		values := differingParts(row[1:])
		if len(rows) > 0 { // a part may have a name of its own
			told := true
			for i := range values {
				told = told && slices.ContainsFunc(rows, func(r []string) bool { return r[0]+":"+r[1+i] == values[i] })
			}
			if told {
				continue
			}
		}
		rows = append(rows, append([]string{name}, values...))
	}
	return rows, nil
}

// leaves lists the values of a document by their paths.
func leaves(v any, path string, out map[string]string) {
	at := func(name string, v any) { leaves(v, strings.TrimPrefix(path+"."+name, "."), out) }
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			at(k, x)
		}
	case []any:
		for i, x := range v {
			at(strconv.Itoa(i), x)
		}
	case nil:
	default:
		out[path] = fmt.Sprint(v)
	}
}

// longSetting is the number of characters from which only the parts of a value that differ are shown.
const longSetting = 60

// differingParts leaves of long values what is not in all of them: step=5.7ms of all the
// costs of an engine.
func differingParts(values []string) []string {
	if !slices.ContainsFunc(values, func(v string) bool { return utf8.RuneCountInString(v) > longSetting }) {
		return values
	}
	count := map[string]int{}
	var parts [][]string
	for _, v := range values {
		of := strings.FieldsFunc(strings.ReplaceAll(v, `"`, ""),
			func(r rune) bool { return strings.ContainsRune(" ,;{}[]", r) })
		parts = append(parts, of)
		slices.Sort(of)
		for _, part := range slices.Compact(slices.Clone(of)) {
			count[part]++
		}
	}
	out := make([]string, len(values))
	for i := range values {
		out[i] = strings.Join(slices.DeleteFunc(parts[i], func(part string) bool { return count[part] == len(values) }),
			", ")
	}
	if strings.Join(out, "") == "" { // the order alone differs
		return values
	}
	return out
}
