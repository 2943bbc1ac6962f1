package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"reprise/trace"
)

// wekaReads are the fields of a [wekaConversation]. Those of a subagent stand in
// its requests; of subagents of subagents, which none of the files has, all is
// taken to be known.
var wekaReads = []SourceField{
	fieldAt("id", "session turn", ""),
	fieldAt("block_size|hash_id_scope", "blocks", ""),
	wekaRequestReads("t", "arrival_ns parents"),
	wekaRequestReads("type", "stream"),
	wekaRequestReads("model", "model"),
	wekaRequestReads("in", "input_tokens"),
	wekaRequestReads("out", "output_tokens"),
	wekaRequestReads("hash_ids", "blocks"),
	wekaRequestReads("stop", "finish_reason"),
	wekaRequestReads("api_time", "e2e_ns parents"),
	wekaRequestReads("think_time", "think_ns"),
	wekaRequestReads("ttft", "ttft_ns"),
	wekaRequestReads("requests[].requests", ""),
}

func wekaRequestReads(name, columns string) SourceField {
	if columns == "" {
		return fieldAt("requests[]."+name, "", decides)
	}
	return fieldAt("requests[]."+name+"|requests[].requests[]."+name, columns, "")
}

// wekaFormat reads the conversations of coding agents that Weka collected
// (github.com/callanjfox/kv-cache-tester), which AIPerf and Dynamo replay as
// well: one JSON object for each conversation, as a file of its own, in lines or
// in an array. Every conversation is a session, and a record here: when
// something is wrong in it, all of it is skipped.
//
//   - Times are seconds from the start of the conversation, and nothing says
//     when that was, which a note says. All conversations start at [Epoch]
//     until [Spread] gives them starts.
//   - Requests of a subagent are in its conversation. Their times count as the
//     conversation's do, or, in older files, from the start of the subagent:
//     which is told by one that would be before that start. The peers decide it
//     for each request; here it is for the subagent as a whole, so that its
//     requests keep their order.
//   - A request waits for the latest one before it in its list that had ended by
//     then, by api_time; the first one of a subagent for the latest before the
//     subagent; and one behind a subagent for the last of that, once it ended.
//     One that began while the others were being answered waits for none.
//   - Ids number blocks within a conversation, or, with the older hash_id_scope
//     global, throughout. They are renumbered, so that conversations share no
//     blocks, not even those of the same system prompt.
//   - Ids are of full blocks only. For the rest of an input a new one is made.
//     Files that break this are read all the same, see fitWeka.
//   - Types: "s" is streamed and "n" is not. think_time is the client's delay,
//     whether of a person or a tool. tool_tokens and system_tokens are not read.
func wekaFormat() Format {
	return Format{
		Name:    "weka",
		reads:   wekaReads,
		About:   "Weka cc-traces: conversations of coding agents, with subagents and ids of prefix blocks",
		Example: `{"id":"t1","block_size":64,"requests":[{"t":0.0,"type":"s","model":"m","in":130,"out":29,"hash_ids":[1,2],"stop":"tool_use","api_time":2.5,"think_time":0,"ttft":0.8}]}`,
		detect:  isWeka, detectFiles: eachFile(isWeka),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openWeka(newJSONReader(in, head), o, s), nil
		},
		openFiles: func(files []File, o Options, s *Source) (decoder, error) {
			return openWeka(&fileRecords{rest: files, s: s}, o, s), nil
		},
	}
}

func openWeka(in records, o Options, s *Source) *wekaDecoder {
	d := &wekaDecoder{s: s, in: in, clock: newClock(o), global: map[uint64]uint64{}}
	d.clock.told, d.clock.style, d.clock.unit = time.Second, numeric, time.Second
	s.info.HasTimes, s.info.SessionTimes, s.info.TimeUnit = true, true, unitName(time.Second)
	s.info.HasSessions, s.info.BlocksHashed = true, true
	s.notes.say("times count from the start of each conversation, and the source does not tell when that was")
	s.notes.say("block ids are those of one conversation: what several share, such as a system prompt, does not show")
	return d
}

// isWeka tells by the keys before the requests, which may be longer than the
// head, and by the first of them.
func isWeka(head []byte) bool {
	head = bytes.TrimSpace(head)
	if len(head) > 0 && head[0] == '[' {
		head = bytes.TrimSpace(head[1:])
	}
	keys := objectKeys(head)
	return anyOf(keys, "block_size") && anyOf(keys, "requests")
}

// A wekaDecoder decodes conversations.
type wekaDecoder struct {
	s       *Source
	in      records
	clock   clock
	ids     uint64            // how many are in use
	global  map[uint64]uint64 // new ids by those of files whose scope is global
	entries int64
}

// A wekaConversation is one record.
type wekaConversation struct {
	ID        *string       `json:"id"`
	BlockSize int32         `json:"block_size"`
	Scope     string        `json:"hash_id_scope"`
	Requests  []wekaRequest `json:"requests"`
}

// A wekaRequest is a request or, with requests of its own, a subagent.
type wekaRequest struct {
	T         *json.Number  `json:"t"`
	Type      string        `json:"type"`
	Model     string        `json:"model"`
	In        *int32        `json:"in"`
	Out       *int32        `json:"out"`
	HashIDs   []uint64      `json:"hash_ids"`
	Stop      string        `json:"stop"`
	APITime   *json.Number  `json:"api_time"`
	ThinkTime *json.Number  `json:"think_time"`
	TTFT      *json.Number  `json:"ttft"`
	Requests  []wekaRequest `json:"requests"`
}

func (d *wekaDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.next()
	if err != nil {
		return dst, err
	}
	var c wekaConversation
	if err := json.Unmarshal(raw, &c); err != nil {
		return dst, d.fault(err)
	}
	switch {
	case c.ID == nil:
		return dst, d.bad(raw, "", "it has no id")
	case c.BlockSize < 1:
		return dst, d.bad(raw, "block_size", "block_size: want a whole number from 1")
	case d.s.info.BlockSize != 0 && int(c.BlockSize) != d.s.info.BlockSize:
		return dst, d.bad(raw, "block_size", "its blocks are of another size than those before it")
	case c.Scope != "" && c.Scope != "local" && c.Scope != "global":
		return dst, d.bad(raw, "hash_id_scope", "hash_id_scope: want local or global")
	}
	plan, path, why := planWeka(c.Requests)
	if why != "" {
		return dst, d.bad(raw, path, why)
	}
	before := len(dst)
	dst, f := d.emit(dst, &c, plan)
	if f != nil {
		f.line, f.col = d.in.place(offsetOf(raw, path))
		return dst[:before], f
	}
	d.s.fields.scan(raw)
	d.s.info.BlockSize = int(c.BlockSize)
	d.entries += int64(len(plan))
	if len(plan) == 0 {
		d.s.notes.count("conversations without requests")
	}
	return dst, nil
}

// emit appends the entries of a conversation in the order of their times.
func (d *wekaDecoder) emit(dst []trace.Entry, c *wekaConversation, plan []wekaCall) ([]trace.Entry, *fault) {
	order := make([]int, len(plan))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, plan[a].at-plan[b].at))) })
	position := make([]int64, len(plan))
	for at, i := range order {
		position[i] = d.entries + int64(at)
	}
	session, models := trace.NewText(*c.ID), map[string]trace.Text{}
	ids := wekaIDs{d: d, own: map[uint64]uint64{}, next: d.ids}
	if c.Scope == "global" {
		ids.own = d.global
	}
	for turn, i := range order {
		call := &plan[i]
		t, why, stop := d.clock.instant(stamp{style: numeric, whole: int64(call.at / time.Second), nano: int64(call.at % time.Second)})
		if why != "" {
			return dst, &fault{reason: why, stop: stop}
		}
		e := call.entry(models)
		e.Time, e.Session, e.Turn = t, session, trace.Ptr(int32(turn))
		for _, p := range call.parents {
			e.Parents = append(e.Parents, position[p])
		}
		slices.Sort(e.Parents)
		e.SourceBlocks = ids.fit(call.HashIDs, *call.In, c.BlockSize)
		dst = append(dst, e)
	}
	d.ids = ids.next
	return dst, nil
}

// entry makes the entry of a request, but for its place in the conversation.
func (c *wekaCall) entry(models map[string]trace.Text) trace.Entry {
	e := trace.Entry{InputTokens: c.In, OutputTokens: c.Out, Stream: trace.Ptr(c.Type == "s"), TTFT: c.ttft, E2E: c.api}
	if c.Model != "" {
		if _, ok := models[c.Model]; !ok {
			models[c.Model] = trace.NewText(c.Model)
		}
		e.Model = models[c.Model]
	}
	if len(c.parents) > 0 {
		e.Think = c.think
	}
	switch c.Stop {
	case "end_turn", "stop_sequence":
		e.FinishReason = "stop"
	case "tool_use":
		e.FinishReason = "tool_calls"
	case "max_tokens":
		e.FinishReason = "length"
	default:
		e.FinishReason = trace.ClosedFinish(c.Stop)
	}
	return e
}

func (d *wekaDecoder) bad(raw []byte, path, why string) *fault {
	line, col := d.in.place(offsetOf(raw, path))
	return bad(line, col, why)
}

// fault locates an error of encoding/json, whose texts quote the input.
func (d *wekaDecoder) fault(err error) *fault {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		line, col := d.in.place(int(max(syntax.Offset-1, 0)))
		if d.in.last() {
			return cutOff(line, col, "the last record is not whole")
		}
		return bad(line, col, "it is not valid JSON")
	case errors.As(err, &kind):
		line, col := d.in.place(int(max(kind.Offset-1, 0)))
		return bad(line, col, "a value of the conversation is not of its kind")
	}
	line, col := d.in.place(0)
	return bad(line, col, "a value of the conversation is not of its kind")
}
