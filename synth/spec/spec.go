package spec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"reprise/trace/arrival"
)

// A Spec describes a workload without a trace: lengths, arrivals, what prompts
// share, and sessions. It is written as YAML; docs/workloads.md has every key.
//
// A distribution of tokens is a string that [arrival.ParseLength] reads, of
// times one that [arrival.ParseDist] reads, and of arrivals one that
// [arrival.ParseProcess] reads, or "burst", which is all at once, or
// "sequential", where each request waits for the one before it.
type Spec struct {
	Name     string        `yaml:"name"`
	About    string        `yaml:"about"`
	Requests int64         `yaml:"requests"` // how many; 0 with a Duration is as many as come
	Duration time.Duration `yaml:"duration"` // of arrivals; 0 is without limit
	Block    int           `yaml:"block"`    // tokens in a block; 0 is 16
	Arrivals string        `yaml:"arrivals"` // of sessions, where there are sessions
	Part     `yaml:",inline"`
	// Mix replaces the one kind of request by several. Each takes what it does
	// not say from the top level.
	Mix []Part `yaml:"mix"`
	// Sources say where values are from, by the path of their key, such as
	// mix[0].sessions.turns.
	Sources map[string]string `yaml:"sources"`
}

// A Part is one kind of request of a [Spec].
type Part struct {
	Share      float64     `yaml:"share"` // of sessions, beside the other parts'; 0 is 1
	Class      string      `yaml:"class"` // of the rows
	Lengths    Lengths     `yaml:"lengths"`
	Prefix     *Prefix     `yaml:"prefix"`
	Sessions   *Sessions   `yaml:"sessions"`
	Categories *Categories `yaml:"categories"`
	Warm       string      `yaml:"warm"`   // time after which each prompt comes once more: cold and warm pairs
	Answer     string      `yaml:"answer"` // time an answer is taken to last, before a next turn; "lognormal:5s,1"
}

// Lengths are numbers of tokens.
type Lengths struct {
	Input     string `yaml:"input"` // whole prompts; a prefix that is longer wins
	Own       string `yaml:"own"`   // in place of Input: what follows the prefix
	Output    string `yaml:"output"`
	MaxTokens string `yaml:"max_tokens"` // as asked of the server; empty asks for none
}

// Prefix is what prompts begin with.
type Prefix struct {
	Global int           `yaml:"global"` // tokens that every prompt of the part begins with, such as a system prompt
	Groups []PrefixGroup `yaml:"groups"`
}

// A PrefixGroup is a set of templates or documents that prompts continue from.
// Depths are rounded to whole blocks, since only these are shared.
type PrefixGroup struct {
	// of sessions, from 0 to 1; those left over begin with the global prefix alone
	Share      float64 `yaml:"share"`
	Count      int     `yaml:"count"`      // how many at a time; 0 is 1
	Depth      string  `yaml:"depth"`      // tokens of each, after the global prefix
	Popularity string  `yaml:"popularity"` // "uniform" or "zipf:S"; empty is uniform
	Turnover   string  `yaml:"turnover"`   // time until one is replaced by another; empty is never
}

// Sessions lets requests come in sessions, each turn with all before it.
type Sessions struct {
	Turns string `yaml:"turns"` // requests of a session
	Added string `yaml:"added"` // tokens that a turn adds after the last reply; empty is Lengths.Own
	Think string `yaml:"think"` // from the answer to the next turn
	Users int64  `yaml:"users"` // people whom sessions are dealt to; 0 names none

	// A turn of an agent takes several calls of the model, with tools between them.
	Calls   string   `yaml:"calls"`  // of a turn; empty is 1
	Result  string   `yaml:"result"` // tokens that the results of tools add; empty is Added
	Tool    string   `yaml:"tool"`   // from an answer to the next call of its turn
	Compact *Compact `yaml:"compact"`
	Agents  *Agents  `yaml:"agents"`
}

// Categories sets the reuse categories of the requests in percent, instead
// of Sessions and shares of groups. The hits that they ask for are made from the
// last Window requests.
type Categories struct {
	Cold         float64  `yaml:"cold"`
	Duplicate    float64  `yaml:"duplicate"`
	Continuation float64  `yaml:"continuation"`
	Template     float64  `yaml:"template"`
	Branch       float64  `yaml:"branch"`
	Global       *float64 `yaml:"global"` // of earlier versions: refused
	Window       int      `yaml:"window"` // 0 is 1,000
}

const (
	defaultBlock  = 16 // as vLLM's
	defaultAnswer = "lognormal:5s,1"
	burst         = "burst"
	sequential    = "sequential"
)

// Check reports what is wrong with a specification. ParseSpec has checked it: it is
// for callers that change one.
func (s *Spec) Check() error {
	s.Block = cmp.Or(s.Block, defaultBlock)
	switch {
	case s.Block < 3 || s.Block > 1<<16:
		return at("block", fmt.Errorf("want 3 to %d tokens", 1<<16))
	case s.Requests < 0 || s.Duration < 0:
		return errors.New("requests and duration cannot be negative")
	case s.Requests == 0 && s.Duration == 0:
		return errors.New("give requests or duration")
	case s.Requests == 0 && s.Arrivals == burst:
		return at("arrivals", errors.New("a burst needs a number of requests"))
	}
	if _, err := s.process(); err != nil {
		return at("arrivals", err)
	}
	if len(s.Mix) > 0 && s.Categories != nil {
		return at("categories", errors.New("cannot be given beside mix: give them in its parts"))
	}
	for i, p := range s.parts() {
		err := p.check()
		if s.Arrivals == burst && (p.Sessions != nil || p.Warm != "") {
			err = at("arrivals", errors.New("sessions need an arrival process, such as poisson:2, since a burst has "+
				"no later turns"))
		}
		if err != nil && len(s.Mix) > 0 {
			err = at(fmt.Sprintf("mix[%d]", i), err)
		}
		if err != nil {
			return err
		}
	}
	return s.checkSources()
}

// parts are the kinds of requests with all defaults filled in.
func (s *Spec) parts() []Part {
	if len(s.Mix) == 0 {
		return []Part{s.Part.filled(Part{})}
	}
	parts := make([]Part, len(s.Mix))
	for i, p := range s.Mix {
		parts[i] = p.filled(s.Part)
	}
	return parts
}

func (p Part) filled(from Part) Part {
	own := p.Lengths.Input == "" && p.Lengths.Own == ""
	if own {
		p.Lengths.Input, p.Lengths.Own = from.Lengths.Input, from.Lengths.Own
	}
	p.Lengths.Output = cmp.Or(p.Lengths.Output, from.Lengths.Output)
	p.Lengths.MaxTokens = cmp.Or(p.Lengths.MaxTokens, from.Lengths.MaxTokens)
	p.Prefix, p.Sessions = cmp.Or(p.Prefix, from.Prefix), p.Sessions.filled(from.Sessions)
	p.Class, p.Warm = cmp.Or(p.Class, from.Class), cmp.Or(p.Warm, from.Warm)
	p.Answer = cmp.Or(p.Answer, from.Answer, defaultAnswer)
	p.Share = cmp.Or(p.Share, 1)
	return p
}

func (p *Part) check() error {
	switch {
	case !(p.Share > 0) || math.IsInf(p.Share, 0):
		return at("share", errors.New("must be above 0"))
	case p.Lengths.Input != "" && p.Lengths.Own != "":
		return at("lengths", errors.New("give input (the whole prompt) or own (the part after the prefix), not both"))
	case p.Lengths.Input == "" && p.Lengths.Own == "":
		return at("lengths", errors.New("give input or own"))
	case p.Lengths.Output == "":
		return at("lengths", errors.New("give output"))
	case p.Categories != nil && p.Sessions != nil:
		return at("categories", errors.New("cannot be given beside sessions: the share of continuations already sets "+
			"the number of turns"))
	case p.Warm != "" && (p.Sessions != nil || p.Categories != nil):
		return at("warm", errors.New("cannot be given with sessions or categories, since pairs are single requests"))
	}
	if err := checkLengths(map[string]string{"lengths.input": p.Lengths.Input, "lengths.own": p.Lengths.Own,
		"lengths.output": p.Lengths.Output, "lengths.max_tokens": p.Lengths.MaxTokens}); err != nil {
		return err
	}
	if err := checkTimes(map[string]string{"warm": p.Warm, "answer": p.Answer}); err != nil {
		return err
	}
	if err := p.Prefix.check(); err != nil {
		return at("prefix", err)
	}
	if s := p.Sessions; s != nil {
		if s.Turns == "" || s.Think == "" || s.Users < 0 {
			return at("sessions", errors.New("give turns and think; users cannot be negative"))
		}
		if err := checkLengths(map[string]string{"sessions.turns": s.Turns, "sessions.added": s.Added}); err != nil {
			return err
		}
		if err := checkTimes(map[string]string{"sessions.think": s.Think}); err != nil {
			return err
		}
		if s.Added == "" && p.Lengths.Own == "" {
			return at("sessions", errors.New("give what a turn adds: added, or lengths.own"))
		}
		if err := s.checkAgents(); err != nil {
			return err
		}
	}
	return p.Categories.check(p.Prefix)
}

func (p *Prefix) check() error {
	if p == nil {
		return nil
	}
	if p.Global < 0 || p.Global > maxPrompt {
		return at("global", fmt.Errorf("want 0 to %d tokens", maxPrompt))
	}
	sum := 0.0
	for i, g := range p.Groups {
		key := fmt.Sprintf("groups[%d].", i)
		switch {
		case !(g.Share > 0 && g.Share <= 1):
			return at(key+"share", errors.New("want above 0 and at most 1"))
		case g.Count < 0 || g.Count > 1<<20:
			return at(key+"count", fmt.Errorf("want at most %d", 1<<20))
		case g.Depth == "":
			return at(key+"depth", errors.New("give the number of tokens"))
		}
		sum += g.Share
		if err := checkLengths(map[string]string{key + "depth": g.Depth}); err != nil {
			return err
		}
		if err := checkTimes(map[string]string{key + "turnover": g.Turnover}); err != nil {
			return err
		}
		if _, err := g.weights(); err != nil {
			return at(key+"popularity", err)
		}
	}
	if sum > 1+1e-9 {
		return at("groups", errors.New("the shares add up to more than 1"))
	}
	return nil
}

func (c *Categories) check(prefix *Prefix) error {
	if c == nil {
		return nil
	}
	if c.Global != nil {
		return at("categories.global",
			errors.New("it is called template now, and so is what began with prefix.groups and was branch: give both "+
				"as template"))
	}
	sum := 0.0
	for _, v := range c.percent() {
		if !(v >= 0) {
			return at("categories", errors.New("want percentages of 0 or more"))
		}
		sum += v
	}
	switch {
	case math.Abs(sum-100) > 0.01:
		return at("categories", errors.New("want percentages that add up to 100"))
	case c.Window < 0 || c.Window > 1<<20:
		return at("categories.window", fmt.Errorf("want at most %d", 1<<20))
	case c.Template > 0 && (prefix == nil || prefix.Global == 0 && len(prefix.Groups) == 0):
		return at("categories", errors.New("template needs prefix.global or prefix.groups to begin with"))
	}
	return nil
}

// percent are the shares in the order of [trace.Categories].
func (c *Categories) percent() [5]float64 {
	return [5]float64{c.Cold, c.Duplicate, c.Continuation, c.Template, c.Branch}
}

// process is that of new sessions; the zero one lets all arrive at once.
func (s *Spec) process() (arrival.ProcessSpec, error) {
	switch s.Arrivals {
	case "":
		return arrival.ProcessSpec{}, errors.New("say how requests arrive: poisson:2, burst or sequential")
	case burst, sequential:
		return arrival.ProcessSpec{}, nil
	}
	return arrival.ParseProcess(s.Arrivals)
}

// maxPrompt bounds a prompt, so that sums of lengths fit an int32.
const maxPrompt = 1 << 24

func checkLengths(specs map[string]string) error {
	return checkEach(specs, func(s string) error { _, err := arrival.ParseLength(s); return err })
}

func checkTimes(specs map[string]string) error {
	return checkEach(specs, func(s string) error { _, err := arrival.ParseDist(s); return err })
}

// checkEach reports the fault of the first key in the alphabet, so that the
// same file always gets the same error.
func checkEach(specs map[string]string, parse func(string) error) error {
	first, fault := "", error(nil)
	for key, spec := range specs {
		if spec == "" || fault != nil && key > first {
			continue
		}
		if err := parse(spec); err != nil {
			first, fault = key, err
		}
	}
	return at(first, fault)
}

// weights are the chances of a group's prefixes.
func (g PrefixGroup) weights() ([]float64, error) {
	weights := make([]float64, max(1, g.Count))
	name, arg, _ := strings.Cut(g.Popularity, ":")
	s, err := strconv.ParseFloat(arg, 64)
	switch {
	case g.Popularity == "" || g.Popularity == "uniform":
		s = 0
	case name != "zipf" || err != nil || !(s >= 0 && s <= 10):
		return nil, errors.New("want uniform or zipf:S with S from 0 to 10")
	}
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -s)
	}
	return weights, nil
}

// A keyFault is what is wrong with a key, which is named by its path, such as
// mix[0].lengths.input.
type keyFault struct {
	path string
	err  error
}

// Error implements error.
func (f *keyFault) Error() string { return f.path + ": " + f.err.Error() }

// Unwrap is for [errors.Is].
func (f *keyFault) Unwrap() error { return f.err }

// at says which key a fault is of; faults of keys below it get longer paths.
func at(key string, err error) error {
	if err == nil {
		return nil
	}
	var below *keyFault
	if errors.As(err, &below) {
		return &keyFault{key + "." + below.path, below.err}
	}
	return &keyFault{key, err}
}
