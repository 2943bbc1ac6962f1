package report

import (
	"errors"
	"slices"

	"reprise/trace/strictyaml"
)

// Bounds of a contract: every clause with a scope keeps values of its own.
const (
	MaxContractText    = 16 << 10
	MaxContractClauses = 64
)

var contractBounds = strictyaml.Bounds{What: "a contract", Bytes: MaxContractText}

// ReadContract reads a contract from a YAML file, as [ParseContract] does.
func ReadContract(path string) (Contract, error) {
	text, err := strictyaml.ReadFile(path, contractBounds)
	if err != nil {
		return Contract{}, err
	}
	return ParseContract(path, text)
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
	c, err := parseContract(text)
	if err != nil {
		return Contract{}, strictyaml.Named(name, err)
	}
	return c, nil
}

func parseContract(text []byte) (c Contract, err error) {
	doc, err := strictyaml.Parse(text, contractBounds)
	if err != nil {
		return c, err
	}
	err = doc.Keys(
		strictyaml.Key{Name: "name", Read: strictyaml.Into(&c.Name, strictyaml.Node.Text)},
		strictyaml.Key{Name: "clauses", Read: func(n strictyaml.Node) error { return n.List("a clause", MaxContractClauses, c.addClause) }},
		strictyaml.Key{Name: "gpus", Read: strictyaml.Into(&c.GPUs, strictyaml.Whole(1, 1<<31-1))},
		strictyaml.Key{Name: "price_per_gpu_hour", Read: strictyaml.Into(&c.PricePerGPUHour, price)})
	if err == nil && len(c.Clauses) == 0 {
		err = doc.Faultf("the contract has no clauses, such as\nclauses:\n  - p95 ttft <= 1s")
	}
	return c, err
}

func price(n strictyaml.Node) (float64, error) {
	v, err := n.Number()
	if err != nil || v <= 0 {
		err = n.Faultf("price_per_gpu_hour: want a number above zero")
	}
	return v, err
}

// addClause reads a clause, which is a text, or a map with the text and what belongs
// to it.
func (c *Contract) addClause(n strictyaml.Node) (err error) {
	condition := n
	var where, from, slo strictyaml.Node
	if n.IsMap() {
		condition = strictyaml.Node{}
		keep := func(into *strictyaml.Node) func(strictyaml.Node) error {
			return func(n strictyaml.Node) error { *into = n; return nil }
		}
		if err := n.Keys(strictyaml.Key{Name: "clause", Read: keep(&condition)}, strictyaml.Key{Name: "where", Read: keep(&where)},
			strictyaml.Key{Name: "from", Read: keep(&from)}, strictyaml.Key{Name: "slo", Read: keep(&slo)}); err != nil {
			return err
		}
		if !condition.Exists() {
			return n.Faultf("want clause: with the condition, such as p95 ttft <= 1s")
		}
	}
	var clause Clause
	s, err := condition.Text()
	if err == nil {
		clause, err = parseClause(s)
		err = placeIn(condition, err)
	}
	for _, part := range []struct {
		node strictyaml.Node
		set  func(*Clause, strictyaml.Node, string) error
	}{{where, (*Clause).setWhere}, {from, (*Clause).setFrom}, {slo, (*Clause).setSLO}} {
		if err == nil && part.node.Exists() {
			if s, err = part.node.Text(); err == nil {
				err = part.set(&clause, part.node, s)
			}
		}
	}
	c.Clauses = append(c.Clauses, clause)
	return err
}

// placeIn is an error in a clause or scope with its place in the file.
func placeIn(n strictyaml.Node, err error) error {
	var m *misplaced
	if errors.As(err, &m) {
		return n.FaultIn(m.at, m.why)
	}
	return err
}

func (c *Clause) setWhere(n strictyaml.Node, s string) (err error) {
	if c.quantity.kind == costOf {
		return n.Faultf("cost is that of all requests: what a GPU costs cannot be told apart by request")
	}
	c.where, err = parseScope(s)
	return placeIn(n, err)
}

func (c *Clause) setFrom(n strictyaml.Node, s string) error {
	i := slices.Index(originNames[:], s)
	switch {
	case !c.quantity.hasOrigin():
		return n.Faultf("%s does not begin when a request is due or sent", c.quantity.name)
	case i < 0:
		return n.Faultf("from: want due or sent")
	}
	c.origin = i
	return nil
}

func (c *Clause) setSLO(n strictyaml.Node, s string) (err error) {
	if c.quantity.kind != goodShare {
		return n.Faultf("slo belongs to goodput")
	}
	if c.slo, err = ParseSLO(s); err != nil {
		return n.Faultf("%v", err)
	}
	return nil
}
