package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/replay/openai"
	"reprise/trace/quantity"
)

// A Quirk is one thing that servers in the wild do to their clients: a way of
// writing answers that the standard leaves open, or a fault. The list of
// [Quirks] is closed. A quirk is chosen by its name, and by name=value where it
// takes a value.
type Quirk struct {
	Name  string
	Value string // what may stand after "=": "" is nothing; in brackets when it may be left out
	Does  string // what the server does
	Seen  string // where
	apply func(m *behaviour, value string) error
}

// Quirks returns the closed list, in the order of an answer's life.
func Quirks() []Quirk {
	var all []Quirk
	for _, part := range [][]Quirk{connectionQuirks, requestQuirks, chunkQuirks, usageQuirks,
		framingQuirks, endQuirks} {
		all = append(all, part...)
	}
	return all
}

// A behaviour is how one request is answered: the sum of the quirks that apply to it. Each
// list of [Quirks] has its part.
type behaviour struct {
	ofConnection
	ofRequest
	ofChunks
	ofUsage
	ofBytes
	ofEnd
}

// ofConnection is what becomes of the connection.
type ofConnection struct {
	refuse, drip time.Duration // the port is closed; the headers come byte by byte
	hang         bool
	early, shut  bool // headers go out early; the connection is closed behind the answer
}

// ofRequest is what is made of the request, before its answer.
type ofRequest struct {
	status, retryAfter          int
	code                        string // number, string, null, or empty for no body
	redirected, notStreamed     bool
	compressed                  bool
	modelMust, localOnly        bool
	jsonFails, cutPrompt, stops bool
	keepPrompt                  int // tokens of a prompt that is cut; 0 is what fits
	more                        int // tokens beyond those asked for
}

// ofChunks is what stands in the chunks.
type ofChunks struct {
	roleEvery, nullContent, empties, progress, timings, tools bool
	perEvent, swallowed, reasoning, choices                   int
	reasoningField                                            string
	id                                                        string
	choiceIDs, chatIDs                                        bool
}

// ofUsage is where the tokens are counted.
type ofUsage struct {
	usage    usageMode
	usageOf  string // completions, or empty for both
	noCached bool
}

// ofBytes is how events become bytes, and bytes writes.
type ofBytes struct {
	frame                  openai.Framing
	lines, comments, pings bool
	perWrite, perByte      int
}

// ofEnd is how the answer ends.
type ofEnd struct {
	stall      time.Duration
	errorThen  string // done or close: an error in mid-stream
	reset, cut bool
	finish     string
	noFinish   bool
	doneMarks  int
}

type usageMode uint8

const (
	usageAsked usageMode = iota // after the answer, if asked for
	usageNull
	usageZeros
	usageEvery
	usageOnFinish
	usageMissing
)

// defaultBehaviour is what most servers do most of the time.
func defaultBehaviour() behaviour {
	return behaviour{
		ofRequest: ofRequest{code: "number"},
		ofChunks:  ofChunks{perEvent: 1, choices: 1, reasoningField: "reasoning_content"},
		ofBytes:   ofBytes{perWrite: 1},
		ofEnd:     ofEnd{doneMarks: 1},
	}
}

// A chosenQuirk is a quirk with its value.
type chosenQuirk struct {
	quirk *Quirk
	value string
}

// parseQuirks reads a list such as "crlf,stall=5s". Its errors name places and
// the quirks that there are, and quote nothing.
func parseQuirks(list, separator string) ([]chosenQuirk, error) {
	var out []chosenQuirk
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	known := Quirks()
	for i, word := range strings.Split(list, separator) {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		var q *Quirk
		for k := range known {
			if known[k].Name == name {
				q = &known[k]
			}
		}
		if q == nil {
			var names []string
			for _, q := range known {
				names = append(names, q.Name)
			}
			return nil, fmt.Errorf("quirk %d is unknown: want one of %s", i+1, strings.Join(names, ", "))
		}
		trial := defaultBehaviour()
		if err := q.apply(&trial, value); err != nil {
			return nil, fmt.Errorf("quirk %s: %w", q.Name, err)
		}
		out = append(out, chosenQuirk{q, value})
	}
	return out, nil
}

// applyQuirks adds quirks to the behaviour. Of two that exclude each other the later
// one holds.
func (m *behaviour) applyQuirks(list []chosenQuirk) {
	for _, c := range list {
		_ = c.quirk.apply(m, c.value) // it was tried when it was read
	}
}

// on makes a quirk without a value.
func on(set func(m *behaviour)) func(*behaviour, string) error {
	return func(m *behaviour, value string) error {
		if value != "" {
			return errors.New("it takes no value")
		}
		set(m)
		return nil
	}
}

// number makes a quirk with a whole number; without is its value when none is
// given, and -1 asks for one.
func number(without, least, most int, set func(m *behaviour, n int)) func(*behaviour, string) error {
	return func(m *behaviour, value string) error {
		n := without
		if value != "" {
			var err error
			if n, err = strconv.Atoi(value); err != nil {
				n = least - 1
			}
		}
		if n < least || n > most {
			return fmt.Errorf("its value is a number from %d to %d", least, most)
		}
		set(m, n)
		return nil
	}
}

// span makes a quirk with a duration.
func span(set func(m *behaviour, d time.Duration)) func(*behaviour, string) error {
	return func(m *behaviour, value string) error {
		d, err := quantity.Duration(value)
		if err != nil || d <= 0 || d > time.Hour {
			return errors.New("its value is a duration of at most an hour, such as 5s")
		}
		set(m, d)
		return nil
	}
}

// word makes a quirk with a value from a list. The first value is meant when
// none is given.
func word(set func(m *behaviour, value string), values ...string) func(*behaviour, string) error {
	return func(m *behaviour, value string) error {
		if value == "" {
			value = values[0]
		}
		for _, v := range values {
			if v == value {
				set(m, value)
				return nil
			}
		}
		return fmt.Errorf("its value is one of %s", strings.Join(values, ", "))
	}
}
