package datasets

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

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
//   - A subagent ran until its duration_ms was over, or, without one, until its last
//     request was answered.
//   - The requests of a list may be of several agents, told by their blocks: see [chainsOf].
//     Each is a thread, as is each subagent; the first of the conversation is thread 0.
//   - A request waits for the latest one before it of its thread that had ended by
//     then, by api_time; the first one of a thread for the one that called it; one after
//     agents for their last requests, once they ended; and for all requests
//     of its list that were over when it began: see setParents.
//     One that began while the others were being answered waits for none.
//   - Ids number blocks within a conversation, or, with the older hash_id_scope
//     global, throughout. They are renumbered, so that conversations share no
//     blocks but those of a trunk: as many as tool_tokens and system_tokens fill are
//     the same for all of equal such lengths and model, which are those of one version
//     of a client. That is an estimate, and a note says so.
//   - Only full blocks have ids. For the rest of an input a new one is made.
//     Files that break this are read all the same, see fitWeka.
//   - Types: "s" is streamed and "n" is not. think_time is the client's delay,
//     whether of a person or a tool.
func wekaFormat() Format {
	return Format{detect: isWeka}.described("weka").ofFiles(openWeka)
}

func openWeka(in record.Reader, o Options, s *Source) decoder {
	d := &wekaDecoder{s: s, in: in, clock: o.clock(), global: map[uint64]uint64{}, trunks: map[wekaTrunk][]uint64{}}
	d.clock.Told = time.Second
	_, _ = d.clock.Settle(stamp.Stamp{Style: stamp.Numeric}) // in a unit that is told nothing is open
	s.info.HasTimes, s.info.SessionTimes, s.info.TimeUnit = true, true, d.clock.Unit()
	s.info.HasSessions, s.info.BlocksHashed = true, true
	s.notes.SayOnce("times count from the start of each conversation, and the source does not tell when that was")
	return d
}

// isWeka tells by the keys before the requests, which may be longer than the
// head, and by the first of them.
func isWeka(head *sniff.Sample) bool {
	first := bytes.TrimSpace(head.Bytes)
	if len(first) > 0 && first[0] == '[' {
		first = bytes.TrimSpace(first[1:])
	}
	keys := record.Keys(first)
	return sniff.Any(keys, "block_size") && sniff.Any(keys, "requests")
}

// A wekaDecoder decodes conversations.
type wekaDecoder struct {
	s       *Source
	in      record.Reader
	clock   stamp.Clock
	ids     blockIDs          // in use
	global  map[uint64]uint64 // new ids by those of files whose scope is global
	trunks  map[wekaTrunk][]uint64
	entries int64
}

// A wekaConversation is one record.
type wekaConversation struct {
	ID        *string       `json:"id"`
	BlockSize int32         `json:"block_size"`
	Scope     string        `json:"hash_id_scope"`
	Tools     int32         `json:"tool_tokens"`
	System    int32         `json:"system_tokens"`
	Requests  []wekaRequest `json:"requests"`
}

// A wekaTrunk is what the prompts of a client begin with: its tools and its system prompt,
// told by their lengths.
type wekaTrunk struct {
	model         string
	tools, system int32
}

// blocks is how many full blocks it has.
func (t wekaTrunk) blocks(size int32) int {
	if t.tools < 0 || t.system < 0 {
		return 0
	}
	return int((int64(t.tools) + int64(t.system)) / int64(size))
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
	Tools     int32         `json:"tool_tokens"` // of a subagent, like the next
	System    int32         `json:"system_tokens"`
	Duration  *json.Number  `json:"duration_ms"`
	Requests  []wekaRequest `json:"requests"`
}

func (d *wekaDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.Next()
	if err != nil {
		return dst, err
	}
	var c wekaConversation
	if err := json.Unmarshal(raw, &c); err != nil {
		return dst, undecoded(d.in, err, "a value of the conversation is not of its kind")
	}
	switch {
	case c.ID == nil:
		return dst, badIn(d.in, raw, "", "it has no id")
	case c.BlockSize < 1:
		return dst, badIn(d.in, raw, "block_size", "block_size: want a whole number from 1")
	case d.s.info.BlockSize != 0 && int(c.BlockSize) != d.s.info.BlockSize:
		return dst, badIn(d.in, raw, "block_size", "its blocks are of another size than earlier blocks")
	case c.Scope != "" && c.Scope != "local" && c.Scope != "global":
		return dst, badIn(d.in, raw, "hash_id_scope", "hash_id_scope: want local or global")
	}
	var plan wekaPlan
	plan.addList(c.Requests, 0, -1, "requests", wekaTrunk{tools: c.Tools, system: c.System})
	if plan.why != "" {
		return dst, badIn(d.in, raw, plan.path, plan.why)
	}
	before := len(dst)
	dst, f := d.appendEntries(dst, &c, plan.calls)
	if f != nil {
		f.Line, f.Col = d.in.Place(row.OffsetOf(raw, ""))
		return dst[:before], f
	}
	d.s.fields.Scan(raw)
	d.s.info.BlockSize = int(c.BlockSize)
	d.entries += int64(len(plan.calls))
	if len(plan.calls) == 0 {
		d.s.notes.Count("conversations without requests")
	}
	return dst, nil
}

// appendEntries appends the entries of a conversation in the order of their times.
func (d *wekaDecoder) appendEntries(dst []trace.Entry, c *wekaConversation,
	plan []wekaCall) ([]trace.Entry, *fault.Fault) {
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
	ids := wekaIDs{d: d, own: map[uint64]uint64{}, next: d.ids, local: c.Scope != "global",
		trunks: map[wekaTrunk][]uint64{}, taken: map[uint64]bool{}}
	if !ids.local {
		ids.own = d.global
	}
	threads, turns := map[int]int{0: 0}, map[int]int32{} // in the order in which they begin, and their requests so far
	for _, i := range order {
		call := &plan[i]
		thread, ok := threads[call.thread]
		if !ok {
			thread = len(threads)
			threads[call.thread] = thread
		}
		at := stamp.Stamp{Style: stamp.Numeric, Whole: int64(call.at / time.Second), Nano: int64(call.at % time.Second)}
		t, f := d.clock.Instant(at)
		if f != nil {
			return dst, f
		}
		e := call.entry(models)
		e.Time, e.Session, e.Thread, e.Turn = t, session, trace.Ptr(int32(thread)), trace.Ptr(turns[thread])
		turns[thread]++
		for _, p := range call.parents {
			e.Parents = append(e.Parents, position[p])
		}
		slices.Sort(e.Parents)
		e.SourceBlocks = ids.fitBlocks(call.HashIDs, *call.In, c.BlockSize, call.trunk)
		dst = append(dst, e)
	}
	d.ids = ids.next
	maps.Copy(d.trunks, ids.trunks)
	if len(ids.taken) > 0 {
		d.s.notes.Count(noteWekaTrunk)
	} else if ids.local {
		d.s.notes.Count(noteWekaLocal)
	}
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
	e.FinishReason = trace.ClosedFinish(c.Stop)
	return e
}

// wekaIDs renumbers the block ids of a conversation.
type wekaIDs struct {
	d      *wekaDecoder
	own    map[uint64]uint64
	next   blockIDs
	local  bool                   // the ids are those of one conversation
	trunks map[wekaTrunk][]uint64 // that are longer than those of the conversations before
	taken  map[uint64]bool        // blocks of trunks that this conversation has
}

// trunk returns the block of a trunk at a place, which all conversations with the same
// trunk share; false for one that another id of this conversation has.
func (w *wekaIDs) trunk(of wekaTrunk, place int) (uint64, bool) {
	blocks, ok := w.trunks[of]
	if !ok {
		blocks = w.d.trunks[of]
	}
	if len(blocks) <= place {
		blocks = w.next.fill(slices.Clip(blocks), place+1)
		w.trunks[of] = blocks
	}
	id := blocks[place]
	if w.taken[id] {
		return 0, false
	}
	w.taken[id] = true
	return id, true
}

const (
	noteWekaFloor = "requests with another number of block ids than full blocks, cut or filled up with new ones"
	noteWekaLocal = "conversations whose block ids are their own, so that what they share with others does not show"
	noteWekaTrunk = "conversations whose first blocks were taken as shared among the same tool_tokens, " +
		"system_tokens and model: an estimate"
	noteWekaNone = "requests with ids for less than half of their blocks, left without any"
)

// fitBlocks turns the ids of full blocks into one for each block. When there are more ids
// than full blocks, the first extra id stands for the rest of the input, when there is one, and
// others are left out; too few are filled up, as blocks that nothing shares,
// unless most are missing: then it is not known what the prompt shares.
//
// The first blocks of a prompt, as many as its tools and its system prompt fill, are those
// of its trunk.
func (w *wekaIDs) fitBlocks(ids []uint64, input, size int32, of wekaTrunk) []uint64 {
	full, n := int(input/size), blocksOf(input, int(size))
	if len(ids) != full {
		if full > 2*len(ids) {
			w.d.s.notes.Count(noteWekaNone)
			return nil
		}
		w.d.s.notes.Count(noteWekaFloor)
	}
	out := make([]uint64, 0, n)
	shared := 0
	if w.local {
		shared = min(of.blocks(size), full)
	}
	for place, id := range ids[:min(n, len(ids))] {
		renumbered, ok := w.own[id]
		if !ok && place < shared {
			renumbered, ok = w.trunk(of, place)
		}
		if !ok {
			renumbered = w.next.next()
		}
		w.own[id] = renumbered
		out = append(out, renumbered)
	}
	return w.next.fill(out, n)
}
