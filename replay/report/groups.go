package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/sample"
	"reprise/trace/textpage"
)

// maxNames bounds the error classes and the categories that a file may have:
// both come from closed lists, and a file with more is not one of ours.
const maxNames = 64

var errNames = errors.New("report: more than 64 error classes or categories: these are not results of a replay")

// Bounds of the groups of a column. A group keeps [groupExact] values of each latency exactly, where the column
// has [maxNames] groups at most, and [manyExact] of a column with more; then it moves to a histogram of 0.3 MB.
const (
	maxGroups  = 1024 // of a column that is asked for, and of users; further values are one group
	groupExact = 1 << 17
	manyExact  = 1 << 14

	listedGroups = 50 // in the JSON and on a page; the others are counted
	shownGroups  = 20 // in a terminal
)

// A grouping tells the requests of a run apart by a column.
type grouping struct {
	by     *Column
	title  string // of its table
	most   int    // groups, beside that of further values
	exact  int    // values of a latency that a group keeps exactly
	block  int64  // of the expected reuse, see [reuse]
	groups map[groupKey]*group
	holds  func(*result.Result) bool // which requests it tells apart; nil is all
	valued bool                      // requests without a value are in no group
}

// A group is a part of the results. All but rows and failed is of the requests that succeeded.
type group struct {
	rows, failed, succeeded int64
	ttft, tpot, e2e         sample.Values
	input, output           int64 // tokens
	work                    float64
	cache                   reuse
}

func (gs *grouping) group(k groupKey) *group {
	g := gs.groups[k]
	if g == nil && len(gs.groups) >= gs.most {
		k = groupKey{kind: otherValues}
		g = gs.groups[k]
	}
	if g == nil {
		g = &group{ttft: sample.Values{Limit: gs.exact}, tpot: sample.Values{Limit: gs.exact},
			e2e: sample.Values{Limit: gs.exact}, cache: reuse{block: gs.block, sumsOnly: true}}
		gs.groups[k] = g
	}
	return g
}

// count takes a request, however it ended.
func (g *group) count(end Outcome) {
	g.rows++
	if end == Failed {
		g.failed++
	}
}

// addSpans takes the latencies of a request that succeeded, from when it was sent.
func (g *group) addSpans(ttft, tpot, e2e Span) {
	g.succeeded++
	addSpan(&g.ttft, ttft)
	addSpan(&g.tpot, tpot)
	addSpan(&g.e2e, e2e)
}

// addTokens takes the lengths of a request that succeeded. cached is below zero where it is not known.
func (g *group) addTokens(input, cached, output int64) {
	g.input, g.output = g.input+input, g.output+output
	g.work += workOf(input, cached, output)
}

// outputWeight is how many prompt tokens that were not cached are as much work as one token of
// the answer. Y. Sheng and others (2024), Fairness in serving large language models, weigh them
// so.
const outputWeight = 2

// workOf is the work of a request, or of several together: prompt tokens that were not cached, and
// twice the output tokens. cached is below zero where it is not known.
func workOf(input, cached, output int64) float64 {
	return float64(input-max(cached, 0)) + outputWeight*float64(output)
}

// Group is the figures of a part of the results: latencies from sent.
type Group struct {
	Rows       int64    `json:"rows"`
	Succeeded  int64    `json:"succeeded"`
	Failed     int64    `json:"failed"`
	ErrorShare *float64 `json:"error_share"`
	TTFTCount  int64    `json:"ttft_count"`
	TTFTP50    *float64 `json:"ttft_p50_ms"`
	TTFTP99    *float64 `json:"ttft_p99_ms"`
	TPOTCount  int64    `json:"tpot_count"`
	TPOTP50    *float64 `json:"tpot_p50_ms"`
	TPOTP99    *float64 `json:"tpot_p99_ms"`
	E2ECount   int64    `json:"e2e_count"`
	E2EP50     *float64 `json:"e2e_p50_ms"`
	E2EP99     *float64 `json:"e2e_p99_ms"`
	Input      int64    `json:"prompt_tokens"`
	Cached     *int64   `json:"cached_tokens"` // null where the server did not say of all
	Uncached   *int64   `json:"uncached_tokens"`
	Output     int64    `json:"output_tokens"`
	CostShare  *float64 `json:"cost_share"` // of the work of all: uncached prompt tokens + 2 × output tokens
	Cache      Cache    `json:"cache"`
}

// summary are the figures of a group, out of all work. Without timed, its answers do not tell how fast tokens
// come; with zeros, a missing count of cached tokens is none.
func (g *group) summary(all float64, timed, zeros bool) Group {
	if !timed {
		g.tpot = sample.Values{}
	}
	ttft, _ := StatOf(&g.ttft)
	tpot, _ := StatOf(&g.tpot)
	e2e, _ := StatOf(&g.e2e)
	out := Group{Rows: g.rows, Succeeded: g.succeeded, Failed: g.failed,
		ErrorShare: Ratio(g.failed, g.succeeded+g.failed),
		TTFTCount:  ttft.Count, TTFTP50: ttft.P50, TTFTP99: ttft.P99,
		TPOTCount: tpot.Count, TPOTP50: tpot.P50, TPOTP99: tpot.P99,
		E2ECount: e2e.Count, E2EP50: e2e.P50, E2EP99: e2e.P99,
		Input: g.input, Output: g.output, Cache: g.cache.summary(zeros)}

	if uncached, ok := g.cache.uncached(zeros); ok {
		out.Cached, out.Uncached = trace.Ptr(g.input-uncached), &uncached
	}
	if all > 0 {
		out.CostShare = Rounded(g.work/all, 1e6)
	}
	return out
}

// A Grouping is the requests of a run by a column. Those without a value are a group of their own, and so are
// those of values beyond the first 1,024.
type Grouping struct {
	By      string         `json:"by"`
	Groups  int64          `json:"groups"`          // that there are
	LeftOut int64          `json:"left_out_groups"` // of them, those that Each does not have
	Each    []GroupOfValue `json:"each"`            // numbers in their order, else the most work first

	title string
}

// A GroupOfValue is the requests for which a column has a value.
type GroupOfValue struct {
	Value *string `json:"value"` // null for the requests without one
	Group
	key groupKey
}

// Name is the value for people.
func (g *GroupOfValue) Name() string {
	if g.Value == nil {
		return "none"
	}
	return textpage.Plain(*g.Value)
}

// summary lists at most so many groups.
func (gs *grouping) summary(listed int, timed, zeros bool) Grouping {
	all := 0.0
	var keys []groupKey
	for k, g := range gs.groups {
		all += g.work
		keys = append(keys, k)
	}
	slices.SortFunc(keys, gs.order)

	out := Grouping{By: gs.by.Name, Groups: int64(len(keys)), LeftOut: int64(max(len(keys)-listed, 0)),
		Each: []GroupOfValue{}, title: gs.title}
	for _, k := range keys[:min(len(keys), listed)] {
		one := GroupOfValue{Group: gs.groups[k].summary(all, timed, zeros), key: k}
		if k.kind != noValue {
			one.Value = trace.Ptr(gs.by.print(k))
		}
		out.Each = append(out.Each, one)
	}
	return out
}

// order is that of a closed list, or of numbers; else the most work comes first. Requests without a value, and
// those of further values, are last.
func (gs *grouping) order(a, b groupKey) int {
	if (a.kind != someValue || b.kind != someValue) && a.kind != b.kind {
		return cmp.Compare(a.kind, b.kind)
	}
	if gs.by.Number != nil && !gs.by.IDs {
		return cmp.Compare(a.n, b.n)
	}
	place := func(k groupKey) int {
		if i := slices.Index(gs.by.Values, k.text); i >= 0 {
			return i
		}
		return len(gs.by.Values)
	}
	one, other := gs.groups[a], gs.groups[b]
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(other.work, one.work), cmp.Compare(other.rows, one.rows),
		cmp.Compare(a.text, b.text), cmp.Compare(a.n, b.n))
}

// print is a value, or the numbers of a group such as 4 to 7.
func (c *Column) print(k groupKey) string {
	end := c.end(k.n)
	switch {
	case k.kind == otherValues:
		return "(others)"
	case c.Number == nil:
		return k.text
	case c.from == nil:
		return strconv.FormatInt(k.n, 10)
	case end == nil:
		return doc.Count(k.n) + " and more"
	case *end > k.n+1:
		return doc.Count(k.n) + " to " + doc.Count(*end-1)
	}
	return doc.Count(k.n)
}

// groupings are how a run is told apart: by what the workload says, by who answered, and by what was asked for.
type groupings struct {
	in    Circumstances
	exact int
	block int64
	all   []*grouping // in the order in which they are shown
	of    []*group    // that a result is in: a buffer

	category, length, class, user, turn, depth, endpoint *grouping
	headers, asked                                       []*grouping
}

func newGroupings(run *result.Run, o *Options, block int64) groupings {
	gs := groupings{in: Circumstances{Run: run}, exact: o.Exact, block: block}
	if o.Steady != nil && o.Steady.Reason == "" {
		gs.in.Steady = o.Steady.Interval()
	}

	column := func(name string) *Column {
		c, _ := FindColumn(name) // a name that was checked
		return c
	}
	gs.category = gs.add(column(ColumnCategory), "reuse category", maxNames)
	gs.length = gs.add(column("input_tokens"), "prompt tokens", maxNames)
	gs.class = gs.add(column("class"), "class", maxNames)
	gs.user = gs.add(column("user"), "user", maxGroups)
	gs.turn = gs.add(column("turn"), "turn", maxNames)
	gs.depth = gs.add(&Column{Name: "depth", from: placesFrom, Number: column("turn").Number}, "depth in the tree",
		maxNames)
	// It takes whole sessions, see [sessionFigures.addDepths].
	gs.depth.holds = func(*result.Result) bool { return false }
	gs.endpoint = gs.add(column("endpoint"), "endpoint", maxGroups)
	for i, served := range run.Served[:min(len(run.Served), result.MaxRecordHeaders)] {
		by := gs.add(headerColumn(i, served), served.Header+" of the response", maxGroups)
		by.holds = func(r *result.Result) bool { return i < len(r.Served) } // there was an answer
		gs.headers = append(gs.headers, by)
	}

	gs.user.valued, gs.turn.valued, gs.endpoint.valued = true, true, true

	for _, name := range o.By {
		c := column(name)
		i := slices.IndexFunc(gs.all, func(g *grouping) bool { return g.by == c })
		if i < 0 {
			i = len(gs.all)
			gs.add(c, strings.ReplaceAll(c.Name, "_", " "), maxGroups)
		}
		gs.all[i].valued = false
		if !slices.Contains(gs.asked, gs.all[i]) {
			gs.asked = append(gs.asked, gs.all[i])
		}
	}
	return gs
}

func (gs *groupings) add(by *Column, title string, most int) *grouping {
	exact := groupExact
	if most > maxNames {
		exact = manyExact
	}
	g := &grouping{by: by, title: title, most: most, exact: min(gs.exact, exact), block: gs.block,
		groups: map[groupKey]*group{}}
	gs.all = append(gs.all, g)
	return g
}

// headerColumn is the value of the i-th response header that was recorded.
func headerColumn(i int, served result.Served) *Column {
	return &Column{Name: served.Header, Text: func(r *result.Result, _ *Circumstances) string {
		switch {
		case r.Served[i] < 0:
			return ""
		case int(r.Served[i]) < len(served.Values):
			return served.Values[r.Served[i]]
		}
		return fmt.Sprintf("#%d", r.Served[i])
	}}
}

// put counts a result in its groups, which hold until the next one.
func (gs *groupings) put(r *result.Result, end Outcome) []*group {
	gs.of = gs.of[:0]
	for _, by := range gs.all {
		if by.holds != nil && !by.holds(r) {
			continue
		}
		k := by.by.key(r, &gs.in)
		if by.valued && k.kind == noValue {
			continue
		}
		g := by.group(k)
		g.count(end)
		gs.of = append(gs.of, g)
	}
	return gs.of
}

// summarise adds the groups to a summary.
func (gs *groupings) summarise(s *Summary, timed, zeros bool) {
	for _, by := range gs.asked {
		s.Groups = append(s.Groups, by.summary(listedGroups, timed, zeros))
	}

	// list are the groups of a column, where so many have a value; then they have a table.
	list := func(by *grouping, least, listed int) []GroupOfValue {
		if _, none := by.groups[groupKey{kind: noValue}]; len(by.groups) < least || none && len(by.groups) <= least {
			return nil
		}
		of := by.summary(listed, timed, zeros)
		if !slices.Contains(gs.asked, by) {
			s.shown = append(s.shown, of)
		}
		return of.Each
	}
	for _, g := range gs.category.summary(maxNames, timed, zeros).Each {
		s.ByCategory = append(s.ByCategory, Category{g.key.text, g.Group})
	}
	for _, g := range gs.length.summary(maxNames, timed, zeros).Each {
		s.ByInputLength = append(s.ByInputLength, LengthBucket{g.key.n, gs.length.by.end(g.key.n), g.Group})
	}
	list(gs.category, 2, maxNames)
	list(gs.length, 2, maxNames)
	for _, g := range list(gs.class, 1, maxNames+2) {
		name := ""
		if g.Value != nil {
			name = *g.Value
		}
		s.ByClass = append(s.ByClass, Class{name, g.Group})
	}
	slices.SortFunc(s.ByClass, func(a, b Class) int { return cmp.Compare(a.Class, b.Class) })
	s.Tenants = gs.tenants(list(gs.user, 2, listedGroups))
	s.ByTurn = places(gs.turn, list(gs.turn, 2, maxNames))
	s.ByDepth = places(gs.depth, list(gs.depth, 1, maxNames))

	for _, g := range list(gs.endpoint, 2, maxGroups) {
		if g.Value != nil {
			s.ByEndpoint = append(s.ByEndpoint, Part{*g.Value, g.Group})
		}
	}
	slices.SortStableFunc(s.ByEndpoint, func(a, b Part) int {
		return cmp.Compare(slices.Index(gs.in.Run.Endpoints, a.Name), slices.Index(gs.in.Run.Endpoints, b.Name))
	})
	for _, by := range gs.headers {
		s.ByHeader = append(s.ByHeader, by.header(list(by, 0, maxGroups+2)))
	}
}

// tenants are the users, where there are two.
func (gs *groupings) tenants(users []GroupOfValue) *Tenants {
	if users == nil {
		return nil
	}
	out := &Tenants{}
	for k, g := range gs.user.groups {
		switch k.kind {
		case someValue:
			out.Tenants++
		case otherValues:
			out.Left = g.rows
		}
	}
	for _, g := range users {
		if g.key.kind == someValue {
			out.Each = append(out.Each, Tenant{g.key.n, g.Group})
		}
	}
	return out
}

func places(by *grouping, groups []GroupOfValue) (out []PlaceGroup) {
	for _, g := range groups {
		if g.key.kind == someValue {
			out = append(out, PlaceGroup{g.key.n, by.by.end(g.key.n), g.Group})
		}
	}
	return out
}

// shownValues of a header are in the JSON, most frequent first.
const shownValues = 20

func (gs *grouping) header(groups []GroupOfValue) HeaderPart {
	out := HeaderPart{Header: gs.by.Name, Values: []Part{}}
	for _, g := range groups {
		if g.Value == nil {
			out.Absent = g.Rows
		} else {
			out.Values = append(out.Values, Part{*g.Value, g.Group})
		}
	}
	slices.SortFunc(out.Values, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Name, b.Name))
	})
	if n := len(out.Values); n > shownValues {
		rest := Part{Name: fmt.Sprintf("(%d others)", n-shownValues)}
		for _, v := range out.Values[shownValues:] {
			rest.Rows, rest.Succeeded, rest.Failed = rest.Rows+v.Rows, rest.Succeeded+v.Succeeded, rest.Failed+v.Failed
		}
		out.Values = append(out.Values[:shownValues], rest)
	}
	return out
}

// groupColumns are the table of groups, which text, pages and Markdown share. Of all groups, a column without a
// figure is left out.
var groupColumns = []struct {
	head, term string
	of         func(*Group) string
}{
	{"requests", "rows", func(g *Group) string { return doc.Brief(g.Rows) }},
	{"failed", "failed", func(g *Group) string {
		if g.Failed == 0 {
			return noFigure
		}
		return doc.Brief(g.Failed)
	}},
	{"TTFT p50", "ttft", func(g *Group) string { return doc.OrDash(g.TTFTP50, doc.Short) }},
	{"p99", "ttft", func(g *Group) string { return doc.OrDash(g.TTFTP99, doc.Short) }},
	{"TPOT p50", "tpot", func(g *Group) string { return doc.OrDash(g.TPOTP50, doc.Short) }},
	{"p99", "tpot", func(g *Group) string { return doc.OrDash(g.TPOTP99, doc.Short) }},
	{"E2E p50", "e2e", func(g *Group) string { return doc.OrDash(g.E2EP50, doc.Short) }},
	{"p99", "e2e", func(g *Group) string { return doc.OrDash(g.E2EP99, doc.Short) }},
	{"hits", "measured_ratio", func(g *Group) string { return doc.OrDash(g.Cache.Measured, doc.Percent) }},
	{"expected", "expected_ratio", func(g *Group) string { return doc.OrDash(g.Cache.Expected, doc.Percent) }},
	{"output", "groups", func(g *Group) string { return doc.Brief(g.Output) }},
	{"work", "groups.work", func(g *Group) string { return doc.OrDash(g.CostShare, doc.Percent) }},
}

// noFigure stands in a table where a group has no figure.
const noFigure = "–"

// table has a row for each of so many groups, and says what it leaves out.
func (of *Grouping) table(most int) (t doc.Table) {
	shown := of.Each[:min(most, len(of.Each))]
	t.Caption = "By " + of.title + ", latencies in ms from sent"
	if n := of.Groups - int64(len(shown)); n > 0 {
		t.Caption += "; " + doc.Many(n, "group") + " with less work " + doc.Was(n) + " left out"
	}
	if of.Groups == 1 && of.Each[0].Value == nil {
		t.Caption += "; no request has a value"
	}

	t.Head, t.HeadTerms = []string{of.title}, []string{""}
	for i := range shown {
		t.Rows = append(t.Rows, []string{shown[i].Name()})
	}
	for _, c := range groupColumns {
		cells, some := make([]string, len(shown)), false
		for i := range shown {
			cells[i] = c.of(&shown[i].Group)
			some = some || cells[i] != noFigure
		}
		if !some {
			continue
		}
		t.Head, t.HeadTerms = append(t.Head, c.head), append(t.HeadTerms, termOf(c.term))
		for i := range t.Rows {
			t.Rows[i] = append(t.Rows[i], cells[i])
		}
	}
	return t
}

// groupSection has the groups of a page.
func groupSection(s *Summary) doc.Section {
	out := doc.Section{Title: "Groups of requests"}
	for _, of := range s.shown {
		out.Tables = append(out.Tables, of.table(listedGroups))
	}
	return out
}

// askedSection has the groups by the columns that were asked for.
func askedSection(s *Summary) doc.Section {
	out := doc.Section{Asked: true}
	for _, of := range s.Groups {
		out.Tables = append(out.Tables, of.table(shownGroups))
	}
	return out
}
