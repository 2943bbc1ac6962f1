package report

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a contract. YAML's parser needs memory in the square of the depth of
// what it reads, and every clause with a scope keeps values of its own.
const (
	MaxContractText    = 16 << 10
	MaxContractClauses = 64
)

// ReadContract reads a contract from a YAML file, as [ParseContract] does.
func ReadContract(path string) (Contract, error) {
	f, err := os.Open(path)
	if err != nil {
		return Contract{}, err
	}
	defer f.Close()
	text := make([]byte, MaxContractText+1)
	n, err := io.ReadFull(f, text)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return Contract{}, err
	}
	return ParseContract(path, text[:n])
}

// ParseContract reads a contract:
//
//	name: chat in production
//	clauses:
//	  - p95 ttft <= 1s
//	  - clause: p99 ttft <= 300ms
//	    where: class = gold
//	    from: sent
//	  - clause: goodput >= 99%
//	    slo: ttft:200ms,tpot:50ms
//	gpus: 8
//	price_per_gpu_hour: 2.5
//
// Errors begin with the name, and with the line and the column at fault.
func ParseContract(name string, text []byte) (Contract, error) {
	var c Contract
	doc, err := contractDocument(text)
	if err == nil {
		err = eachKey(doc, c.set)
	}
	if err == nil && len(c.Clauses) == 0 {
		err = &placed{doc.GetToken().Position, "the contract has no clauses, such as\nclauses:\n  - p95 ttft <= 1s"}
	}
	if err == nil {
		return c, nil
	}
	var at *placed
	var library yaml.Error
	switch {
	case errors.As(err, &at):
	case errors.As(err, &library) && library.GetToken() != nil:
		at = &placed{library.GetToken().Position, library.GetMessage()}
	default:
		return Contract{}, fmt.Errorf("%s: %w", name, err)
	}
	return Contract{}, fmt.Errorf("%s:%d:%d: %s", name, at.at.Line, at.at.Column, at.why)
}

func contractDocument(text []byte) (ast.Node, error) {
	switch {
	case len(text) > MaxContractText:
		return nil, fmt.Errorf("a contract has at most %d bytes", MaxContractText)
	case !utf8.Valid(text):
		return nil, errors.New("it is not UTF-8")
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	switch {
	case len(file.Docs) > 1:
		return nil, errors.New("it has more than one document")
	case len(file.Docs) == 0 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() == ast.CommentType:
		return nil, errors.New("it is empty")
	}
	return file.Docs[0].Body, nil
}

// A placed is a fault whose place in a file is known.
type placed struct {
	at  *token.Position
	why string
}

// Error implements error.
func (p *placed) Error() string { return p.why }

func wrong(n ast.Node, format string, args ...any) error {
	return &placed{n.GetToken().Position, fmt.Sprintf(format, args...)}
}

// within says where in a scalar a misplaced text is. In a text of several lines, or
// with escapes, it is the beginning.
func placeIn(n ast.Node, err error) error {
	var m *misplaced
	if !errors.As(err, &m) {
		return err
	}
	t := n.GetToken()
	at := *t.Position
	if value := t.Value; m.at <= len(value) && strings.Contains(t.Origin, value) && !strings.Contains(value, "\n") && !strings.Contains(t.Origin, `\`) {
		at.Column += utf8.RuneCountInString(value[:m.at])
		if t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType {
			at.Column++
		}
	}
	return &placed{&at, m.why}
}

// eachKey hands on the keys of a map and their values.
func eachKey(n ast.Node, set func(key string, at, value ast.Node) error) error {
	m, ok := n.(ast.MapNode)
	if !ok {
		return wrong(n, "want keys and values, such as name: and clauses:")
	}
	for it := m.MapRange(); it.Next(); {
		if err := set(it.Key().GetToken().Value, it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return nil
}

func (c *Contract) set(key string, at, value ast.Node) (err error) {
	switch key {
	case "name":
		c.Name, err = textOf(key, value)
	case "clauses":
		err = c.setClauses(value)
	case "gpus":
		var n float64
		if n, err = numberOf(key, value); err == nil && n != float64(int(n)) {
			err = wrong(value, "gpus: want a whole number")
		}
		c.GPUs = int(n)
	case "price_per_gpu_hour":
		c.PricePerGPUHour, err = numberOf(key, value)
	default:
		err = wrong(at, "unknown key: want name, clauses, gpus or price_per_gpu_hour")
	}
	return err
}

func (c *Contract) setClauses(list ast.Node) error {
	all, ok := list.(*ast.SequenceNode)
	if !ok {
		return wrong(list, "clauses: want a list, each line of which begins with a dash")
	}
	if len(all.Values) > MaxContractClauses {
		return wrong(all.Values[MaxContractClauses], "a contract has at most %d clauses", MaxContractClauses)
	}
	for _, n := range all.Values {
		one, err := clauseOf(n)
		if err != nil {
			return err
		}
		c.Clauses = append(c.Clauses, one)
	}
	return nil
}

// clauseOf reads a clause, which is a text, or a map with the text and what belongs
// to it.
func clauseOf(n ast.Node) (Clause, error) {
	if _, ok := n.(ast.MapNode); !ok {
		return conditionOf(n)
	}
	parts := map[string]ast.Node{}
	err := eachKey(n, func(key string, at, value ast.Node) error {
		if !slices.Contains([]string{"clause", "where", "from", "slo"}, key) {
			return wrong(at, "unknown key of a clause: want clause, where, from or slo")
		}
		parts[key] = value
		return nil
	})
	if err != nil {
		return Clause{}, err
	}
	if parts["clause"] == nil {
		return Clause{}, wrong(n, "want clause: with the condition, such as p95 ttft <= 1s")
	}
	c, err := conditionOf(parts["clause"])
	for _, part := range []struct {
		key string
		set func(*Clause, ast.Node, string) error
	}{{"where", (*Clause).setWhere}, {"from", (*Clause).setFrom}, {"slo", (*Clause).setSLO}} {
		if n := parts[part.key]; n != nil && err == nil {
			var s string
			if s, err = textOf(part.key, n); err == nil {
				err = part.set(&c, n, s)
			}
		}
	}
	return c, err
}

func conditionOf(n ast.Node) (Clause, error) {
	s, err := textOf("a clause", n)
	if err != nil {
		return Clause{}, err
	}
	c, err := parseClause(s)
	return c, placeIn(n, err)
}

func (c *Clause) setWhere(n ast.Node, s string) (err error) {
	if c.quantity.kind == costOf {
		return wrong(n, "cost is that of all requests: what a GPU costs cannot be told apart by request")
	}
	c.where, err = parseScope(s)
	return placeIn(n, err)
}

func (c *Clause) setFrom(n ast.Node, s string) error {
	i := slices.Index(originNames[:], s)
	switch {
	case !c.quantity.hasOrigin():
		return wrong(n, "%s does not begin when a request is due or sent", c.quantity.name)
	case i < 0:
		return wrong(n, "from: want due or sent")
	}
	c.origin = i
	return nil
}

func (c *Clause) setSLO(n ast.Node, s string) (err error) {
	if c.quantity.kind != goodShare {
		return wrong(n, "slo belongs to goodput")
	}
	if c.slo, err = ParseSLO(s); err != nil {
		return wrong(n, "%v", err)
	}
	return nil
}

// textOf is a scalar as it was written, but for null and text that is not there.
func textOf(key string, n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", wrong(n, "%s: want text", key)
}

// numberOf is a number above zero.
func numberOf(key string, n ast.Node) (float64, error) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if v, err := strconv.ParseFloat(n.GetToken().Value, 64); err == nil && v > 0 && v < math.MaxInt32 {
			return v, nil
		}
	}
	return 0, wrong(n, "%s: want a number above zero", key)
}
