package datasets

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	"reprise/trace/ending"
)

// A Mapping says where the fields of a generic source are: for each target the
// paths to look at, in order of preference.
type Mapping map[string][]string

// ParseMapping reads specifications of the form target=path, as --map takes
// them. In JSON a path is dotted keys and array indices, such as
// usage.prompt_tokens or choices[0].text (or choices.0.text); a key that itself
// has dots is found as well. In CSV it is the name of a column. Alternatives
// are separated by "|": the first that is present and not null counts. A path of a
// count may be several with "+" between them, whose values add up. One specification
// may hold several, with commas between them.
//
// The targets are those of [Targets]. ParseMapping returns nil for no
// specifications; its errors match [ErrUsage].
func ParseMapping(specs []string) (Mapping, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	m := Mapping{}
	for _, spec := range splitPairs(specs) {
		name, where, ok := strings.Cut(spec, "=")
		switch {
		case !ok || slices.Contains(strings.Split(where, "|"), ""):
			return nil, fault.Usage("--map %q: want target=path", spec)
		case !slices.ContainsFunc(targets, func(t target) bool { return t.name == name }):
			near := ""
			if n := nearestName(name, strings.Split(targetNames(), ", ")); n != "" {
				near = " did you mean " + n + "?"
			}
			return nil, fault.Usage("--map %q: unknown target;%s want one of %s", spec, near, targetNames())
		case m.has(name):
			return nil, fault.Usage("--map %q: this target is mapped twice", spec)
		}
		m[name] = strings.Split(where, "|")
	}
	return m, nil
}

// pairAhead is a comma with another target=path after it.
var pairAhead = regexp.MustCompile(`,\s*[a-z0-9_]+=`)

// splitPairs takes apart specifications that hold several.
func splitPairs(specs []string) (pairs []string) {
	for _, spec := range specs {
		for {
			at := pairAhead.FindStringIndex(spec)
			if at == nil {
				break
			}
			pairs = append(pairs, spec[:at[0]])
			spec = strings.TrimLeft(spec[at[0]+1:], " \t")
		}
		pairs = append(pairs, spec)
	}
	return pairs
}

// has reports whether the target is mapped, if only in another unit.
func (m Mapping) has(name string) bool {
	for given := range m {
		if quantity(given) == quantity(name) {
			return true
		}
	}
	return false
}

// quantity is a target without its unit.
func quantity(name string) string {
	for _, q := range []string{"ttft", "e2e"} {
		if strings.HasPrefix(name, q) {
			return q
		}
	}
	return name
}

// over returns m with the targets of base that it lacks.
func (m Mapping) over(base Mapping) Mapping {
	out := maps.Clone(base)
	maps.DeleteFunc(out, func(name string, _ []string) bool { return m.has(name) })
	maps.Copy(out, m)
	return out
}

// adds reports whether the mapping can only add to a format, since it names neither prompts nor their length.
func (m Mapping) adds() bool {
	return m != nil && m["messages"] == nil && m["prompt"] == nil && m["input_tokens"] == nil
}

// labels are targets that say whose a request is and where it went, and change nothing else of it: they can be added to
// a format that has a meaning of its own for all others.
var labels = []string{"user", "model", "adapter", "class", "replica"}

// fits reports whether a mapping may go with a format.
func (m Mapping) fits(f Format) bool {
	onlyLabels := true
	for name := range m {
		onlyLabels = onlyLabels && slices.Contains(labels, name)
	}
	return f.mapped || f.adds && m.adds() || f.labels && onlyLabels
}

// dotted returns m with its paths as lookup takes them.
func (m Mapping) dotted() Mapping {
	out := maps.Clone(m)
	for name, paths := range m {
		out[name] = slices.Clone(paths)
		for i := range paths {
			out[name][i] = row.Dotted(paths[i])
		}
	}
	return out
}

// A target is a field of an entry that a mapping can fill.
type target struct {
	name, about string
	// set stores a value; it returns what was wanted instead, or "". The time
	// has none, since its meaning depends on other records.
	set func(b *builder, v any) string
}

// targets lists the targets. The order is that in which they are set: messages
// win over a prompt, and an error over a status.
var targets = []target{
	{"time", "arrival time: a date, or a number, all in one unit", nil},
	{"input_tokens", "length of the prompt in tokens",
		countTo(func(b *builder) **int32 { return &b.Entry.InputTokens })},
	{"output_tokens", "length of the output in tokens",
		countTo(func(b *builder) **int32 { return &b.Entry.OutputTokens })},
	{"cached_tokens", "prompt tokens that the server had in its cache",
		countTo(func(b *builder) **int32 { return &b.Entry.Cached })},
	{"reasoning_tokens", "reasoning tokens in the output",
		countTo(func(b *builder) **int32 { return &b.Entry.Reasoning })},
	{"images", "images in the prompt", countTo(func(b *builder) **int32 { return &b.Entry.Images })},
	{"user", "end user or tenant", textTo(func(b *builder) *trace.Text { return &b.Entry.User })},
	{"session", "conversation", idTo(func(b *builder) (*string, *trace.Text) { return &b.session, &b.Entry.Session })},
	{"model", "model", textTo(func(b *builder) *trace.Text { return &b.Entry.Model })},
	{"adapter", "LoRA adapter", textTo(func(b *builder) *trace.Text { return &b.Entry.Adapter })},
	{"salt", "cache salt: requests with different salts share no prefix",
		textTo(func(b *builder) *trace.Text { return &b.Entry.Salt })},
	{"prefix_key", "name of what the prompt begins with, used where the text is redacted",
		textTo(func(b *builder) *trace.Text { return &b.Entry.PrefixKey })},
	{"kind", "chat, completion, embedding or responses",
		closedTo(trace.ClosedKind, func(b *builder) *string { return &b.Entry.Kind })},
	{"class", "priority or SLO class", textTo(func(b *builder) *trace.Text { return &b.Entry.Class })},
	{"replica", "server that answered", textTo(func(b *builder) *trace.Text { return &b.Entry.Replica })},
	{"max_tokens", "requested limit of output tokens", countTo(func(b *builder) **int32 { return &b.Entry.MaxTokens })},
	{"temperature", "requested temperature", setTemperature},
	{"stream", "whether the answer was streamed", setStream},
	{"status", "HTTP status, or a word such as ok, failed, cancelled", setStatus},
	{"error", "any value but none: the request failed", setError},
	{"finish_reason", "stop, length and the like",
		closedTo(trace.ClosedFinish, func(b *builder) *string { return &b.Entry.FinishReason })},
	{"ttft", `time to first token, as "350ms"`,
		durationTo(0, func(b *builder) **time.Duration { return &b.Entry.TTFT })},
	{"ttft_s", "the same, in seconds",
		durationTo(time.Second, func(b *builder) **time.Duration { return &b.Entry.TTFT })},
	{"ttft_ms", "the same, in milliseconds",
		durationTo(time.Millisecond, func(b *builder) **time.Duration { return &b.Entry.TTFT })},
	{"ttft_us", "the same, in microseconds",
		durationTo(time.Microsecond, func(b *builder) **time.Duration { return &b.Entry.TTFT })},
	{"ttft_ns", "the same, in nanoseconds",
		durationTo(time.Nanosecond, func(b *builder) **time.Duration { return &b.Entry.TTFT })},
	{"e2e", `time to last token, as "2.5s"`, durationTo(0, func(b *builder) **time.Duration { return &b.Entry.E2E })},
	{"e2e_s", "the same, in seconds",
		durationTo(time.Second, func(b *builder) **time.Duration { return &b.Entry.E2E })},
	{"e2e_ms", "the same, in milliseconds",
		durationTo(time.Millisecond, func(b *builder) **time.Duration { return &b.Entry.E2E })},
	{"e2e_us", "the same, in microseconds",
		durationTo(time.Microsecond, func(b *builder) **time.Duration { return &b.Entry.E2E })},
	{"e2e_ns", "the same, in nanoseconds",
		durationTo(time.Nanosecond, func(b *builder) **time.Duration { return &b.Entry.E2E })},
	{"response_id", "id of the answer, by which later requests go on from it",
		idTo(func(b *builder) (*string, *trace.Text) { return &b.response, &b.Entry.Response })},
	{"previous_response_id", "id of the answer that a request continues; its prompt holds only the new part",
		idTo(func(b *builder) (*string, *trace.Text) { return &b.previous, &b.Entry.Previous })},
	{"blocks", "ids of the prompt's prefix blocks: an array of numbers, the last for a partial block", setBlocks},
	{"messages", "the prompt as a list of role and content, or the whole body of a request; also as a JSON string",
		talked(talk.SetConversation)},
	{"tools", "tool definitions: a list, or the same as a JSON string", talked(talk.SetTools)},
	{"prompt", "the prompt as text or a list of token ids", talked(talk.SetPrompt)},
	{"output", "the answer as text or a message", talked(talk.SetOutput)},
}

// Targets lists the targets of a mapping: the name of each, and one line about it.
func Targets() [][2]string {
	out := make([][2]string, len(targets))
	for i, t := range targets {
		out[i] = [2]string{t.name, t.about}
	}
	return out
}

func targetNames() string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.name
	}
	return strings.Join(names, ", ")
}

// A builder gathers the values of one entry.
type builder struct {
	talk.Prompt
	session string // as the source spells it, like the ids of answers

	response, previous string
	ownSystem          bool // the first message is not passed on to requests that go on from the answer
}

// talked makes of what takes a part of the prompt or the reply what sets a value of an entry.
func talked(take func(*talk.Prompt, any) string) func(*builder, any) string {
	return func(b *builder, v any) string { return take(&b.Prompt, v) }
}

func countOf(s string) (int32, bool) {
	whole, nano, ok := stamp.Decimal(strings.TrimSpace(s))
	return int32(whole), ok && nano == 0 && whole >= 0 && whole <= math.MaxInt32
}

func countTo(at func(*builder) **int32) func(*builder, any) string {
	return func(b *builder, v any) string {
		switch v := v.(type) {
		case row.OpenNumber:
			return row.WhichDecimal
		case settledCount:
			*at(b) = trace.Ptr(int32(v))
			return ""
		}
		n, ok := countOf(row.Plain(v))
		if !ok {
			return "want a whole number from 0 to 2147483647"
		}
		*at(b) = &n
		return ""
	}
}

const wantWord = "want a string or a number"

// word returns a name as the source spells it. It is a copy, since a CSV field
// would hold on to its whole row.
func word(v any) (string, bool) {
	s := row.Plain(v)
	return strings.Clone(s), s != "" || v == ""
}

// wordTo makes of what takes a name what sets a value of an entry. An empty name is none.
func wordTo(set func(*builder, string)) func(*builder, any) string {
	return func(b *builder, v any) string {
		s, ok := word(v)
		if !ok {
			return wantWord
		}
		if s != "" {
			set(b, s)
		}
		return ""
	}
}

func textTo(at func(*builder) *trace.Text) func(*builder, any) string {
	return wordTo(func(b *builder, s string) { *at(b) = trace.NewText(s) })
}

// idTo keeps an id both as the source spells it and as a text of the entry.
func idTo(at func(*builder) (*string, *trace.Text)) func(*builder, any) string {
	return wordTo(func(b *builder, s string) {
		id, text := at(b)
		*id, *text = s, trace.NewText(s)
	})
}

func closedTo(list func(string) string, at func(*builder) *string) func(*builder, any) string {
	return wordTo(func(b *builder, s string) { *at(b) = list(s) })
}

func durationTo(unit time.Duration, at func(*builder) **time.Duration) func(*builder, any) string {
	return func(b *builder, v any) string {
		d, err := time.Duration(0), error(nil)
		if n, open := v.(row.OpenNumber); open && !n.Decimal {
			return row.WhichDecimal
		}
		if unit == 0 {
			d, err = time.ParseDuration(row.Plain(v))
			if err != nil || d < 0 {
				return `want a duration such as "350ms"; for a number name the unit in the target, as in ttft_ms`
			}
		} else {
			whole, nano, ok := stamp.Decimal(strings.TrimSpace(row.Plain(v)))
			if !ok || whole < 0 || nano < 0 || whole >= math.MaxInt64/int64(unit) {
				return "want a number that is not negative"
			}
			d = time.Duration(whole)*unit + time.Duration(math.Round(float64(nano)*float64(unit)/1e9))
		}
		*at(b) = &d
		return ""
	}
}

// lengthOf reads a number of units, from 0 to below a bound, as a length of time.
func lengthOf(number string, unit time.Duration, below int64) (d time.Duration, ok bool) {
	whole, nano, ok := stamp.Decimal(number)
	if !ok || whole < 0 || nano < 0 || whole >= below {
		return 0, false
	}
	return time.Duration(whole)*unit + time.Duration(nano)*unit/time.Second, true
}

func setTemperature(b *builder, v any) string {
	f, err := strconv.ParseFloat(strings.TrimSpace(row.Plain(v)), 32)
	if err != nil || !(f >= 0) || math.IsInf(f, 0) {
		return "want a number that is not negative"
	}
	b.Entry.Temperature = trace.Ptr(float32(f))
	return ""
}

func setStream(b *builder, v any) string {
	on, ok := v.(bool)
	if !ok {
		var err error
		if on, err = strconv.ParseBool(strings.ToLower(strings.TrimSpace(row.Plain(v)))); err != nil {
			return "want true or false"
		}
	}
	b.Entry.Stream = &on
	return ""
}

// setStatus takes an HTTP status or a word.
func setStatus(b *builder, v any) string {
	fate, ok := ending.Status(wordOf(v))
	if !ok {
		return "want an HTTP status or a word"
	}
	b.Entry.Status = trace.ClosedStatus(string(fate))
	return ""
}

// setError marks the request as failed unless it is known to be cancelled.
func setError(b *builder, v any) string {
	if saysNoError(v) || b.Entry.Status == trace.StatusCancelled {
		return ""
	}
	b.Entry.Status = trace.StatusFailed
	return ""
}

func setBlocks(b *builder, v any) string {
	const want = "want an array of whole numbers that are not negative"
	if s, ok := v.(string); ok {
		if v, _, ok = row.DecodeJSON([]byte(s)); !ok {
			return want
		}
	}
	list, ok := v.([]any)
	if !ok {
		return want
	}
	b.Entry.SourceBlocks = make([]uint64, len(list))
	for i, id := range list {
		n, isNumber := id.(row.Number)
		var err error
		if b.Entry.SourceBlocks[i], err = strconv.ParseUint(string(n), 10, 64); err != nil || !isNumber {
			return want
		}
	}
	return ""
}

// finish checks the entry as a whole.
func (b *builder) finish(blockSize int) string {
	e := &b.Entry
	if e.Messages == nil && e.InputTokens == nil {
		return "it has neither a prompt nor the length of one"
	}
	if b.lengthUnknown() {
		return unknownLength
	}
	if e.Messages != nil && e.Kind == "" {
		e.Kind = "chat"
	}
	if b.Images > 0 {
		e.Images = trace.Ptr(b.Images)
	}
	if e.SourceBlocks != nil && (e.InputTokens == nil || len(e.SourceBlocks) != blocksOf(*e.InputTokens, blockSize)) {
		return wrongBlocks
	}
	return ""
}

const unknownLength = "its prompt is empty or redacted, and no token count stands beside it, so its length is " +
	"not known: " +
	"log the usage of each request, or where it has another name, say which (--map input_tokens=)"

const noteFailedUnknown = "calls that failed, with an empty or redacted prompt and no token count, were left out"

// lengthUnknown reports whether nothing tells the length of the prompt: there is
// no count, and all that stands in the messages are redaction markers, if
// anything. Images and calls of tools are content.
func (b *builder) lengthUnknown() bool {
	return b.Entry.InputTokens == nil && b.Entry.Messages != nil && b.Images == 0 && !b.hasPrompt()
}
