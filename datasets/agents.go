package datasets

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// An agentLog gathers the calls of models that the session files of an agent tell
// of, in whatever order they stand, and makes entries of them in the order of their
// arrivals. Until the end of the source it holds what its reader keeps of each
// record, which is no text.
type agentLog struct {
	s       *Source
	in      record.Reader
	times   *mappedDecoder          // keeps the clock
	gather  func(raw []byte) error  // takes one record
	link    func()                  // sets what each call waited for beyond that, after the last record
	names   map[string]string       // of sessions, users and models
	threads []*agentThread          // of agents that have a file each
	begun   map[string]*agentThread // others, by what tells them in the log
	calls   []agentCall
	order   []int32          // of calls by arrival; nil before the end of the source
	rank    []int64          // of each call in it
	turns   map[string]int32 // of each session, so far
	next    int
}

// An agentCall is a call of a model by an agent. Instants are nanoseconds since 1970.
type agentCall struct {
	session, user string // empty for none
	model         string
	arrival       int64   // when all that it waited for was there
	end           int64   // of its answer
	gap           gapKind // what filled the time since the calls before it
	parents       []int32 // calls that it waited for; the first is the one before it in its conversation
	join          int64   // when it had waited for agents; 0 for not
	input, output int32
	cached        int32 // -1 for not known, as the next
	reasoning     int32
	finish        string
	file          string
	line          int64
}

// A gapKind says what an agent did between a call and those before it.
type gapKind uint8

const (
	unknownGap gapKind = iota
	toolGap
	thinkGap
)

func newAgentLog(in record.Reader, o Options, s *Source) *agentLog {
	s.info.HasSessions = true
	l := &agentLog{
		s: s, in: in, times: &mappedDecoder{clock: o.clock(), s: s},
		names: map[string]string{}, turns: map[string]int32{}, begun: map[string]*agentThread{},
	}
	l.link = l.linkThreads
	return l
}

// agentsBy opens logs of agents of which gather takes one record after the other.
func agentsBy(gather func(l *agentLog, raw []byte) error, notes ...string) recordsOpener {
	return func(in record.Reader, o Options, s *Source) decoder {
		l := newAgentLog(in, o, s)
		l.gather = func(raw []byte) error { return gather(l, raw) }
		for _, text := range notes {
			s.notes.SayOnce(text)
		}
		return l
	}
}

// usageAmong is a usage with the names that stand among its counts.
type usageAmong[T any] struct {
	names  T
	counts tokenusage.Counts
}

// UnmarshalJSON implements [json.Unmarshaler].
func (c *usageAmong[T]) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, &c.names); err != nil {
		return err
	}
	return json.Unmarshal(raw, &c.counts)
}

// name keeps one copy of a name.
func (l *agentLog) name(s string) string {
	kept, ok := l.names[s]
	if !ok {
		kept = strings.Clone(s)
		l.names[kept] = kept
	}
	return kept
}

func (l *agentLog) decode(dst []trace.Entry) ([]trace.Entry, error) {
	for l.order == nil {
		raw, err := l.in.Next()
		if err == io.EOF {
			l.link()
			err = l.arrange()
		} else if err == nil {
			err = l.gather(raw)
		}
		if err != nil {
			return dst, err
		}
	}
	if l.next == len(l.order) {
		return dst, io.EOF
	}
	l.next++
	return append(dst, l.entry(l.order[l.next-1])), nil
}

// instant reads the time of the current record.
func (l *agentLog) instant(raw []byte, field, written string) (int64, error) {
	st, ok := stamp.ReadISO(written)
	if !ok {
		return 0, l.bad(raw, field, field+": want a date such as 2026-01-02T15:04:05.000Z")
	}
	t, f := l.times.instant(st)
	if f != nil {
		f.Line, f.Col = l.in.Place(row.OffsetOf(raw, field))
		return 0, f
	}
	return t.UnixNano(), nil
}

func (l *agentLog) bad(raw []byte, path, why string) *fault.Fault { return badIn(l.in, raw, path, why) }

// badIn is a fault of the current record of in, at the place of a path.
func badIn(in record.Reader, raw []byte, path, why string) *fault.Fault {
	line, col := in.Place(row.OffsetOf(raw, path))
	return fault.Bad(line, col, why)
}

const noteNoTokens = "no record has the tokens of a call: versions of the agent that do not log them cannot be imported"

// arrange puts the calls in the order of their arrivals.
func (l *agentLog) arrange() error {
	if len(l.calls) == 0 {
		l.s.notes.SayOnce(noteNoTokens)
	}
	l.order, l.rank = make([]int32, len(l.calls)), make([]int64, len(l.calls))
	for i := range l.order {
		l.order[i] = int32(i)
	}
	slices.SortStableFunc(l.order, func(a, b int32) int { return cmp.Compare(l.calls[a].arrival, l.calls[b].arrival) })
	for rank, i := range l.order {
		c := &l.calls[i]
		l.rank[i] = int64(rank)
		if f := l.times.clock.InCapture(time.Unix(0, c.arrival)); f != nil {
			l.s.file, f.Line, f.Col = c.file, c.line, 1
			return f
		}
		// What a call waited for came before it.
		c.parents = slices.DeleteFunc(c.parents, func(p int32) bool {
			before := &l.calls[p]
			return p == i || before.arrival > c.arrival || before.arrival == c.arrival && p > i
		})
		// A conversation that continues in another file is one session. The agents that
		// it calls belong to the session too.
		if len(c.parents) > 0 {
			c.session = l.calls[c.parents[0]].session
		}
	}
	return nil
}

const wantUsage = ": want whole numbers from 0 to 2147483647, with the cached tokens part of the input"

// use sets the counts of a call by the usage object at a path of the current record.
func (l *agentLog) use(c *agentCall, raw []byte, path string, counts *tokenusage.Counts, d tokenusage.Dialect) error {
	t, found, err := counts.Settle(d)
	if err != nil || counts.Invalid() || found.Has(tokenusage.CacheOver) {
		return l.bad(raw, path, path+wantUsage)
	}
	noteFindings(found.Without(tokenusage.CacheTaken), &l.s.notes) // the format says how they are to be taken
	c.input, c.output, c.cached, c.reasoning = 0, 0, -1, -1
	for _, n := range []struct {
		from *int32
		to   *int32
	}{{t.Input, &c.input}, {t.Output, &c.output}, {t.Cached, &c.cached}, {t.Reasoning, &c.reasoning}} {
		if n.from != nil {
			*n.to = *n.from
		}
	}
	return nil
}

// entry makes the entry of a call.
func (l *agentLog) entry(i int32) trace.Entry {
	c := &l.calls[i]
	text := func(s string) trace.Text {
		if s == "" {
			return trace.Text{}
		}
		return trace.NewText(s)
	}
	e := trace.Entry{
		Time: time.Unix(0, c.arrival).UTC(), User: text(c.user), Session: text(c.session), Model: text(c.model),
		Turn:        trace.Ptr(l.turns[c.session]),
		InputTokens: trace.Ptr(c.input), Kind: "chat", FinishReason: c.finish,
	}
	l.turns[c.session]++
	for _, n := range []struct {
		count int32
		to    **int32
	}{{c.output, &e.OutputTokens}, {c.cached, &e.Cached}, {c.reasoning, &e.Reasoning}} {
		if n.count >= 0 {
			*n.to = trace.Ptr(n.count)
		}
	}
	if c.end > c.arrival {
		e.E2E = trace.Ptr(time.Duration(c.end - c.arrival))
	}
	var done int64
	for _, p := range c.parents {
		e.Parents = append(e.Parents, l.rank[p])
		done = max(done, l.calls[p].end)
	}
	slices.Sort(e.Parents)
	e.Parents = slices.Compact(e.Parents)
	if gap := trace.Ptr(time.Duration(max(0, c.arrival-done))); len(c.parents) > 0 && c.gap == toolGap {
		e.Tool = gap
	} else if len(c.parents) > 0 && c.gap == thinkGap {
		e.Think = gap
	}
	return e
}

// An agentThread is an agent, or a conversation with one, whose calls follow each other.
type agentThread struct {
	id, session, parent string
	spawned             bool // by another agent, and not forked by a person
	born                int64
	calls               []int32
	joined              bool
	ready               int64   // when the next call could begin; 0 for not known
	gap                 gapKind // before it
}

const (
	noteAgentAlone   = "sub-agents and forks whose parent is not in the log"
	noteAgentArrival = "a call arrives with the message or the tool result that it answers and ends with the last " +
		"part of its answer: there is no time to first token"
)

// linkThreads finds what the first call of each agent waited for, which is the call of
// its parent that had ended when it began, and the calls that waited for agents.
func (l *agentLog) linkThreads() {
	byID := map[string]*agentThread{}
	for _, t := range l.threads {
		if byID[t.id] == nil {
			byID[t.id] = t
		}
	}
	children := map[*agentThread][]*agentThread{}
	for _, t := range l.threads {
		if t.parent == "" || len(t.calls) == 0 {
			continue
		}
		before := int32(-1)
		if parent := byID[t.parent]; parent != nil {
			for _, c := range parent.calls {
				if l.calls[c].end <= t.born+int64(joinSlack) {
					before = c
				}
			}
			children[parent] = append(children[parent], t)
		}
		if before < 0 {
			l.s.notes.Count(noteAgentAlone)
			continue
		}
		first := &l.calls[t.calls[0]]
		first.parents = append(first.parents, before)
		if first.gap = thinkGap; t.spawned {
			first.gap = toolGap
		}
	}
	for _, t := range l.threads {
		for _, i := range t.calls {
			c := &l.calls[i]
			for _, child := range children[t] {
				if c.join == 0 || child.joined || !child.spawned {
					continue
				}
				if last := child.calls[len(child.calls)-1]; l.calls[last].end <= c.join+int64(joinSlack) {
					c.parents = append(c.parents, last)
					child.joined = true
				}
			}
		}
	}
}

// addTo adds a call to the end of a thread.
func (l *agentLog) addTo(t *agentThread, c agentCall) {
	if n := len(t.calls); n > 0 {
		c.parents = []int32{t.calls[n-1]}
	}
	t.calls = append(t.calls, int32(len(l.calls)))
	line, _ := l.in.Place(0)
	c.file, c.line = l.s.file, line
	l.calls = append(l.calls, c)
}

// decodeRecord decodes the current record of in, an object, into a struct.
func decodeRecord(in record.Reader, raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return undecoded(in, err, "a value of the record is not of its kind")
	}
	return nil
}

// undecoded locates an error of encoding/json, whose texts quote the input: otherKind is said where
// the current record of in is JSON.
func undecoded(in record.Reader, err error, otherKind string) *fault.Fault {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := 0
	switch {
	case errors.As(err, &syntax):
		line, col := in.Place(int(max(syntax.Offset-1, 0)))
		if in.Last() {
			return fault.CutOff(line, col, "the last record is not whole")
		}
		return fault.Bad(line, col, "it is not valid JSON")
	case errors.As(err, &kind):
		offset = int(max(kind.Offset-1, 0))
	}
	line, col := in.Place(offset)
	return fault.Bad(line, col, otherKind)
}

// sessionsAmong are the session files of a folder, or all files where none is named
// as one, since the format was told; Info.LeftOut names the others.
func sessionsAmong(files []File, s *Source, names string) []File {
	sessions := sessionFiles(files, names)
	if len(sessions) == 0 {
		return files
	}
	for _, f := range files {
		if len(sessionFiles([]File{f}, names)) == 0 {
			s.info.LeftOut = append(s.info.LeftOut, f.Name)
		}
	}
	return sessions
}

// sessionFiles are those of a folder that may be session files of an agent, by patterns of their names with "|"
// between them: agents keep other files beside them.
func sessionFiles(files []File, names string) (sessions []File) {
	for _, f := range files {
		name := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
		name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
		for pattern := range strings.SplitSeq(names, "|") {
			if ok, _ := path.Match(pattern, name); ok {
				sessions = append(sessions, f)
			}
		}
	}
	return sessions
}
