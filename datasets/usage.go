package datasets

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	tokenusage "reprise/trace/usage"
)

// A usageReader reads the usage of the records of one file: what the counts mean is
// [tokenusage.Reader]'s to say, and where they stand is the format's.
type usageReader struct {
	*tokenusage.Reader
	at     []string // paths of usage objects in a record; the first with a count wins, kind by kind
	fields Mapping  // counts that stand alone, which win over those of usage objects
	strict bool     // usage objects are those of answers, in which every known name has a count
}

// newUsageReader makes the reader of a file. Counts that stand alone are where fields says, under
// the names of [usageTargets].
func newUsageReader(d tokenusage.Dialect, at []string, fields Mapping, o Options) *usageReader {
	return &usageReader{tokenusage.NewReader(d, o.CachedInInput), at, fields, d == tokenusage.Body}
}

// usageTargets are the targets of a mapping that a [usageReader] settles, and what they count.
// Those that are no targets of --map tell what the others hold.
var usageTargets = []struct {
	name string
	kind tokenusage.Kind
}{
	{"input_tokens", tokenusage.Input}, {"output_tokens", tokenusage.Output},
	{"cached_tokens", tokenusage.Cached}, {"reasoning_tokens", tokenusage.Reasoning},
	{"written_tokens", tokenusage.Written}, {"total_tokens", tokenusage.Total},
}

// settledCounts are the targets among [usageTargets] that come out.
var settledCounts = []string{"input", "output", "cached", "reasoning"}

// show reads the usage of a row and puts its counts at tokens.input, tokens.output,
// tokens.cached and tokens.reasoning, from where a mapping takes them, see
// [Mapping.withUsage]. tell is that of the view which shows the row. A row without usage is
// left as it is.
func (r *usageReader) show(v row.View, tell *fault.Notes) error {
	t, where, err := r.settle(v, tell)
	if err == nil && where != "" {
		putTokens(v, t, where)
	}
	return err
}

// settle reads the usage of a row, and says where it is; "" where there is none.
func (r *usageReader) settle(v row.Row, tell *fault.Notes) (t tokenusage.Tokens, where string, _ error) {
	var counts tokenusage.Counts
	for _, target := range usageTargets {
		found, path, ok := field{paths: r.fields[target.name], sums: true}.find(v)
		if n, isCount := countOf(row.Plain(found)); ok && isCount {
			counts.Set(target.kind, int64(n))
			where = cmp.Or(where, path)
		}
	}
	for _, path := range r.at {
		found, ok := v.Value(path)
		if !ok {
			continue
		}
		object := r.Gather(found)
		switch {
		case r.strict && object.Invalid():
			return t, "", row.BadAt(v, path, "usage: want whole numbers from 0 to 2147483647")
		case !object.Empty():
			counts.Fill(&object)
			where = cmp.Or(where, path)
		}
	}
	if counts.Empty() {
		return t, "", nil
	}

	t, found, err := r.Settle(&counts)
	if err != nil {
		return t, "", row.BadAt(v, where, err.Error())
	}
	noteFindings(found, tell)
	return t, where, nil
}

// A settledCount is a count in a row, where others are numbers and texts.
type settledCount int32

// Plain is the count as a source would spell it, see [row.Plain].
func (n settledCount) Plain() string { return strconv.FormatInt(int64(n), 10) }

// putTokens puts counts at tokens.input, tokens.output, tokens.cached and tokens.reasoning.
func putTokens(v row.View, t tokenusage.Tokens, origin string) {
	settled := map[string]any{}
	for i, n := range []*int32{t.Input, t.Output, t.Cached, t.Reasoning} {
		if n != nil {
			settled[settledCounts[i]] = settledCount(*n)
		}
	}
	v.Put("tokens", settled, origin)
}

// noteFindings counts what was found in the usage of a record.
func noteFindings(found tokenusage.Findings, tell *fault.Notes) {
	if found == 0 {
		return
	}
	for _, one := range found.All() {
		tell.Count(one.String())
	}
}

// withUsage is a mapping whose counts are where a [usageReader] puts them or, where it finds
// none, where they were: what stands there is no count.
func (m Mapping) withUsage() Mapping {
	read := maps.Clone(m)
	for _, target := range usageTargets {
		delete(read, target.name)
	}
	for _, name := range settledCounts {
		read[name+"_tokens"] = append([]string{"tokens." + name}, m[name+"_tokens"]...)
	}
	return read
}

// usageAt declares the paths of usage objects: of all that is in them the counts are read.
func usageAt(paths ...string) SourceField {
	return SourceField{Paths: paths, Columns: []string{"input_tokens", "output_tokens", "cached_tokens",
		"reasoning_tokens"},
		How: "the usage: its counts of tokens, under the names of any provider", whole: true}
}

// usageReads are the fields of a mapping that tell what others hold, and the usage objects.
func usageReads(fields Mapping, at []string) (reads []SourceField) {
	for _, name := range []string{"written_tokens", "total_tokens"} {
		if paths := fields[name]; paths != nil {
			reads = append(reads, SourceField{Paths: paths, Columns: []string{"input_tokens", "output_tokens"},
				How: "decides what the counts hold"})
		}
	}
	if len(at) > 0 {
		reads = append(reads, usageAt(slices.Clone(at)...))
	}
	return reads
}
