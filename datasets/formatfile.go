package datasets

import (
	"bufio"
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/trace/strictyaml"
	tokenusage "reprise/trace/usage"
)

// A format that is a mapping is a file and has its name. Users write further ones.
//
//go:embed formats/*.yaml
var embeddedFormats embed.FS

// formatFileName is the name of a format that a user wrote. The file's own name may be somebody's secret.
const formatFileName = "format-file"

// formatFile is a format as a file has it. docs/formats.md has the keys.
type formatFile struct {
	About  string   `yaml:"about"`  // what it is, in a line
	Tried  string   `yaml:"tried"`  // on which real files, or [fromDocumentation]
	Keys   []string `yaml:"keys"`   // paths that every record has, or columns: it is recognised by them
	Lacks  []string `yaml:"lacks"`  // keys that no record has
	Calls  string   `yaml:"calls"`  // list in a record that holds the calls
	Unpack []string `yaml:"unpack"` // paths of JSON in strings

	Request  string `yaml:"request"`  // where a record has the body of a request, in which the paths of the map are
	Response string `yaml:"response"` // and that of the answer

	Map    map[string]string `yaml:"map"`    // targets, and the paths that --map takes
	Usage  string            `yaml:"usage"`  // usage objects, which fill in the counts that stand nowhere else
	Counts string            `yaml:"counts"` // a key of countsOfUsage
	Times  struct {
		Start      string `yaml:"start"`
		FirstToken string `yaml:"first_token"`
		End        string `yaml:"end"`
	} `yaml:"times"` // of logs that tell a latency by two times
	TimeIs   string `yaml:"time_is"`   // start or end of the call
	TimeUnit string `yaml:"time_unit"` // of numbers whose size does not show it
	Spans    struct {
		Trace  string `yaml:"trace"`
		Span   string `yaml:"span"`
		Parent string `yaml:"parent"`
	} `yaml:"spans"` // ids of a record that is a span: a call that was recorded twice is read once

	Only   []fileCondition `yaml:"only"`   // records that are calls of a model
	Drop   []fileCondition `yaml:"drop"`   // records that reached no model
	Refuse []fileCondition `yaml:"refuse"` // records that stop the reading
	Failed []fileCondition `yaml:"failed"` // records of calls that failed

	Required []string `yaml:"required"` // targets of every record, which is then read as it stands

	Sample string      `yaml:"sample"` // a record or more
	Totals *fileTotals `yaml:"totals"` // of the sample
}

// A fileCondition holds for records that have one of some values at a path, see [condition].
type fileCondition struct {
	Path   string `yaml:"path"`
	Values string `yaml:"values"`
	Why    string `yaml:"why"`
}

// fileTotals are what a sample adds up to.
type fileTotals struct {
	Requests        int `yaml:"requests"`
	InputTokens     int `yaml:"input_tokens"`
	CachedTokens    int `yaml:"cached_tokens"`
	OutputTokens    int `yaml:"output_tokens"`
	ReasoningTokens int `yaml:"reasoning_tokens"`
}

// countsOfUsage are the ways in which counts may be meant.
var countsOfUsage = map[string]tokenusage.Dialect{
	"":          tokenusage.Relayed,
	"inclusive": tokenusage.Inclusive, // cached tokens are part of the input
	"exclusive": tokenusage.Exclusive, // they stand beside it
	"relayed":   tokenusage.Relayed,   // of whatever provider: the counts decide
	"body":      tokenusage.Body,      // of the answer itself, of whatever provider
}

var unitsOfTime = map[string]time.Duration{"": 0, "s": time.Second, "ms": time.Millisecond, "us": time.Microsecond,
	"ns": time.Nanosecond}

// A formatCode is the part of a format that no mapping can say. It is in Go, beside the file of its name.
type formatCode struct {
	made  map[string]string // names that show makes, and what it makes them from
	show  func(v row.View)
	match func(r row.Row) bool                                              // what a record must be beside its keys
	cells func(r row.Row) bool                                              // what one of the first rows of CSV must be
	lines func(in *bufio.Reader, tell *fault.Notes) record.Reader           // of a text log, as records
	also  func(head []byte) bool                                            // tells another form of it
	join  func(in row.Reader, fields Mapping, tell *fault.Notes) row.Reader // puts rows together
	whole []string                                                          // what join reads, with all that is in it
}

// ReadFormat reads a format that a user wrote. name is the name of its file: errors have it, with line and column.
func ReadFormat(name string, text []byte) (*Format, error) {
	d, _, err := parseFormat(name, text, formatCode{})
	if err != nil {
		return nil, err
	}
	d.name, d.tried = formatFileName, "by whoever wrote it"
	f := d.format()
	f.declared = &d
	return &f, nil
}

// FormatFileBounds bound the file of a format.
var FormatFileBounds = strictyaml.Bounds{What: "a format", Bytes: 256 << 10}

// parseFormat reads the declaration in a file, and the totals of its sample.
func parseFormat(name string, text []byte, code formatCode) (d declaredFormat, totals *fileTotals, err error) {
	doc, err := strictyaml.Parse(text, FormatFileBounds)
	if err != nil {
		return d, nil, strictyaml.Named(name, err)
	}
	var f formatFile
	if err := doc.Decode(&f); err != nil {
		return d, nil, strictyaml.Named(name, err)
	}
	fault := func(at, why string, args ...any) error {
		node, ok := doc.Find(at)
		if !ok {
			node = doc
		}
		return strictyaml.Named(name, node.Faultf(why, args...))
	}

	counts, known := countsOfUsage[f.Counts]
	unit, timed := unitsOfTime[f.TimeUnit]
	switch {
	case !known:
		return d, nil, fault("counts",
			"%q: want inclusive (cached tokens are part of the input), exclusive (they stand beside it), "+
				"relayed or body", f.Counts)
	case !timed:
		return d, nil, fault("time_unit", "%q: want s, ms, us or ns", f.TimeUnit)
	case f.TimeIs != "" && f.TimeIs != "start" && f.TimeIs != "end":
		return d, nil, fault("time_is", "%q: want start or end", f.TimeIs)
	case f.Response != "" && f.Request == "":
		return d, nil, fault("response", "say where the request is, too")
	case f.Required != nil && (f.settles() || f.Usage+f.Counts+f.Request != ""):
		return d, nil, fault("required", "records that all have some targets are read as they stand: leave out "+
			"request, usage, counts, "+worksOfFormats)
	case f.Request != "" && f.settles():
		return d, nil, fault("request", "of records of bodies leave out "+worksOfFormats)
	case f.Map["time"] == "":
		return d, nil, fault("map", "it maps no time: when a request arrived, such as time: created_at")
	}

	fields := Mapping{}
	for of, where := range f.Map {
		if of != "written_tokens" && of != "total_tokens" &&
			!slices.ContainsFunc(targets, func(t target) bool { return t.name == of }) {
			return d, nil, fault("map."+of, "unknown target: want one of %s, written_tokens, total_tokens",
				targetNames())
		}
		if fields[of] = pathsOf(where); len(fields[of]) == 0 {
			return d, nil, fault("map."+of, "it has no path")
		}
	}
	for i, name := range f.Required {
		if fields[name] == nil {
			return d, nil, fault(fmt.Sprintf("required[%d]", i), "%q is not in the map", name)
		}
	}

	d = declaredFormat{
		name: strings.TrimSuffix(path.Base(name), ".yaml"), about: f.About, example: strings.TrimSuffix(f.Sample, "\n"),
		tried: f.Tried, keys: f.Keys, lacks: f.Lacks, packed: f.Unpack, request: f.Request, response: f.Response,
		required: f.Required, failed: conditionsOf(f.Failed),
		fields: fields, usage: pathsOf(f.Usage), counts: counts, unit: unit, ended: f.TimeIs == "end",
		times: row.Latencies{Start: pathsOf(f.Times.Start), First: pathsOf(f.Times.FirstToken),
			End: pathsOf(f.Times.End)},
		spans: spanPaths{f.Spans.Trace, f.Spans.Span, f.Spans.Parent},
		only:  conditionsOf(f.Only), drop: conditionsOf(f.Drop), refuse: conditionsOf(f.Refuse),
		formatCode: code,
	}
	if f.Calls != "" {
		d.members = [][]string{strings.Split(f.Calls, "[].")}
	}
	d.made = maps.Collect(maps.All(d.made)) // a copy
	for _, paths := range fields {
		for _, path := range paths {
			if around, ok := strings.CutPrefix(path, aroundCall); ok && f.Calls != "" {
				d.made[path] = around
			}
		}
	}
	return d, f.Totals, nil
}

// aroundCall begins the paths of a call that lead into the record which lists it.
const aroundCall = "record."

// settles reports whether a record shows its entry only after some work.
func (f *formatFile) settles() bool {
	return f.Calls+f.TimeIs+f.Times.Start+f.Times.End+f.Spans.Span != "" ||
		len(f.Unpack)+len(f.Only)+len(f.Drop)+len(f.Refuse) > 0
}

// worksOfFormats are the keys that [formatFile.settles] looks at.
const worksOfFormats = "calls, unpack, times, time_is, spans, only, drop and refuse"

// targets are the columns that the format fills in, sorted.
func (d *declaredFormat) targets() []string {
	all := slices.Collect(maps.Keys(d.fields))
	if len(d.usage) > 0 {
		all = append(all, "input_tokens", "output_tokens", "cached_tokens")
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pathsOf are alternatives, as people write them.
func pathsOf(text string) (paths []string) {
	for path := range strings.SplitSeq(text, "|") {
		if path = strings.TrimSpace(path); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

func conditionsOf(list []fileCondition) (out []condition) {
	for _, c := range list {
		out = append(out, condition{c.Path, c.Values, c.Why})
	}
	return out
}

// declaredFormats lists the formats that one reader reads by their declaration. Of the embedded files none is
// left out, as a test shows.
var declaredFormats = sync.OnceValue(func() []declaredFormat {
	all := []declaredFormat{apiLog(), harLog()}
	files, _ := embeddedFormats.ReadDir("formats")
	for _, file := range files {
		switch d, _, err := embeddedFormat(file.Name()); {
		case err == nil && d.cells != nil: // before one of the same columns
			all = append([]declaredFormat{d}, all...)
		case err == nil:
			all = append(all, d)
		}
	}
	return all
})

// embeddedFormat reads the format of an embedded file, and the totals of its sample.
func embeddedFormat(file string) (declaredFormat, *fileTotals, error) {
	text, err := embeddedFormats.ReadFile("formats/" + file)
	if err != nil {
		return declaredFormat{}, nil, err
	}
	return parseFormat("formats/"+file, text, codeOfFormats[strings.TrimSuffix(file, ".yaml")])
}

// FormatFile writes the proposed mapping as the file of a format, for the user to go on from. It is empty where no
// mapping is proposed.
func (i *Inspection) FormatFile() []byte {
	var mapped [][2]string
	counts := "relayed"
	if i.ends != "" {
		mapped = append(mapped, [2]string{"time", i.ends})
	}
	for k, flag := range i.Flags {
		if flag == "--map" {
			target, where, _ := strings.Cut(i.Flags[k+1], "=")
			mapped = append(mapped, [2]string{target, where})
			if strings.Contains(where, "+") && target != "time" {
				counts = "inclusive" // the sums hold all parts
			}
		}
	}
	if len(mapped) == 0 || i.Final && i.ends == "" {
		return nil
	}

	var keys []string
	for _, f := range i.Fields {
		isMapped := slices.ContainsFunc(mapped, func(m [2]string) bool { return m[1] == f.Path })
		if isMapped && f.Present == i.Records && len(keys) < 3 {
			keys = append(keys, strconv.Quote(f.Path))
		}
	}
	var b strings.Builder
	b.WriteString("about: a log of our own\n# Fields of every record, by which the format is recognised.\n" +
		"keys: [" + strings.Join(keys, ", ") + "]\nmap:\n")
	for _, m := range mapped {
		fmt.Fprintf(&b, "  %s: %q\n", m[0], m[1])
	}
	if i.ends != "" {
		b.WriteString("time_is: end # of the call; its start is that less e2e\n")
	} else if i.Missing != "" {
		b.WriteString("  # " + i.Missing + ": name it, such as\n  # input_tokens: FIELD\n")
	}
	b.WriteString("# inclusive: cached tokens are part of the input; exclusive: they stand beside it; relayed: each " +
		"record tells.\n" +
		"counts: " + counts + "\n")
	return []byte(b.String())
}
