// Package scenario holds a replay to the rules of a published benchmark, and stamps its
// results as fit to be submitted or not.
//
// A [Scenario] is read from YAML: [Find] reads one that is built in or a file of the same
// form. [Scenario.Apply] locks the settings of a run before it begins: an unset one is
// filled in, and one that is set otherwise is a broken rule. [Stamp] adds what only the results
// tell: interruptions, answers that the server's context had no room for, and whether the
// measurement can be trusted.
//
// # Files
//
//   - scenario.go: reading a scenario from YAML; the built-in ones
//   - apply.go: holding the settings of a run against the rules
//   - stamp.go: the stamp of a run that is over
//
// Exported names may change in any release.
package scenario

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/quantity"
	"reprise/trace/strictyaml"
)

// A Scenario is the rules of a published benchmark.
type Scenario struct {
	Name      string
	Version   string
	Published string // where the rules were read, for people

	Rules      []Rule
	Limits     Limits
	Workloads  []string // digests of the workloads that may be replayed
	Sources    []string // digests of the files that a workload may be of, as a whole; with neither any may be replayed
	Unchecked  []string // rules that cannot be checked: with one, no run is valid
	Submission []string // what a submission needs

	about result.Scenario
}

// A Rule is about one setting of a replay, by the name of its flag, or about one field of
// --extra-body, as body.NAME.
type Rule struct {
	Setting string
	Given   bool     // it must be given
	Is      string   // it has this value, and is filled in
	Default string   // it is filled in; another value may be given
	OneOf   []string // it has one of these values
	Least   string   // it is at least this
	Unset   bool     // it keeps the value that it has by itself
	Why     string
}

// Limits are what a run that is over is held to. A negative one is not checked.
type Limits struct {
	TooLong float64 // share of the answers that refused a prompt since it does not fit the context
	Errors  float64 // share of the requests that failed, in place of the usual limit of a trustworthy run
}

//go:embed *.yaml
var builtIn embed.FS

// newest is what the name of a benchmark alone stands for: its newest rules that can be
// checked in whole, but for the workload.
var newest = map[string]string{"agentx": "agentx-0.13"}

// Names are those of the scenarios that are built in, and their short names.
func Names() []string { return []string{"agentx", "agentx-0.13", "agentx-inferencex-2026-08"} }

// Find reads the scenario of a name that is built in, or of a file.
func Find(name string) (*Scenario, error) {
	text, err := builtIn.ReadFile(cmp.Or(newest[name], name) + ".yaml")
	if err == nil {
		s, err := parse(name, text)
		if err == nil {
			s.about.BuiltIn = true
		}
		return s, err
	}
	if text, err = strictyaml.ReadFile(name, bounds); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is neither a file nor a scenario that is built in: these are %s",
				quantity.Quote(name), strings.Join(Names(), ", "))
		}
		return nil, err
	}
	return parse(name, text)
}

var bounds = strictyaml.Bounds{What: "a scenario", Bytes: 64 << 10}

const maxRules = 256

// parse reads a scenario. Faults begin with the name, and the line and column at fault;
// docs/scenarios.md has the keys.
func parse(name string, text []byte) (*Scenario, error) {
	s := &Scenario{Limits: Limits{TooLong: -1, Errors: -1}}
	doc, err := strictyaml.Parse(text, bounds)
	if err == nil {
		err = s.read(doc)
	}
	if err != nil {
		return nil, strictyaml.Named(name, err)
	}
	sum := sha256.Sum256(text)
	s.about = result.Scenario{Name: s.Name, Version: s.Version, Published: s.Published,
		Rules: hex.EncodeToString(sum[:]), Unchecked: s.Unchecked}
	return s, nil
}

func (s *Scenario) read(doc strictyaml.Node) error {
	share := strictyaml.Parsed(quantity.Share)
	texts := func(into *[]string, one string) func(strictyaml.Node) error {
		return func(n strictyaml.Node) error {
			return n.List(one, maxRules, func(n strictyaml.Node) error {
				t, err := n.Text()
				*into = append(*into, t)
				return err
			})
		}
	}
	err := doc.Keys(
		strictyaml.Key{Name: "name", Read: strictyaml.Into(&s.Name, strictyaml.Node.Text)},
		strictyaml.Key{Name: "version", Read: strictyaml.Into(&s.Version, strictyaml.Node.Text)},
		strictyaml.Key{Name: "published", Read: strictyaml.Into(&s.Published, strictyaml.Node.Text)},
		strictyaml.Key{Name: "rules", Read: func(n strictyaml.Node) error { return n.Each(s.rule(texts)) }},
		strictyaml.Key{Name: "limits", Read: func(n strictyaml.Node) error {
			return n.Keys(strictyaml.Key{Name: "too_long", Read: strictyaml.Into(&s.Limits.TooLong, share)},
				strictyaml.Key{Name: "errors", Read: strictyaml.Into(&s.Limits.Errors, share)})
		}},
		strictyaml.Key{Name: "workloads", Read: texts(&s.Workloads, "a digest")},
		strictyaml.Key{Name: "sources", Read: texts(&s.Sources, "a digest")},
		strictyaml.Key{Name: "unchecked", Read: texts(&s.Unchecked, "a rule")},
		strictyaml.Key{Name: "submission", Read: texts(&s.Submission, "what a submission needs")})
	switch {
	case err != nil:
		return err
	case s.Name == "" || s.Version == "":
		return doc.Faultf("a scenario has a name and a version")
	case len(s.Rules) == 0:
		return doc.Faultf("the scenario has no rules")
	}
	for _, digest := range slices.Concat(s.Workloads, s.Sources) {
		if hexes, ok := strings.CutPrefix(digest, "sha256:"); !ok || hexes == "" ||
			strings.Trim(hexes, "0123456789abcdef") != "" {
			return doc.Faultf("%s is no digest: want sha256: and hexadecimal digits, in small letters",
				quantity.Quote(digest))
		}
	}
	return nil
}

// rule returns what reads a rule.
func (s *Scenario) rule(texts func(*[]string, string) func(strictyaml.Node) error) func(string, strictyaml.Node,
	strictyaml.Node) error {
	yes := func(into *bool) func(strictyaml.Node) error {
		return func(n strictyaml.Node) error {
			if t, err := n.Text(); err != nil || t != "true" {
				return n.Faultf("want true, or leave it out")
			}
			*into = true
			return nil
		}
	}
	return func(setting string, at, n strictyaml.Node) error {
		r := Rule{Setting: setting}
		text := strictyaml.Node.Text
		err := n.Keys(
			strictyaml.Key{Name: "is", Read: strictyaml.Into(&r.Is, text)},
			strictyaml.Key{Name: "default", Read: strictyaml.Into(&r.Default, text)},
			strictyaml.Key{Name: "one_of", Read: texts(&r.OneOf, "a value")},
			strictyaml.Key{Name: "least", Read: strictyaml.Into(&r.Least, text)},
			strictyaml.Key{Name: "unset", Read: yes(&r.Unset)},
			strictyaml.Key{Name: "given", Read: yes(&r.Given)},
			strictyaml.Key{Name: "why", Read: strictyaml.Into(&r.Why, text)})
		switch _, field := strings.CutPrefix(setting, bodyField); {
		case err != nil:
			return err
		case len(s.Rules) == maxRules:
			return at.Faultf("want %d rules at most", maxRules)
		case r.Is == "" && r.Default == "" && r.OneOf == nil && r.Least == "" && !r.Unset && !r.Given:
			return at.Faultf("the rule for %s asks for nothing: want is, default, one_of, least, unset or given",
				setting)
		case r.Is != "" && (r.Default != "" || r.OneOf != nil || r.Least != "" || r.Unset), r.Unset &&
			(r.Default != "" || r.OneOf != nil || r.Least != ""), r.Given && (r.Is != "" || r.Default != "" || r.Unset):
			return at.Faultf("the rule for %s asks for too much: is and unset stand alone, and what must be given is "+
				"not filled in", setting)
		case field && !r.Unset:
			return at.Faultf("the rule for %s: a field of --extra-body can only be unset", setting)
		}
		s.Rules = append(s.Rules, r)
		return nil
	}
}

// bodyField begins the names of rules about fields of --extra-body.
const bodyField = "body."
