package bench

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"reprise/replay"
	"reprise/replay/report"
	"reprise/trace/arrival"
)

// Bounds of a suite. The parser needs memory in the square of the depth.
const (
	MaxSuiteText  = 64 << 10
	MaxSuiteRows  = 256
	maxSuiteDepth = 32
	maxRepeats    = 999
)

// ReadSuite reads a suite from a YAML file, as [ParseSuite] does.
func ReadSuite(path string) (Suite, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Suite{}, err
	}
	if info.Size() > MaxSuiteText {
		return Suite{}, fmt.Errorf("%s: a suite has at most %d bytes", path, MaxSuiteText)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Suite{}, err
	}
	return ParseSuite(path, text)
}

// ParseSuite reads a suite. What stands beside rows at the top is the default of
// every row. Files are found from where the suite is. Errors begin with the name, and
// with the line and the column at fault; docs/bench.md has the keys.
func ParseSuite(name string, text []byte) (Suite, error) {
	r := suiteReader{name: name, text: text, suite: Suite{Seed: 42, Digest: digestOf(text)}}
	err := r.read()
	if err == nil {
		base := filepath.Base(name)
		r.suite.Name = cmp.Or(r.suite.Name, strings.TrimSuffix(base, filepath.Ext(base)))
		return r.suite, nil
	}
	var at *placedFault
	var library yaml.Error
	switch {
	case errors.As(err, &at):
	case errors.As(err, &library) && library.GetToken() != nil:
		at = &placedFault{library.GetToken().Position, library.GetMessage()}
	default:
		return Suite{}, err
	}
	return Suite{}, fmt.Errorf("%s:%d:%d: %s", name, at.at.Line, at.at.Column, at.why)
}

// A placedFault is a fault whose place in the suite is known.
type placedFault struct {
	at  *token.Position
	why string
}

// Error implements error.
func (p *placedFault) Error() string { return p.why }

// faultAt is a fault at a node.
func faultAt(n ast.Node, format string, args ...any) error {
	return &placedFault{beginOf(n), fmt.Sprintf(format, args...)}
}

// beginOf is where a node begins. The token of a block map is its first colon.
func beginOf(n ast.Node) *token.Position {
	at := n.GetToken().Position
	if m, ok := n.(ast.MapNode); ok {
		if it := m.MapRange(); it.Next() && it.Key().GetToken().Position.Offset < at.Offset {
			return it.Key().GetToken().Position
		}
	}
	return at
}

type suiteReader struct {
	name  string
	text  []byte
	suite Suite
	base  Row // what every row has unless it says otherwise
}

func (r *suiteReader) read() error {
	doc, err := r.document()
	if err != nil {
		return err
	}
	r.base = Row{Repeats: 1, Cache: replay.CacheCold}
	var rows ast.Node
	err = r.each(doc, func(key string, at, value ast.Node) (err error) {
		switch key {
		case "name":
			r.suite.Name, err = scalar(value)
		case "about":
			r.suite.About, err = scalar(value)
		case "seed":
			r.suite.Seed, err = whole(value, 1<<53)
		case "rows":
			rows = value
		case "hypothesis":
			err = faultAt(at, "a hypothesis is that of a row")
		default:
			err = r.set(&r.base, key, at, value)
		}
		return err
	})
	if err != nil {
		return err
	}
	list, ok := rows.(*ast.SequenceNode)
	switch {
	case rows == nil:
		return faultAt(doc, "the suite has no rows")
	case !ok || len(list.Values) == 0:
		return faultAt(rows, "rows: want a list, each row of which begins with a dash")
	case len(list.Values) > MaxSuiteRows:
		return faultAt(list.Values[MaxSuiteRows], "a suite has at most %d rows", MaxSuiteRows)
	}
	for _, n := range list.Values {
		if err := r.row(n); err != nil {
			return err
		}
	}
	return nil
}

// document parses the text within bounds.
func (r *suiteReader) document() (ast.Node, error) {
	switch {
	case len(r.text) > MaxSuiteText:
		return nil, fmt.Errorf("%s: a suite has at most %d bytes", r.name, MaxSuiteText)
	case !utf8.Valid(r.text):
		return nil, fmt.Errorf("%s: it is not UTF-8", r.name)
	case nestsTooDeep(r.text):
		return nil, fmt.Errorf("%s: more than %d lists or maps within each other", r.name, maxSuiteDepth)
	}
	file, err := parser.ParseBytes(r.text, 0)
	switch {
	case err != nil:
		return nil, err
	case len(file.Docs) > 1:
		return nil, fmt.Errorf("%s: it has more than one document", r.name)
	case len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType:
		return nil, fmt.Errorf("%s: it is empty", r.name)
	}
	return file.Docs[0].Body, nil
}

// nestsTooDeep counts brackets, and the dashes and question marks at the beginning
// of a line, also those in quotes.
func nestsTooDeep(text []byte) bool {
	open, marks, begun := 0, 0, false
	for _, c := range text {
		switch {
		case c == '\n' || c == '\r':
			marks, begun = 0, false
		case c == '[' || c == '{':
			open, begun = open+1, true
		case c == ']' || c == '}':
			open = max(0, open-1)
		case (c == '-' || c == '?') && !begun:
			marks++
		case c != ' ' && c != '\t':
			begun = true
		}
		if open > maxSuiteDepth || marks > maxSuiteDepth {
			return true
		}
	}
	return false
}

// each hands on the keys of a map and their values, each key once.
func (r *suiteReader) each(n ast.Node, set func(key string, at, value ast.Node) error) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return faultAt(n, "want keys and values")
	}
	for it := m.MapRange(); it.Next(); {
		if it.Value() == nil || it.Value().Type() == ast.NullType {
			return faultAt(it.Key(), "%s has no value", it.Key().GetToken().Value)
		}
		if err := set(it.Key().GetToken().Value, it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

var rowName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// row reads a row, and holds it against those before it.
func (r *suiteReader) row(n ast.Node) error {
	row, places := r.base, map[string]ast.Node{}
	err := r.each(n, func(key string, at, value ast.Node) (err error) {
		places[key] = value
		switch key {
		case "name":
			row.Name, err = scalar(value)
			if err == nil && !rowName.MatchString(row.Name) {
				err = faultAt(value, "name: want letters, digits, dots, dashes and underscores, 64 at most, since a directory is named so")
			}
		case "about":
			row.About, err = scalar(value)
		case "hypothesis":
			row.Hypothesis, err = r.hypothesis(value)
		default:
			err = r.set(&row, key, at, value)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case row.Name == "":
		return faultAt(n, "the row has no name")
	case r.suite.Row(row.Name) != nil:
		return faultAt(places["name"], "a row before it has that name")
	case row.Workload == WorkloadRef{}:
		return faultAt(n, "the row has no workload")
	case row.Primary == Metric{}:
		row.Primary = Metric{"output_tokens_per_s"}
	}
	if h := row.Hypothesis; h != nil && h.Against != "" && r.suite.Row(h.Against) == nil {
		return faultAt(places["hypothesis"], "against: there is no row of that name before it")
	}
	if row.Load.Concurrency > 0 && row.Load.Speed != 0 {
		return faultAt(places["load"], "a closed loop has no speed")
	}
	if (row.Requests > 0 || row.Input != "" || row.Output != "") && (row.Workload.Trace || isTrace(row.Workload.File)) {
		return faultAt(n, "requests, input and output change a specification; a trace is sent as it is")
	}
	r.suite.Rows = append(r.suite.Rows, row)
	return nil
}

func isTrace(file string) bool { return file != "" && !isSpecFile(file) }

func isSpecFile(file string) bool {
	ext := strings.ToLower(filepath.Ext(file))
	return ext == ".yaml" || ext == ".yml"
}

// set reads a key that rows have.
func (r *suiteReader) set(row *Row, key string, at, value ast.Node) (err error) {
	var n uint64
	switch key {
	case "workload":
		row.Workload, err = r.workload(value)
	case "load":
		row.Load, err = parsed(value, ParseLoad)
	case "requests":
		n, err = whole(value, 1<<40)
		row.Requests = int64(n)
	case "input", "output":
		into := map[string]*string{"input": &row.Input, "output": &row.Output}[key]
		if *into, err = scalar(value); err == nil {
			if _, lerr := arrival.ParseLength(*into); lerr != nil {
				err = faultAt(value, "%s: %v", key, lerr)
			}
		}
	case "warmup":
		n, err = whole(value, 1<<30)
		row.Warmup = int64(n)
	case "settle", "cooldown":
		into := map[string]*string{"settle": &row.Settle, "cooldown": &row.Cooldown}[key]
		_, err = parsed(value, replay.ParseSpan)
		if err == nil {
			*into, err = scalar(value)
		}
	case "cache":
		row.Cache, err = scalar(value)
		if err == nil && row.Cache != replay.CacheAsIs && row.Cache != replay.CacheCold && row.Cache != replay.CacheWarm {
			err = faultAt(value, "cache: want %s, %s or %s", replay.CacheAsIs, replay.CacheCold, replay.CacheWarm)
		}
	case "repeats":
		if n, err = whole(value, maxRepeats); err == nil && n == 0 {
			err = faultAt(value, "repeats: want 1 or more")
		}
		row.Repeats = int(n)
	case "duration":
		row.Duration, err = parsed(value, positiveDuration)
	case "timeout":
		row.Timeout, err = parsed(value, positiveDuration)
	case "contract":
		row.Contract, err = r.contract(value)
	case "primary":
		row.Primary, err = parsed(value, ParseMetric)
	default:
		err = faultAt(at, "unknown key %s", strconv.Quote(key))
	}
	return err
}

func positiveDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errors.New("want a time with its unit, such as 30s")
	}
	return d, nil
}

// hypothesis is a sentence, or says what moves.
func (r *suiteReader) hypothesis(n ast.Node) (*Hypothesis, error) {
	h := &Hypothesis{}
	if _, ok := n.(ast.MapNode); !ok {
		var err error
		h.Says, err = scalar(n)
		return h, err
	}
	err := r.each(n, func(key string, at, value ast.Node) (err error) {
		switch key {
		case "says":
			h.Says, err = scalar(value)
		case "metric":
			h.Metric, err = parsed(value, ParseMetric)
		case "moves":
			h.Moves, err = scalar(value)
		case "against":
			h.Against, err = scalar(value)
		case "by":
			h.By, err = parsed(value, parsePercent)
		default:
			err = faultAt(at, "unknown key of a hypothesis: want says, metric, moves, against or by")
		}
		return err
	})
	if err == nil {
		if cerr := h.check(); cerr != nil {
			err = faultAt(n, "%v", cerr)
		}
	}
	return h, err
}

// workload is a name, a file, trace, or a specification.
func (r *suiteReader) workload(n ast.Node) (WorkloadRef, error) {
	if _, ok := n.(ast.MapNode); ok {
		return WorkloadRef{Spec: r.inPlace(n)}, nil
	}
	s, err := scalar(n)
	switch {
	case err != nil:
		return WorkloadRef{}, err
	case s == "trace":
		return WorkloadRef{Trace: true}, nil
	case s == "":
		return WorkloadRef{}, faultAt(n, "workload: want a name, a file, trace, or a specification")
	case isSpecFile(s) || strings.ContainsAny(s, "./"):
		return WorkloadRef{File: r.near(s)}, nil
	}
	return WorkloadRef{Name: s}, nil
}

// contract is a file, or a contract.
func (r *suiteReader) contract(n ast.Node) (*report.Contract, error) {
	var c report.Contract
	var err error
	if _, ok := n.(ast.MapNode); ok {
		c, err = report.ParseContract(r.name, []byte(r.inPlace(n)))
		return &c, err
	}
	path, err := scalar(n)
	if err == nil {
		c, err = report.ReadContract(r.near(path))
	}
	if err == nil {
		err = (&report.Options{Contract: &c}).Check()
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

// inPlace is the text of a node behind as many lines and columns as there are before
// it, so that what reads it finds faults where the suite has them.
func (r *suiteReader) inPlace(n ast.Node) string {
	line, column := beginOf(n).Line, beginOf(n).Column
	lines := strings.Split(string(r.text), "\n")
	if flow, ok := n.(*ast.MappingNode); ok && flow.IsFlowStyle {
		return strings.Repeat("\n", line-1) + strings.Repeat(" ", column-1) + n.String()
	}
	end := line
	for end < len(lines) && within(lines[end], column) {
		end++
	}
	return strings.Repeat("\n", line-1) + strings.Join(lines[line-1:end], "\n") + "\n"
}

// within tells whether a line belongs to a block that begins at a column.
func within(line string, column int) bool {
	text := strings.TrimLeft(line, " ")
	return strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#") || len(line)-len(text) >= column-1
}

// scalar is a text or a number as it was written.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), nil
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	}
	return "", faultAt(n, "want text")
}

// parsed reads a text by a parser of its own.
func parsed[T any](n ast.Node, parse func(string) (T, error)) (T, error) {
	s, err := scalar(n)
	if err != nil {
		var none T
		return none, err
	}
	v, err := parse(s)
	if err != nil {
		err = faultAt(n, "%v", err)
	}
	return v, err
}

func whole(n ast.Node, most uint64) (uint64, error) {
	if _, ok := n.(*ast.IntegerNode); ok {
		if v, err := strconv.ParseUint(n.GetToken().Value, 10, 64); err == nil && v <= most {
			return v, nil
		}
	}
	return 0, faultAt(n, "want a whole number, %d at most", most)
}
