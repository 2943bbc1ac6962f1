package bench

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/replay"
	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
	"reprise/trace/strictyaml"
)

// Bounds of a suite.
const (
	maxSuiteText = 64 << 10
	maxSuiteRows = 256
	maxRepeats   = 999
)

var suiteBounds = strictyaml.Bounds{What: "a suite", Bytes: maxSuiteText}

// ReadSuite reads a suite from a YAML file, as [ParseSuite] does.
func ReadSuite(path string) (Suite, error) {
	text, err := strictyaml.ReadFile(path, suiteBounds)
	if err != nil {
		return Suite{}, err
	}
	return ParseSuite(path, text)
}

// ParseSuite reads a suite. What stands beside rows at the top is the default of
// every row. Files are found from where the suite is. Errors begin with the name, and
// with the line and the column at fault; docs/bench.md has the keys.
func ParseSuite(name string, text []byte) (Suite, error) {
	r := suiteReader{name: name, suite: Suite{Seed: 42, Digest: digestOf(text)}}
	doc, err := strictyaml.Parse(text, suiteBounds)
	if err == nil {
		err = r.read(doc)
	}
	if err != nil {
		return Suite{}, strictyaml.Named(name, err)
	}
	base := filepath.Base(name)
	r.suite.Name = cmp.Or(r.suite.Name, strings.TrimSuffix(base, filepath.Ext(base)))
	return r.suite, nil
}

type suiteReader struct {
	name  string
	suite Suite
	base  Row // what every row has unless it says otherwise
}

func (r *suiteReader) read(doc strictyaml.Node) error {
	r.base = Row{Repeats: 1, Cache: result.CacheSalted, Session: defaultSessionSettings()}
	var rows strictyaml.Node
	keys := append([]strictyaml.Key{
		{Name: "name", Read: strictyaml.Into(&r.suite.Name, strictyaml.Node.Text)},
		{Name: "about", Read: strictyaml.Into(&r.suite.About, strictyaml.Node.Text)},
		{Name: "seed", Read: strictyaml.Into(&r.suite.Seed, strictyaml.Whole[uint64](0, 1<<53))},
		{Name: "rows", Read: func(n strictyaml.Node) error { rows = n; return nil }},
		{Name: "hypothesis", Read: func(n strictyaml.Node) error { return n.Faultf("a hypothesis belongs to a row") }},
	}, append(r.keys(&r.base), sessionKeys(&r.base)...)...)
	if err := doc.Keys(keys...); err != nil {
		return err
	}
	if !rows.Exists() {
		return doc.Faultf("the suite has no rows")
	}
	return rows.List("a row", maxSuiteRows, r.row)
}

var rowName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// row reads a row, and holds it against those before it.
func (r *suiteReader) row(n strictyaml.Node) error {
	row := r.base
	var name, hypothesis, load strictyaml.Node // where they are
	at := func(place *strictyaml.Node, read func(strictyaml.Node) error) func(strictyaml.Node) error {
		return func(n strictyaml.Node) error { *place = n; return read(n) }
	}
	named := strictyaml.Parsed(func(s string) (string, error) {
		if !rowName.MatchString(s) {
			return "", errors.New("want at most 64 letters, digits, dots, dashes and underscores, since a directory " +
				"gets this name")
		}
		return s, nil
	})
	keys := append([]strictyaml.Key{
		{Name: "name", Read: at(&name, strictyaml.Into(&row.Name, named))},
		{Name: "about", Read: strictyaml.Into(&row.About, strictyaml.Node.Text)},
		{Name: "hypothesis", Read: at(&hypothesis, strictyaml.Into(&row.Hypothesis, readHypothesis))},
	}, r.keys(&row)...)
	loads, settled := 0, false
	count := func(read func(strictyaml.Node) error, to func()) func(strictyaml.Node) error {
		return func(n strictyaml.Node) error { to(); return read(n) }
	}
	for i := range keys {
		if keys[i].Name == "load" {
			keys[i].Read = count(at(&load, keys[i].Read), func() { loads++ })
		}
	}
	for _, key := range sessionKeys(&row) {
		to := func() { settled = true }
		if key.Name == "sessions" || key.Name == "session-rate" {
			to = func() { loads++ }
		}
		key.Read = count(key.Read, to)
		keys = append(keys, key)
	}
	err := n.Keys(keys...)
	if err == nil {
		err = row.checkSessions(n, loads, settled)
	}
	switch {
	case err != nil:
		return err
	case row.Name == "":
		return n.Faultf("the row has no name")
	case r.suite.Row(row.Name) != nil:
		return name.Faultf("a row before it has that name")
	case row.Workload == WorkloadRef{}:
		return n.Faultf("the row has no workload")
	case row.Primary == figure.Figure{}:
		row.Primary = figure.Of(0, figure.OutputRate)
	}
	if h := row.Hypothesis; h != nil && h.Against != "" && r.suite.Row(h.Against) == nil {
		return hypothesis.Faultf("against: there is no row of that name before it")
	}
	if row.Load.Concurrency > 0 && row.Load.Speed != 0 {
		return load.Faultf("a closed loop has no speed")
	}
	if (row.Requests > 0 || row.Input != "" || row.Output != "") && (row.Workload.Trace || isTrace(row.Workload.File)) {
		return n.Faultf("requests, input and output change a specification; a trace is sent as it is")
	}
	r.suite.Rows = append(r.suite.Rows, row)
	return nil
}

func isTrace(file string) bool { return file != "" && !isSpecFile(file) }

func isSpecFile(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".yaml" || ext == ".yml"
}

// keys are those that rows have and that may stand at the top.
func (r *suiteReader) keys(row *Row) []strictyaml.Key {
	cache := strictyaml.Parsed(func(s string) (string, error) {
		if !slices.Contains(result.Caches(), s) {
			return "", fmt.Errorf("want one of %s", strings.Join(result.Caches(), ", "))
		}
		return s, nil
	})
	return []strictyaml.Key{
		{Name: "workload", Read: strictyaml.Into(&row.Workload, r.workload)},
		{Name: "load", Read: strictyaml.Into(&row.Load, strictyaml.Parsed(ParseLoad))},
		{Name: "requests", Read: strictyaml.Into(&row.Requests, strictyaml.Whole[int64](0, 1<<40))},
		{Name: "input", Read: strictyaml.Into(&row.Input, strictyaml.Parsed(asWritten(arrival.ParseLength)))},
		{Name: "output", Read: strictyaml.Into(&row.Output, strictyaml.Parsed(asWritten(arrival.ParseLength)))},
		{Name: "warmup", Read: strictyaml.Into(&row.Warmup, strictyaml.Whole[int64](0, 1<<30))},
		{Name: "settle", Read: strictyaml.Into(&row.Settle, strictyaml.Parsed(asWritten(replay.ParseSpan)))},
		{Name: "cooldown", Read: strictyaml.Into(&row.Cooldown, strictyaml.Parsed(asWritten(replay.ParseSpan)))},
		{Name: "cache", Read: strictyaml.Into(&row.Cache, cache)},
		{Name: "repeats", Read: strictyaml.Into(&row.Repeats, strictyaml.Whole(1, maxRepeats))},
		{Name: "duration", Read: strictyaml.Into(&row.Duration, strictyaml.Parsed(positiveDuration))},
		{Name: "timeout", Read: strictyaml.Into(&row.Timeout, strictyaml.Parsed(positiveDuration))},
		{Name: "contract", Read: strictyaml.Into(&row.Contract, r.contract)},
		{Name: "primary", Read: strictyaml.Into(&row.Primary, strictyaml.Parsed(parseMetric))},
	}
}

// asWritten is a parser that checks a text and leaves it as it is.
func asWritten[T any](parse func(string) (T, error)) func(string) (string, error) {
	return func(s string) (string, error) {
		_, err := parse(s)
		return s, err
	}
}

func positiveDuration(s string) (time.Duration, error) {
	d, err := quantity.Duration(s)
	if err == nil && d == 0 {
		err = errors.New("want a time above 0, such as 30s")
	}
	return d, err
}

// readHypothesis reads a sentence, or what moves.
func readHypothesis(n strictyaml.Node) (*Hypothesis, error) {
	h := &Hypothesis{}
	if !n.IsMap() {
		var err error
		h.Says, err = n.Text()
		return h, err
	}
	err := n.Keys(
		strictyaml.Key{Name: "says", Read: strictyaml.Into(&h.Says, strictyaml.Node.Text)},
		strictyaml.Key{Name: "metric", Read: strictyaml.Into(&h.Metric, strictyaml.Parsed(parseMetric))},
		strictyaml.Key{Name: "moves", Read: strictyaml.Into(&h.Moves, strictyaml.Node.Text)},
		strictyaml.Key{Name: "against", Read: strictyaml.Into(&h.Against, strictyaml.Node.Text)},
		strictyaml.Key{Name: "by", Read: strictyaml.Into(&h.By, strictyaml.Parsed(parsePercent))})
	if err == nil {
		if cerr := h.check(); cerr != nil {
			err = n.Faultf("%v", cerr)
		}
	}
	return h, err
}

// workload is a name, a file, trace, or a specification.
func (r *suiteReader) workload(n strictyaml.Node) (WorkloadRef, error) {
	if n.IsMap() {
		return WorkloadRef{Spec: string(n.Source())}, nil
	}
	s, err := n.Text()
	switch {
	case err != nil:
		return WorkloadRef{}, err
	case s == "trace":
		return WorkloadRef{Trace: true}, nil
	case s == "":
		return WorkloadRef{}, n.Faultf("workload: want a name, a file, trace, or a specification")
	case isSpecFile(s) || strings.ContainsAny(s, "./"):
		return WorkloadRef{File: r.near(s)}, nil
	}
	return WorkloadRef{Name: s}, nil
}

// contract is a file, or a contract.
func (r *suiteReader) contract(n strictyaml.Node) (*contract.Contract, error) {
	var c contract.Contract
	var err error
	if n.IsMap() {
		c, err = contract.Parse(r.name, n.Source())
		return &c, err
	}
	path, err := n.Text()
	if err != nil {
		return nil, err
	}
	if c, err = contract.Read(r.near(path)); err == nil {
		err = (&report.Options{Contract: &c}).Check()
	}
	if err != nil {
		err = n.Faultf("contract: %v", err)
	}
	return &c, err
}

// near is a path as seen from the suite.
func (r *suiteReader) near(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.name), path)
}
