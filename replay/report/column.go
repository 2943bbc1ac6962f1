package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"reprise/replay/result"
	"reprise/trace"
)

// A Column is what requests are told apart by, in groups of a report and in scopes of a contract: a text,
// which is empty where a request has none, or a number.
type Column struct {
	Name   string
	Text   func(*result.Result, *Circumstances) string
	Number func(*result.Result) (n int64, ok bool) // nil of a text
	Values []string                                // the only texts, in their order; nil is any
	IDs    bool                                    // its numbers name something, and have no order
	Always bool                                    // every request has its number

	also string  // another name
	from []int64 // the numbers from which its groups begin; nil has a group for each number
}

// Circumstances are what columns depend on beside the request.
type Circumstances struct {
	Run    *result.Run
	Steady *Interval // nil without a steady state
}

// ColumnCategory is the name of the column of reuse categories.
const ColumnCategory = "category"

// StateSteady are the requests that were sent and finished in the steady state of the run, see [Steady]; the
// others have no state.
const StateSteady = "steady"

// Numbers from which groups of lengths begin, and those of turns and of depths in a tree.
var (
	lengthsFrom = []int64{0, 128, 512, 2048, 8192, 32768, 131072}
	placesFrom  = []int64{0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256}
)

// columns has them in the order in which they are listed. Lengths are those that the server counted, of a
// request that succeeded, else those that the workload asked for: what a request asked decides where its failure
// counts, not how far its answer came.
var columns = []*Column{
	{Name: "user", Number: idOf(func(r *result.Result) *int64 { return r.User }), IDs: true, also: "tenant"},
	{Name: "adapter", Text: plain(func(r *result.Result) string { return r.Adapter }), also: "lora"},
	{Name: "model", Text: plain(func(r *result.Result) string { return r.Model })},
	{Name: "class", Text: plain(func(r *result.Result) string { return r.Class })},
	{Name: ColumnCategory, Text: plain(func(r *result.Result) string { return r.Category }),
		Values: trace.Categories()},
	{Name: "api", Text: plain(func(r *result.Result) string { return r.API }), also: "kind",
		Values: []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIMessages,
			result.APIEmbeddings}},
	{Name: "turn", from: placesFrom, Number: idOf(func(r *result.Result) *int32 {
		if r.Session == nil {
			return nil
		}
		return r.Turn
	})},
	{Name: "thread", Number: idOf(func(r *result.Result) *int32 { return r.Thread }), IDs: true},
	{Name: "session", Number: idOf(func(r *result.Result) *int64 { return r.Session }), IDs: true},
	{Name: "status", Values: outcomeNames[:], Text: plain(func(r *result.Result) string {
		end, _ := OutcomeOf(r)
		return end.String()
	})},
	{Name: "error", Text: plain(func(r *result.Result) string { _, class := OutcomeOf(r); return class })},
	{Name: "http_status", Number: idOf(func(r *result.Result) *int32 { return r.HTTPStatus }), IDs: true},
	{Name: "finish_reason", Text: plain(func(r *result.Result) string { return r.FinishReason })},
	{Name: "endpoint", Text: func(r *result.Result, in *Circumstances) string {
		switch {
		case r.Endpoint == nil:
			return ""
		case *r.Endpoint < 0 || int(*r.Endpoint) >= len(in.Run.Endpoints):
			return fmt.Sprintf("#%d", *r.Endpoint)
		}
		return in.Run.Endpoints[*r.Endpoint]
	}},
	{Name: "input_tokens", from: lengthsFrom, Always: true, Number: func(r *result.Result) (int64, bool) {
		return countedOr(r, r.Input, r.WantInput), true
	}},
	{Name: "output_tokens", from: lengthsFrom, Always: true, Number: func(r *result.Result) (int64, bool) {
		return countedOr(r, r.Output, max(orUnknown(r.WantOutput), 0)), true
	}},
	{Name: "state", Values: []string{StateSteady}, Text: func(r *result.Result, in *Circumstances) string {
		if in.Steady == nil || r.SentNS == nil || r.DoneNS == nil || !in.Steady.Contains(*r.SentNS) ||
			!in.Steady.Contains(*r.DoneNS) {
			return ""
		}
		return StateSteady
	}},
}

func plain(of func(*result.Result) string) func(*result.Result, *Circumstances) string {
	return func(r *result.Result, _ *Circumstances) string { return of(r) }
}

func idOf[T int32 | int64](of func(*result.Result) *T) func(*result.Result) (int64, bool) {
	return func(r *result.Result) (int64, bool) {
		v := of(r)
		return int64(orUnknown(v)), v != nil
	}
}

func countedOr(r *result.Result, counted *int32, wanted int32) int64 {
	if end, _ := OutcomeOf(r); end == Succeeded && counted != nil {
		return int64(*counted)
	}
	return int64(wanted)
}

// ColumnNames are the names of all columns.
func ColumnNames() []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// FindColumn is the column of a name. Its error has the nearest name, and all of them.
func FindColumn(name string) (*Column, error) {
	asked := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	nearest, least := "", 3
	for _, c := range columns {
		if asked == c.Name || asked == c.also {
			return c, nil
		}
		if d := levenshtein.ComputeDistance(asked, c.Name); d < min(least, len(c.Name)/2+1) {
			nearest, least = "; nearest is "+c.Name, d
		}
	}
	return nil, fmt.Errorf("no such column%s: want one of %s", nearest, strings.Join(ColumnNames(), ", "))
}

// A groupKey is a value of a column. none and others are keys of their own.
type groupKey struct {
	text string
	n    int64
	kind keyKind
}

type keyKind int8

const (
	someValue keyKind = iota
	noValue
	otherValues // beyond those that are kept
)

// key is what a column says of a request: of a number the begin of its group.
func (c *Column) key(r *result.Result, in *Circumstances) groupKey {
	if c.Number == nil {
		if text := c.Text(r, in); text != "" {
			return groupKey{text: text}
		}
		return groupKey{kind: noValue}
	}
	n, ok := c.Number(r)
	if !ok {
		return groupKey{kind: noValue}
	}
	return groupKey{n: c.begin(n)}
}

// begin is where the group of a number begins.
func (c *Column) begin(n int64) int64 {
	if c.from == nil {
		return n
	}
	i, begins := slices.BinarySearch(c.from, max(n, c.from[0]))
	if !begins {
		i--
	}
	return c.from[i]
}

// end is where the group that begins at a number ends, exclusive; nil has no end.
func (c *Column) end(begin int64) *int64 {
	i := slices.Index(c.from, begin) + 1
	if i == 0 || i == len(c.from) {
		return nil
	}
	return &c.from[i]
}
