package datasets

import (
	"slices"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// countTargets are the targets that are counts. A path of one may be several with "+" between
// them, whose values add up: input_tokens=usage.input_tokens+usage.cache_read_input_tokens.
var countTargets = []string{"input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "max_tokens"}

func isCountTarget(name string) bool { return slices.Contains(countTargets, name) }

// sumParts are the paths that a path of a count adds up; nil for a single one.
func sumParts(path string) []string {
	if !strings.Contains(path, "+") {
		return nil
	}
	parts := strings.Split(path, "+")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// isSum reports whether a path of a target may be several: counts add up, and a day and the time of day
// are one time.
func isSum(name string) bool { return name == "time" || isCountTarget(name) }

// places are the paths at which a target may find its values: those of a mapping, and of a sum
// its parts. A name with "+" in it may be that of a field.
func (m Mapping) places(name string) (places []string) {
	for _, path := range m[name] {
		places = append(places, path)
		if isSum(name) {
			places = append(places, sumParts(path)...)
		}
	}
	return places
}

// summands are the parts of the sums of a target, but of names that are columns themselves.
func (m Mapping) summands(name string, columns []string) (parts []string) {
	for _, path := range m[name] {
		if isSum(name) && !slices.Contains(columns, path) {
			parts = append(parts, sumParts(path)...)
		}
	}
	return parts
}

// find returns the value of a mapped target, and where it is.
func (f field) find(r row.Row) (v any, path string, ok bool) {
	v, path, ok = row.Find(r, f.paths)
	if ok || !f.sums {
		return v, path, ok
	}
	for _, sum := range f.paths {
		if v, path, ok = addUp(r, sumParts(sum)); ok {
			return v, path, true
		}
	}
	return nil, "", false
}

// findTime returns the time of a record, and where it is. A day and the time of day in two fields are joined.
func findTime(r row.Row, paths []string) (v any, path string, ok bool) {
	if v, path, ok = row.Find(r, paths); ok {
		return v, path, true
	}
	for _, sum := range paths {
		var texts []string
		for _, part := range sumParts(sum) {
			if text, found := r.Value(part); found {
				texts = append(texts, row.Plain(text))
			}
		}
		if len(texts) > 0 {
			return strings.Join(texts, " "), sumParts(sum)[0], true
		}
	}
	return nil, "", false
}

// addUp adds the counts at some paths. One that is not there counts nothing, and one that is no
// count is returned in place of the sum.
func addUp(r row.Row, paths []string) (v any, path string, ok bool) {
	var sum int64
	for _, p := range paths {
		found, there := r.Value(p)
		if !there {
			continue
		}
		n, isCount := countOf(row.Plain(found))
		if _, open := found.(row.OpenNumber); open || !isCount {
			return found, p, true
		}
		if sum += int64(n); path == "" {
			path = p
		}
	}
	return row.Integer(sum), path, path != ""
}

// mappedCounts settle the counts of a source whose operator named their fields: what they are
// is taken as it was named, as far as it can be.
type mappedCounts struct {
	reader *tokenusage.Reader
	counts []field // input, output, cached and reasoning tokens, those that are mapped
}

// newMappedCounts returns nil where no field of the input length is named.
func newMappedCounts(fields []field, o Options) *mappedCounts {
	if o.Map["input_tokens"] == nil {
		return nil
	}
	c := &mappedCounts{reader: tokenusage.NewReader(tokenusage.Relayed, o.CachedInInput)}
	for _, f := range fields {
		if f.kind() >= 0 {
			c.counts = append(c.counts, f)
		}
	}
	return c
}

// kind is what a field counts in a usage; -1 for another one.
func (f field) kind() int {
	for i, name := range settledCounts {
		if f.name == name+"_tokens" {
			return i
		}
	}
	return -1
}

var settledKinds = []tokenusage.Kind{tokenusage.Input, tokenusage.Output, tokenusage.Cached, tokenusage.Reasoning}

// settle settles the counts of an entry that were mapped.
func (c *mappedCounts) settle(b *builder, r row.Row, tell *fault.Notes) error {
	if c == nil {
		return nil
	}
	e := &b.Entry
	ends := []**int32{&e.InputTokens, &e.OutputTokens, &e.Cached, &e.Reasoning}
	var counts tokenusage.Counts
	for _, f := range c.counts {
		if n := *ends[f.kind()]; n != nil {
			counts.Set(settledKinds[f.kind()], int64(*n))
		}
	}
	t, found, err := c.reader.Settle(&counts)
	if err != nil {
		return row.BadAt(r, "", err.Error())
	}
	// What the operator names is taken as it stands.
	noteFindings(found.Without(tokenusage.CacheTaken), tell)
	for i, n := range []*int32{t.Input, t.Output, t.Cached, t.Reasoning} {
		if counts.Has(settledKinds[i]) {
			*ends[i] = n
		}
	}
	return nil
}

const (
	noteZeroInput  = "prompts with text whose usage counts no tokens: their lengths were taken from the text"
	noteZeroOutput = "answers with text whose usage counts no tokens: their lengths were taken from the text"
	noteAllZero    = "records without text whose usage is zero throughout: their lengths are not known"
	noteManyTokens = "records of more than 2,097,152 input tokens, which no model takes: they look like sums of " +
		"several requests"
)

// maxPrompt is more than any model takes.
const maxPrompt = 2 << 20

// dropZeros makes the counts of a usage that counts nothing unknown, where there is text: some
// writers put zeros where they have no count. counted says that the lengths are of a usage.
func (b *builder) dropZeros(counted bool, tell *fault.Notes) {
	e := &b.Entry
	if e.InputTokens != nil && *e.InputTokens == 0 && b.hasPrompt() {
		e.InputTokens = nil
		tell.Count(noteZeroInput)
	} else if counted && e.InputTokens != nil && *e.InputTokens == 0 &&
		(e.OutputTokens == nil || *e.OutputTokens == 0) && e.Status != trace.StatusFailed {
		tell.Count(noteAllZero)
	}
	if e.OutputTokens != nil && *e.OutputTokens == 0 && e.Reply != nil && !e.Reply.Blank() &&
		e.Status != trace.StatusFailed {
		e.OutputTokens = nil
		tell.Count(noteZeroOutput)
	}
	if e.InputTokens != nil && *e.InputTokens > maxPrompt {
		tell.Count(noteManyTokens)
	}
}

// hasPrompt reports whether some message of the prompt has text.
func (b *builder) hasPrompt() bool {
	for i := range b.Entry.Messages {
		if m := &b.Entry.Messages[i]; m.Calls.Len() > 0 || !m.Content.Blank() && !m.Redacted() {
			return true
		}
	}
	return false
}

// sessionTotals tell counts that add up over a session: they never fall.
type sessionTotals struct {
	last         map[string][2]int32 // the input and the output of the latest record of a session
	steps, rises int64
	fell         bool
}

const (
	noteTotals = "input and output counts never fall within a session, as totals of the session so far do: if " +
		"they are totals, log the usage of each request"
	maxTotalSessions = 1 << 16
	leastTotalSteps  = 10
)

// see takes the counts of a record.
func (t *sessionTotals) see(b *builder) {
	e := &b.Entry
	if t.fell || e.InputTokens == nil || e.OutputTokens == nil || e.Status == trace.StatusFailed {
		return
	}
	last, again := t.last[b.session]
	switch input, output := *e.InputTokens, *e.OutputTokens; {
	case !again && len(t.last) >= maxTotalSessions:
		return
	case again && (input < last[0] || output < last[1]):
		t.fell = true
	case again:
		t.steps++
		if input > last[0] && output > last[1] {
			t.rises++
		}
	}
	if t.last == nil {
		t.last = map[string][2]int32{}
	}
	t.last[b.session] = [2]int32{*e.InputTokens, *e.OutputTokens}
}

// found reports whether the counts look like totals.
func (t *sessionTotals) found() bool {
	return !t.fell && t.steps >= leastTotalSteps && 4*t.rises >= 3*t.steps
}
