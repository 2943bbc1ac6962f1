package datasets

import (
	"bufio"
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// dynamoRequestFields is where a row of Dynamo's request trace has its fields.
var dynamoRequestFields = Mapping{
	"time":             {"request.request_received_ms"},
	"input_tokens":     {"request.replay.input_length", "request.input_tokens"},
	"output_tokens":    {"request.output_tokens"},
	"cached_tokens":    {"request.cached_tokens"},
	"reasoning_tokens": {"request.reasoning_tokens"},
	"model":            {"request.model"},
	"replica":          {"request.worker.decode_worker_id", "request.worker.prefill_worker_id"},
	"finish_reason":    {"request.finish_reason_metadata.finish_reason"},
	"ttft_ms":          {"request.ttft_ms"},
	"e2e_ms":           {"request.total_time_ms"},
	"blocks":           {"request.replay.input_sequence_hashes"},
}

const (
	dynamoSchema = "dynamo.request.trace."
	dynamoV1     = dynamoSchema + "v1"
)

// dynamoRequestsFormat reads the request trace that Dynamo writes with
// DYN_REQUEST_TRACE=1: rows of requests at their end, without text, and of tools. The
// rules, which are those of Dynamo's own replay as far as a request may only wait for
// what had ended:
//
//   - Hashes are of sequences, chained already, and numbers of 64 bits.
//   - A request follows the one before it in its session, if that had ended, and what
//     the agents below it did last since then. The first of an agent follows the
//     latest request of the agent above.
//   - The gap before it is tool time as far as tools ran (their union) and think time
//     beyond that. Where no tool was recorded and the answer before asked for some, all of
//     it is tool time.
//   - Rows without a session are requests by themselves.
//
// Of each session the last eight requests are held, and the id of each request as 64
// bits, so that rows that stand twice count once.
func dynamoRequestsFormat() Format {
	return Format{
		reads:  mappedFields(dynamoRequestFields, nil),
		labels: true,
		detect: detectDynamoRequests,
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first := row.JSONInputs(in, head, s.fields)
			events := func(in row.Reader) row.Reader { return &row.Members{In: in, Lists: [][]string{{"event"}}} }
			d := &dynamoRequestDecoder{sessions: map[string]*dynamoSession{}, seen: map[uint64]bool{}}
			mapped, err := newMappedDecoder(&requestEnds{in: events(all), d: d}, &requestEnds{in: events(first),
				d: &dynamoRequestDecoder{sessions: map[string]*dynamoSession{}}}, dynamoRequestFields, o, s)
			if err != nil {
				return nil, err
			}
			mapped.timing, mapped.clock.Told = withTimes, time.Millisecond
			d.steppedDecoder = steppedDecoder{mappedDecoder: mapped, step: d}
			return d, nil
		},
	}.described("dynamo-requests")
}

// detectDynamoRequests tells the trace by the value of schema, at the top or within the
// envelope of a sink.
func detectDynamoRequests(head *sniff.Sample) bool {
	for i, line := range head.Lines() {
		if i == 10 {
			break
		}
		if !sniff.Any(line.Keys, "schema", "event") {
			continue
		}
		v, _ := line.Value()
		for _, path := range []string{"schema", "event.schema"} {
			if schema, _ := row.Lookup(v, path); strings.HasPrefix(row.Plain(schema), dynamoSchema) {
				return true
			}
		}
	}
	return false
}

// A dynamoRequestDecoder decodes rows of requests in the order in which they ended.
type dynamoRequestDecoder struct {
	steppedDecoder
	sessions map[string]*dynamoSession
	seen     map[uint64]bool // request ids

	current  *dynamoSession // of the row at hand; nil without one
	id       uint64         // of its request; 0 without one
	joined   []*dynamoSession
	within   endedRequest
	alone    bool // rows without a session were there
	together bool // and rows with one
}

// A dynamoSession is what is known of an agent.
type dynamoSession struct {
	name     trace.Text
	parent   string
	turns    int32
	ended    []endedRequest // the last eight, in the order of their ends
	tools    []interval     // since the last request
	children []*dynamoSession
	news     bool // requests ended since the parent joined it
}

// An endedRequest is a request that others may follow.
type endedRequest struct {
	position   int64
	start, end time.Time
	askedTools bool
}

type interval struct{ from, to time.Time }

const keptRequests = 8

// requestEnds are the rows of requests; those of tools go to the session.
type requestEnds struct {
	in row.Reader
	d  *dynamoRequestDecoder
}

func (q *requestEnds) Next() (row.Row, error) {
	for {
		r, err := q.in.Next()
		if err != nil {
			return nil, err
		}
		schema, _ := r.Value("schema")
		kind, _ := r.Value("event_type")
		switch {
		case strings.HasPrefix(row.Plain(schema), dynamoSchema) && row.Plain(schema) != dynamoV1:
			return nil, row.BadAt(r, "schema", "schema: want "+dynamoV1)
		case row.Plain(kind) == "request_end":
			return q.d.show(r)
		case row.Plain(kind) == "tool_end" || row.Plain(kind) == "tool_error":
			q.d.tool(r)
		}
	}
}

// show completes a row of a request: without the time at which it was received that is
// its end less its length.
func (d *dynamoRequestDecoder) show(r row.Row) (row.Row, error) {
	v := row.NewView(r)
	end, ended := milliseconds(r, "event_time_unix_ms")
	total, long := milliseconds(r, "request.total_time_ms")
	start, received := milliseconds(r, "request.request_received_ms")
	switch {
	case !received && ended && long && total <= end:
		v.Put("request.request_received_ms", row.Integer((end - total).Milliseconds()), "event_time_unix_ms")
	case received && ended && !long && start <= end:
		v.Put("request.total_time_ms", row.Integer((end - start).Milliseconds()), "event_time_unix_ms")
	}
	return v, nil
}

// milliseconds reads a number of them.
func milliseconds(r row.Row, path string) (time.Duration, bool) {
	var length *time.Duration
	v, ok := r.Value(path)
	if !ok || durationTo(time.Millisecond, func(*builder) **time.Duration { return &length })(nil, v) != "" {
		return 0, false
	}
	return *length, true
}

// tool adds the span of a tool to its session.
func (d *dynamoRequestDecoder) tool(r row.Row) {
	id, _, _ := row.Find(r, []string{"agent_context.session_id", "session_id"})
	s := d.sessions[row.Plain(id)]
	end, ok := milliseconds(r, "tool.ended_at_unix_ms")
	if !ok {
		end, ok = milliseconds(r, "event_time_unix_ms")
	}
	start, ok2 := milliseconds(r, "tool.started_at_unix_ms")
	if length, known := milliseconds(r, "tool.duration_ms"); !ok2 && known {
		start, ok2 = end-length, true
	}
	if s == nil || !ok || !ok2 || start > end {
		return
	}
	if len(s.tools) < 1000 { // between two requests
		s.tools = append(s.tools, interval{Epoch.Add(start), Epoch.Add(end)})
	}
}

func (d *dynamoRequestDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *dynamoRequestDecoder) { d.rows.(*requestEnds).in = n.rows.(*requestEnds).in })
}

func (d *dynamoRequestDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	for {
		out, err := d.steppedDecoder.decode(dst)
		if err == errSeen {
			d.s.notes.Count("rows of requests that stood before were left out")
			continue
		}
		if err == io.EOF && d.alone && d.together {
			d.s.notes.SayOnce("some requests have a session and some have none: the latter are taken as independent")
		}
		return out, err
	}
}

// errSeen is returned for a request that was read before.
var errSeen = &fault.Fault{Reason: "the request stood before"}

// set fills in what the row says through those before it.
func (d *dynamoRequestDecoder) set(b *builder, r row.Row) error {
	e := &b.Entry
	d.current, d.joined, d.id = nil, nil, 0
	if v, ok := r.Value("request.request_id"); ok {
		h := fnv.New64a()
		_, _ = io.WriteString(h, row.Plain(v))
		if d.id = h.Sum64(); d.seen[d.id] {
			return errSeen
		}
	}
	if err := d.setBlocks(b, r); err != nil {
		return err
	}
	e.Kind = "chat"
	if e.FinishReason == "cancelled" || e.FinishReason == "abort" {
		e.Status = trace.StatusCancelled
	}
	d.within = endedRequest{start: e.Time, end: e.Time, askedTools: e.FinishReason == "tool_calls"}
	if e.E2E != nil {
		d.within.end = e.Time.Add(*e.E2E)
	}
	id, _ := r.Value("agent_context.session_id")
	name, ok := word(id)
	if id == nil || !ok || name == "" {
		d.alone = true
		return nil
	}
	d.together = true
	d.s.info.HasSessions = true
	above, _ := r.Value("agent_context.parent_session_id")
	s := d.sessions[name]
	if s == nil {
		s = &dynamoSession{name: trace.NewText(name), parent: strings.Clone(row.Plain(above))}
		d.sessions[name] = s
		if p := d.sessions[s.parent]; p != nil && p != s {
			p.children = append(p.children, s)
		}
	}
	d.current = s
	e.Session, e.Turn = s.name, trace.Ptr(s.turns)
	d.follow(e, s)
	return nil
}

// setBlocks checks the size of the blocks, which is that of all rows.
func (d *dynamoRequestDecoder) setBlocks(b *builder, r row.Row) error {
	v, ok := r.Value("request.replay.trace_block_size")
	size, isCount := countOf(row.Plain(v))
	switch {
	case !ok && b.Entry.SourceBlocks == nil:
		d.s.notes.Count("requests without block ids")
	case !isCount || size == 0 || size > 1<<16:
		return row.BadAt(r, "request.replay.trace_block_size",
			"trace_block_size: want a number of tokens from 1 to 65536")
	case d.blockSize == 0:
		d.setBlockSize(int(size))
	case int(size) != d.blockSize:
		return row.BadAt(r, "request.replay.trace_block_size", "its blocks are of another size than earlier blocks")
	}
	return nil
}

// follow sets what the request waits for, and how the gap before it was spent.
func (d *dynamoRequestDecoder) follow(e *trace.Entry, s *dynamoSession) {
	before := latestEnded(s.ended, e.Time)
	if before == nil && s.turns == 0 && d.sessions[s.parent] != nil {
		before = latestEnded(d.sessions[s.parent].ended, e.Time)
	}
	if before == nil {
		if s.turns > 0 {
			d.s.notes.Count("requests that began before any other of their session had ended, which they do not " +
				"wait for")
		}
		return
	}
	e.Parents = []int64{before.position}
	done, asked := before.end, before.askedTools
	for _, c := range s.children {
		last := latestEnded(c.ended, e.Time)
		if !c.news || last == nil || last.position != c.ended[len(c.ended)-1].position {
			continue // it goes on in the background
		}
		d.joined = append(d.joined, c)
		if e.Parents = append(e.Parents, last.position); last.end.After(done) {
			done = last.end
		}
	}
	gap, tools := e.Time.Sub(done), covered(s.tools, done, e.Time)
	switch {
	case len(s.tools) > 0:
		e.Tool = trace.Ptr(tools)
		if gap > tools {
			e.Think = trace.Ptr(gap - tools)
		}
	case asked || len(d.joined) > 0:
		e.Tool = trace.Ptr(gap)
	default:
		e.Think = trace.Ptr(gap)
	}
}

// latestEnded returns the last of some requests to end that had ended by then.
func latestEnded(ended []endedRequest, by time.Time) *endedRequest {
	for i := range slices.Backward(ended) {
		if !ended[i].end.After(by) {
			return &ended[i]
		}
	}
	return nil
}

// covered returns how much of the time between two instants the spans cover together.
func covered(spans []interval, from, to time.Time) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b interval) int { return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to)) })
	for _, s := range spans {
		if s.from.Before(from) {
			s.from = from
		}
		if s.to.After(to) {
			s.to = to
		}
		if s.to.After(s.from) {
			sum += s.to.Sub(s.from)
			from = s.to
		}
	}
	return sum
}

func (d *dynamoRequestDecoder) accepted(_ *trace.Entry, position int64) {
	if d.id != 0 {
		d.seen[d.id] = true
	}
	s := d.current
	if s == nil {
		return
	}
	d.within.position = position
	s.turns++
	s.tools, s.news = s.tools[:0], true
	s.ended = append(s.ended, d.within)
	slices.SortStableFunc(s.ended, func(a, b endedRequest) int { return a.end.Compare(b.end) })
	if len(s.ended) > keptRequests {
		s.ended = s.ended[1:]
	}
	for _, c := range d.joined {
		c.news = false
	}
}
