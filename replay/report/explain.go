package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"reprise/replay/figure"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// An Explanation says what a number of a report means and, of a run, what it is.
type Explanation struct {
	Name        string       `json:"name"`        // as asked
	Definitions []Definition `json:"definitions"` // of the metrics, then of the origin and the statistic
	Paths       []string     `json:"paths"`       // in the JSON of a [Summary]; * is any element
	Values      []Explained  `json:"values,omitempty"`
	// Loosened are the limits by which the run is trusted, as far as they allow more than their defaults.
	Loosened LoosenedLimits `json:"loosened_limits,omitempty"`
}

// An Explained is a number of a run.
type Explained struct {
	Path    string      `json:"path"`
	Value   json.Number `json:"value"`   // empty where it was not measured
	Unit    string      `json:"unit"`    // of its definition
	Samples *int64      `json:"samples"` // that it rests on; null where it is a count itself, or a setting
	Method  string      `json:"method,omitempty"`
}

// An unknownName is a name that no number has.
type unknownName struct {
	Name string
	Near []string // names that are like it
}

func (u *unknownName) Error() string {
	out := "no number of a report has this name"
	if len(u.Near) > 0 {
		out += "; near it are " + strings.Join(u.Near, ", ")
	}
	return out
}

// otherNames are names that people give to what is defined and that no run is judged by.
var otherNames = map[string]string{
	"drift": "run.drift", "offered": "offered_requests", "rate": "offered_requests",
	"throughput": "requests prompt_tokens output_tokens",
}

// otherStatistics are names of statistics.
var otherStatistics = map[string]string{"median": "p50", "avg": "mean", "average": "mean", "std": "sd",
	"n": "count", "p999": "p99_9"}

// Explain finds what a name means: that of a metric, such as ttft or goodput, with a
// statistic before or after it, as in p99_ttft, and an origin, as in
// ttft_from_due_p99; or a path in the JSON, such as latency.from_due.ttft.p99_ms. The
// error is an [unknownName].
func Explain(name string) (*Explanation, error) {
	q := strings.NewReplacer("p99.9", "p99_9", "-", "_", " ", "_").Replace(strings.ToLower(strings.TrimSpace(name)))
	all := Definitions()
	e := meaningOf(all, q)
	if e == nil {
		return nil, &unknownName{name, likeNames(all, q)}
	}
	e.Name = name
	return e, nil
}

// meaningOf is nil for a name that nothing has.
func meaningOf(all []Definition, q string) *Explanation {
	// What is defined and is no number of its own: a percentile, an origin.
	statement := cmp.Or(otherStatistics[q], q)
	for _, d := range all {
		if len(d.Paths()) == 0 && slices.ContainsFunc(d.names(),
			func(n string) bool { return n == statement || strings.HasSuffix(n, "."+statement) }) {
			return &Explanation{Definitions: []Definition{d}, Paths: []string{}}
		}
	}
	said := func(name, unit, says string) *Explanation {
		return &Explanation{Definitions: []Definition{{Name: name, Unit: unit, Definition: says}}, Paths: []string{}}
	}
	for _, c := range checkNames {
		if c.code == q {
			return said(c.code, "check", "One of the checks that a verdict is made of: "+c.name+". --details prints "+
				"the figure beside its limit.")
		}
	}
	for _, l := range limitList {
		if strings.ReplaceAll(l.Key, "-", "_") == q {
			return said(l.Key, "limit", "A limit of --trust, beyond which a run is not trusted: "+l.What+".")
		}
	}
	// A path of the JSON, its unit left out or not, or all below one.
	var e Explanation
	for _, path := range numberPaths() {
		bare := path
		for _, unit := range []string{"_ms", "_s", "_ns", "_per_s"} {
			bare = strings.TrimSuffix(bare, unit)
		}
		switch {
		case matches(path, q) || matches(bare, q):
			e.add(all, q, path)
		case strings.HasPrefix(path, q+".") && strings.Contains(q, "."):
			e.add(all, path, path)
		}
	}
	if found := e.orNil(); found != nil {
		return found
	}
	return asMetric(all, q)
}

// asMetric finds a metric by its name, or by the end of its name, with a statistic and
// an origin.
func asMetric(all []Definition, q string) *Explanation {
	statistic, origin := "", ""
	s := figure.Find(q)
	if s == nil {
		q, statistic, origin = nameParts(strings.TrimSuffix(q, "_ms"))
		s = figure.Find(q)
	}
	names := []string{q}
	if other, ok := otherNames[q]; ok {
		names = strings.Fields(other)
	} else if s != nil {
		names = s.Definitions()
	}
	exactly := func(n string) bool { return slices.Contains(names, n) }
	ending := func(n string) bool { return strings.HasSuffix(n, "."+q) }
	for _, is := range []func(string) bool{exactly, ending} {
		var e Explanation
		for _, path := range numberPaths() {
			other := statistic != "" && statisticOf(path) != statistic && !strings.HasSuffix(path, "."+statistic+"_s")
			if other || strings.Contains(path, "*") && !strings.Contains(q, ".") || !strings.Contains(path, origin) {
				continue
			}
			for _, d := range all {
				// Of several names, that of the path.
				names := d.names()
				i := max(0, slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(path, n) }))
				if d.has(path) && is(names[i]) {
					e.define(d)
					e.add(all, path, path)
					break
				}
			}
		}
		if found := e.orNil(); found != nil {
			return found
		}
	}
	return nil
}

// nameParts splits a name into a metric, a statistic and an origin, in whatever order.
func nameParts(q string) (metric, statistic, origin string) {
	q, statistic = takeOff(q, statisticNames())
	q, origin = takeOff(q, []string{"from_due", "from_sent"})
	if statistic == "" {
		q, statistic = takeOff(q, statisticNames())
	}
	return q, cmp.Or(otherStatistics[statistic], statistic), origin
}

// takeOff takes one of the words from the beginning or the end of a name.
func takeOff(name string, words []string) (rest, word string) {
	for _, w := range words {
		if rest, ok := strings.CutPrefix(name, w+"_"); ok {
			return rest, w
		}
		if rest, ok := strings.CutSuffix(name, "_"+w); ok {
			return rest, w
		}
	}
	return name, ""
}

// statisticNames lists longer ones first: p99_9 begins with p99.
func statisticNames() []string {
	names := slices.AppendSeq(slices.Clone(statistics), maps.Keys(otherStatistics))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return names
}

// add takes a path that was found, with what defines it. In a path that was asked for
// an element may have a number, which that of the type has not.
func (e *Explanation) add(all []Definition, path, of string) {
	d, ok := definitionOf(all, of)
	if !ok {
		return
	}
	if of != path && !strings.Contains(of, "*") {
		path = of // it was asked for without its unit
	}
	e.Paths = append(e.Paths, path)
	e.define(d)
	origin, statistic := "", statisticOf(of)
	switch {
	case strings.HasPrefix(of, "latency.from_sent."):
		origin = "latency.from_sent"
	case strings.HasPrefix(of, "latency.from_due."):
		origin = "latency.from_due"
	case strings.HasPrefix(of, "steady.") && statistic != "":
		origin = "latencies of the steady state"
	}
	for _, about := range []string{origin, statistic} {
		for _, d := range all {
			if about != "" && len(d.Paths()) == 0 && slices.Contains(d.names(), about) {
				e.define(d)
			}
		}
	}
}

// define adds a definition once.
func (e *Explanation) define(d Definition) {
	if !slices.Contains(e.Definitions, d) {
		e.Definitions = append(e.Definitions, d)
	}
}

// orNil orders the definitions: of metrics before those of origins and statistics.
func (e *Explanation) orNil() *Explanation {
	if len(e.Paths) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Definitions, func(a, b Definition) int {
		about := func(d Definition) int {
			if len(d.Paths()) == 0 {
				return 1
			}
			return 0
		}
		return about(a) - about(b)
	})
	return e
}

// numberPaths lists where in the JSON of a [Summary] numbers can be, * for any element.
func numberPaths() []string { return pathsIn(reflect.TypeFor[Summary](), "") }

func pathsIn(t reflect.Type, path string) (out []string) {
	below := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch t.Kind() {
	case reflect.Pointer:
		return pathsIn(t.Elem(), path)
	case reflect.Slice, reflect.Map:
		if t == reflect.TypeFor[json.RawMessage]() {
			return nil
		}
		return pathsIn(t.Elem(), below("*"))
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported():
			case name == "" && f.Anonymous:
				out = append(out, pathsIn(f.Type, path)...)
			default:
				out = append(out, pathsIn(f.Type, below(cmp.Or(name, f.Name)))...)
			}
		}
		return out
	case reflect.String, reflect.Bool:
		return nil
	}
	return []string{path}
}

// strangePercentile is one that reports do not have.
var strangePercentile = regexp.MustCompile(`^p\d[\d._]*_|_p\d[\d._]*$`)

// likeNames lists the names that are like an unknown one, at most five.
func likeNames(all []Definition, q string) []string {
	rest, statistic, _ := nameParts(q)
	if other := strangePercentile.ReplaceAllString(rest, ""); other != rest {
		rest, statistic = other, "p99"
	}
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	consider := func(name string) {
		last := name[strings.LastIndex(name, ".")+1:]
		far := min(levenshtein.ComputeDistance(rest, name), levenshtein.ComputeDistance(rest, last)+1)
		if far <= max(min(2, len(rest)/2), len(rest)/3) {
			if statistic != "" {
				name = statistic + "_" + name
			}
			found = append(found, candidate{name, far})
		}
	}
	for _, d := range all {
		for _, n := range d.names() {
			if !strings.ContainsAny(n, " *") {
				consider(n)
			}
		}
	}
	for n := range otherNames {
		consider(n)
	}
	for _, s := range figure.All() {
		for _, n := range s.Spellings() {
			consider(n)
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Or(a.far-b.far, strings.Compare(a.name, b.name)) })
	var out []string
	for _, c := range found {
		if len(out) < 5 && meaningOf(all, c.name) != nil && !slices.Contains(out, c.name) {
			out = append(out, c.name)
		}
	}
	return out
}

// WriteExplanation writes an explanation for people: of a run the values, and what is
// defined. Without details it has [textpage.AnswerLines] lines at most.
func WriteExplanation(w io.Writer, e *Explanation, o textpage.Options) error {
	p := textpage.New(o)
	for i, d := range e.Definitions {
		if left := textpage.AnswerLines - 2 - min(len(e.Values)+len(e.Paths), 6) - p.Lines(); i > 0 &&
			left < 5 && !o.Details {
			p.Line("", fmt.Sprintf("and %s: --details", doc.Many(int64(len(e.Definitions)-i), "more definition")))
			break
		}
		p.Blank()
		for _, part := range []struct{ label, words string }{{"", d.Name}, {"  ", d.Definition},
			{"  formula: ", d.Formula}, {"  unit: ", d.Unit}} {
			p.Line(part.label, part.words)
		}
	}
	p.Blank()
	switch {
	case len(e.Values) > 0 && len(e.Paths) > 0:
		p.Line("", "In these results:")
		for i, v := range e.Values {
			if i >= o.AtMost(6) {
				p.Line("  ", fmt.Sprintf("and %d more: --details", len(e.Values)-i))
				break
			}
			value, rests := "none", ""
			if n, err := v.Value.Float64(); err == nil {
				value = doc.Number(n) + " " + v.Unit
			} else if v.Value != "" {
				value = v.Value.String() + " " + v.Unit
			}
			if v.Samples != nil {
				rests = "of " + doc.Brief(*v.Samples)
			}
			if v.Method != "" {
				rests += ", " + v.Method
			}
			if rests != "" {
				value += ", " + rests
			}
			p.Line("  ", v.Path+"  "+value)
		}
	case e.Values != nil && len(e.Paths) > 0:
		p.Line("", "These results do not have it.")
	case len(e.Paths) > 0:
		p.Line("", "In the JSON of a report:")
		for i, path := range e.Paths {
			if i >= o.AtMost(6) {
				p.Line("  ", fmt.Sprintf("and %d more: --details", len(e.Paths)-i))
				break
			}
			p.Line("  ", path)
		}
	}
	if says := e.Loosened.String(); says != "" {
		p.Line("", says)
	}
	_, err := p.WriteTo(w)
	return err
}

// WriteNames lists all that [Explain] knows, with the units.
func WriteNames(w io.Writer) error {
	var b bytes.Buffer
	for _, d := range Definitions() {
		for _, name := range d.names() {
			b.WriteString(name + " [" + d.Unit + "]\n")
		}
	}
	for _, c := range checkNames {
		b.WriteString(c.code + " [check]\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}
