// Package contract reads contracts, and judges runs by them.
//
// A [Contract] says in clauses what a run has to keep to:
//
//	name: chat in production
//	clauses:
//	  - p95 ttft <= 1s
//	  - clause: p99 ttft <= 300ms
//	    where: class = gold
//
// [Read] reads one from a file. Set it in the options of package report, and the
// summary has a report.ContractResult: each [Clause] holds, fails, or cannot be
// judged, with its measured value and its margin. Faults in a contract have the line
// and the column at which they are.
//
// Judging takes no pass of its own. Clauses about all requests are judged by what the
// summary is made of. Clauses with a scope keep the latencies that they are about,
// once for each scope.
//
// # Files
//
//   - contract.go: reading a contract from YAML, its bounds, and checking it
//   - clause.go: the language of a clause, such as p95 ttft <= 1s, by the names of
//     package figure
//   - parts.go: what belongs to a clause beside its condition: where, from, slo
//   - scope.go: the language of where: class = gold or input_tokens < 2048: fields and
//     their values
//   - lexeme.go: cutting clauses and scopes into words, and where in a line a fault is
//   - sessions.go: clauses about sessions, which the end of
//     the run may have cut
//   - observe.go: what a clause counts of single requests, for intervals, and what it asks of one
//   - judge.go: holding a run against the clauses: measured values, margins, and why a
//     clause cannot be judged
//
// Exported names may change in any release.
package contract

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"reprise/replay/figure"
	"reprise/replay/report"
	"reprise/trace/strictyaml"
)

// A Contract is what a run has to keep to: clauses about latencies, errors,
// throughput, goodput, the cache and cost. [Read] reads one, and the
// options of package report take it.
//
// Clauses are about the requests that are measured, those within the run's window, or
// about the sessions that began in it. Latencies are of the requests that succeeded; one that failed has none,
// and counts for error_rate and goodput alone.
type Contract struct {
	Name    string
	Clauses []Clause

	// What cost is computed from. 0 is not known, and refused where a clause is
	// about cost.
	GPUs            int
	PricePerGPUHour float64 // in any currency
}

// Check refuses a contract that cannot be judged: one without clauses, a clause about
// goodput where neither it nor the report has objectives, and a cost without a price.
func (c *Contract) Check(slo report.SLO) error {
	if len(c.Clauses) == 0 {
		return errors.New("the contract has no clauses")
	}
	for i := range c.Clauses {
		clause := &c.Clauses[i]
		if clause.of.Subject == nil {
			return errors.New("a clause of the contract is empty")
		}
		switch {
		case clause.of.Subject == figure.Goodput && clause.slo.Empty() && slo.Empty():
			return fmt.Errorf("%s: the clause has no slo, such as slo: ttft:200ms,tpot:50ms", clause)
		case clause.cost():
			if !(c.PricePerGPUHour > 0 && c.PricePerGPUHour < math.MaxInt32) || c.GPUs <= 0 {
				return fmt.Errorf("%s: cost needs gpus and price_per_gpu_hour", clause)
			}
		}
	}
	return nil
}

// Of returns the contract that the options of a report hold a run against, nil for
// none.
func Of(o report.Options) *Contract {
	c, _ := o.Contract.(*Contract)
	return c
}

// Bounds of a contract: every clause with a scope keeps values of its own.
const (
	maxText    = 16 << 10
	maxClauses = 99
)

var contractBounds = strictyaml.Bounds{What: "a contract", Bytes: maxText}

// Read reads a contract from a YAML file, as [Parse] does.
func Read(path string) (Contract, error) {
	text, err := strictyaml.ReadFile(path, contractBounds)
	if err != nil {
		return Contract{}, err
	}
	return Parse(path, text)
}

// Parse reads a contract:
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
func Parse(name string, text []byte) (Contract, error) {
	doc, err := strictyaml.Parse(text, contractBounds)
	if err != nil {
		return Contract{}, strictyaml.Named(name, err)
	}
	price := func(n strictyaml.Node) (float64, error) {
		v, err := n.Number()
		if err != nil || v <= 0 {
			err = n.Faultf("price_per_gpu_hour: want a number above zero")
		}
		return v, err
	}
	var c Contract
	err = doc.Keys(
		strictyaml.Key{Name: "name", Read: strictyaml.Into(&c.Name, strictyaml.Node.Text)},
		strictyaml.Key{Name: "clauses", Read: func(n strictyaml.Node) error {
			return n.List("a clause", maxClauses, c.addClause)
		}},
		strictyaml.Key{Name: "gpus", Read: strictyaml.Into(&c.GPUs, strictyaml.Whole(1, 1<<31-1))},
		strictyaml.Key{Name: "price_per_gpu_hour", Read: strictyaml.Into(&c.PricePerGPUHour, price)})
	if err == nil && len(c.Clauses) == 0 {
		err = doc.Faultf("the contract has no clauses, such as\nclauses:\n  - p95 ttft <= 1s")
	}
	if err != nil {
		return Contract{}, strictyaml.Named(name, err)
	}
	return c, nil
}

// NeedsSteady implements [report.Contract].
func (c *Contract) NeedsSteady() bool {
	return slices.ContainsFunc(c.Clauses, func(c Clause) bool { return c.where != nil && mentions(c.where, "state") })
}

// addClause reads a clause, which is a text, or a map with the text and what belongs
// to it.
func (c *Contract) addClause(n strictyaml.Node) error {
	condition := n
	var where, from, slo strictyaml.Node
	if n.IsMap() {
		condition = strictyaml.Node{}
		keep := func(name string, into *strictyaml.Node) strictyaml.Key {
			return strictyaml.Key{Name: name, Read: func(n strictyaml.Node) error { *into = n; return nil }}
		}
		if err := n.Keys(keep("clause", &condition), keep("where", &where), keep("from", &from),
			keep("slo", &slo)); err != nil {
			return err
		}
		if !condition.Exists() {
			return n.Faultf("want clause: with the condition, such as p95 ttft <= 1s")
		}
	}
	s, err := condition.Text()
	if err != nil {
		return err
	}
	clause, err := parseClause(s)
	if err != nil {
		return placeIn(condition, err)
	}
	for _, part := range []struct {
		of   strictyaml.Node
		read func(n strictyaml.Node, s string) error
	}{{where, clause.readWhere}, {from, clause.readFrom}, {slo, clause.readSLO}} {
		if !part.of.Exists() {
			continue
		}
		if s, err = part.of.Text(); err == nil {
			err = part.read(part.of, s)
		}
		if err != nil {
			return err
		}
	}
	c.Clauses = append(c.Clauses, clause)
	return nil
}

// placeIn is an error in a clause or scope with its place in the file.
func placeIn(n strictyaml.Node, err error) error {
	var m *misplaced
	if errors.As(err, &m) {
		return n.FaultIn(m.at, m.why)
	}
	return err
}
