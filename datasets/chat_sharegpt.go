package datasets

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// shareGPTReads are the fields of a [conversation] and its turns.
var shareGPTReads = []SourceField{
	fieldAt("id", "session turn parents", ""),
	fieldAt("conversations[].from|conversations[].role|conversation[].from|conversation[].role",
		"input_tokens blocks", decides),
	fieldAt("conversations[].value|conversations[].content|conversation[].value|conversation[].content",
		"input_tokens blocks output_tokens output_blocks", tokenised),
	fieldAt("conversations[].tool_calls|conversation[].tool_calls",
		"input_tokens blocks output_tokens output_blocks", tokenised),
	fieldAt("system", "input_tokens blocks", tokenised),
	fieldAt("tools|functions", "input_tokens blocks", tokenised),
}

// pairReads are the fields of turns that are a question with its answer.
var pairReads = pairsAt("conversations[]", "conversation[]")

func pairsAt(lists ...string) (fields []SourceField) {
	for _, list := range lists {
		for side, columns := range []string{"input_tokens blocks", "output_tokens output_blocks"} {
			for _, key := range pairKeys[side] {
				fields = append(fields, fieldAt(list+"."+key, columns, tokenised))
			}
		}
		fields = append(fields, fieldAt(list+".system", "input_tokens blocks", tokenised))
	}
	return fields
}

// shareGPTFormat reads conversations in the form of ShareGPT's scrapes: a JSON
// array, or JSON lines, read in memory bounded by the largest conversation. There
// are no times.
//
// Each reply becomes an entry with all before it as its messages; the entries
// of a conversation share their texts. The rules for what the scrapes hold:
//
//   - A system prompt and tools beside the turns are of every request (LLaMA-Factory).
//   - A function_call is a reply that calls tools, and an observation their result.
//   - Replies before the first message of a user are context, not requests: the
//     conversation was cut.
//   - Consecutive replies are one turn, their texts put end to end, both as the
//     reply and in the messages of later turns.
//   - A message at the end that no reply follows yields nothing.
//   - A long chat was split into several elements, its turns from n on under the
//     id a_n (FastChat's split_long_conversation.py; others count the parts).
//     Parts that follow each other are put together again and read as if they
//     had never been apart. A part that does not follow the one before it is
//     read alone, and a note counts these: to look for it would take the file in
//     memory. Chats that are numbered one by one, a_0, a_1 and so on, are parts only
//     where the file has several such series and the part before is as long as what
//     chats were split for: see [pendingChat.goesOn].
//   - Each chat is a session of its own, known by its position and its id, since
//     ids repeat.
//   - Texts are kept as they are, with the HTML that older scrapes have.
func shareGPTFormat() Format {
	return Format{
		reads: slices.Concat(shareGPTReads, pairReads),
		detect: sniff.Objects(func(has func(string) bool) bool {
			return (has("conversations") || has("conversation")) && !hasWildChat(has) && !hasLMSYS(has)
		}),
		open: func(in *bufio.Reader, head []byte, _ Options, s *Source) (decoder, error) {
			return newChatDecoder(in, head, s), nil
		},
	}.described("sharegpt")
}

// A chatDecoder holds one chat back, since the next element may go on with it.
type chatDecoder struct {
	in      record.Reader
	series  bool  // the first elements are of several series of numbers: see [pendingChat.goesOn]
	counted bool  // chats are numbered one by one
	element int64 // of the input, from 0
	entries int64 // handed out so far
	pending *pendingChat
	err     error // met after the chat that was handed out last
	s       *Source
}

const (
	noteNoAnswers = "answers are not in the source: prompts of later turns are shorter than they were, unless it " +
		"counts them"

	withoutReply = "conversations without a reply to a user"
	rejoined     = "parts of split chats that were put together with the part before them"
	apart        = "parts of split chats that do not follow the part before them, read alone"
)

func newChatDecoder(in *bufio.Reader, head []byte, s *Source) *chatDecoder {
	s.info.HasText, s.info.HasSessions = true, true
	stems := map[string]bool{}
	for _, record := range sniff.New(head).Records() {
		v, _ := record.Value()
		id, _ := row.Lookup(v, "id")
		if stem, _ := seriesOf(row.Plain(id)); stem != "" {
			stems[stem] = true
		}
	}
	return &chatDecoder{in: record.NewJSON(in, head), series: len(stems) > 1, s: s}
}

func (d *chatDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *chatDecoder) { d.in = n.in })
}

func (d *chatDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	if d.pending == nil && d.err == nil {
		d.pending, d.err = d.read()
	}
	if d.pending == nil {
		err := d.err
		d.err = nil
		return dst, err
	}
	var next *pendingChat
	if next, d.err = d.read(); next != nil && d.pending.addPart(next, d.series) {
		if !next.row && !next.snapshot {
			d.s.notes.Count(rejoined)
		}
		return dst, nil
	}
	if f, ok := d.err.(*fault.Fault); ok && f.Stop {
		return dst, f // the pending chat may not be whole
	}
	whole := d.pending
	d.pending = next
	d.counted = d.counted || next != nil && next.stem == whole.stem && next.number == whole.number+1
	if next != nil && next.stem != "" && next.number > 0 && !d.counted {
		d.s.notes.Count(apart)
	}
	base := trace.Entry{Session: trace.NewText(strconv.FormatInt(whole.position, 10) + "/" + whole.id), Kind: "chat",
		Tools: whole.tools}
	before := len(dst)
	if whole.asks != nil {
		dst = whole.asked(dst, base, d.entries)
		d.s.notes.SayOnce(noteNoAnswers)
	} else {
		messages, _, _ := joinTurns(whole.all())
		dst = replies(dst, messages, base, d.entries)
	}
	d.entries += int64(len(dst) - before)
	if len(dst) == before {
		d.s.notes.Count(withoutReply)
	}
	return dst, nil
}

// read reads the next element; it is nil with an error.
func (d *chatDecoder) read() (*pendingChat, error) {
	raw, err := d.in.Next()
	if err != nil {
		return nil, err
	}
	c := &pendingChat{position: d.element, bytes: len(raw)}
	d.element++
	// Turns of other forms than a speaker and a text are rare: only then all of a record is decoded.
	var quick conversation[spokenTurn]
	err = json.Unmarshal(raw, &quick)
	var kind *json.UnmarshalTypeError
	whole := err == nil && len(quick.Tools) == 0 && len(quick.Functions) == 0
	turns := quick.Conversations
	if turns == nil {
		turns = quick.Conversation
	}
	for _, t := range turns {
		whole = whole && t.plain()
	}
	switch {
	case err != nil && !errors.As(err, &kind):
		return nil, d.fault(err)
	case whole && turns != nil:
		c.id = strings.Trim(string(quick.ID), `"`)
		c.system, c.turns = quick.System, turns
	default:
		v, _, _ := row.DecodeJSON(raw)
		position, bytes := c.position, c.bytes
		if *c, err = parseChat(v, raw); err != nil {
			return nil, d.fault(err)
		}
		c.position, c.bytes = position, bytes
	}
	if _, _, err = joinTurns(c.turns); err != nil {
		return nil, d.fault(err)
	}
	d.s.fields.Scan(raw)
	if c.size = len(c.turns); !c.row && !c.snapshot {
		c.stem, c.number = seriesOf(c.id)
	}
	return c, nil
}

// seriesOf takes the number off the id of a part; stem is empty where there is none.
func seriesOf(id string) (stem string, number int64) {
	if i := strings.LastIndexByte(id, '_'); i > 0 {
		if n, err := strconv.ParseUint(id[i+1:], 10, 31); err == nil {
			return id[:i], int64(n)
		}
	}
	return "", 0
}

// addPart adds what goes on with the chat in the next element, if it does.
func (c *pendingChat) addPart(next *pendingChat, series bool) bool {
	switch {
	case c.bytes+next.bytes > record.MaxBytes:
		return false
	case c.snapshot && next.snapshot && next.id == c.id && c.id != "":
		if next.number > c.number {
			c.turns, c.tools, c.number = next.turns, next.tools, next.number
		}
		return true
	case c.row && next.row && next.id == c.id:
		c.rows = append(c.rows, next)
	case !c.goesOn(next, series):
		return false
	default:
		c.turns = append(c.turns, next.turns...)
	}
	if c.tools.Len() == 0 {
		c.tools = next.tools
	}
	c.system = cmp.Or(c.system, next.system)
	c.size, c.bytes = next.size, c.bytes+next.bytes
	if !c.row {
		c.number = next.number
	}
	return true
}

// splitBytes is what a part of a split chat has at the least, but for the last: chats were split
// where they were longer than the context of a model.
const splitBytes = 2048

// goesOn reports whether the next element is the part behind this one. By the number of its first
// turn it surely is. A count of parts looks as a count of chats does: it is taken for one only in a
// file of several series, behind a part that is long enough.
func (c *pendingChat) goesOn(next *pendingChat, series bool) bool {
	if c.stem == "" || next.stem != c.stem || next.number <= c.number {
		return false
	}
	return next.number == c.number+int64(c.size) || next.number == c.number+1 && series && c.bytes >= splitBytes
}

// all are the turns of the chat with its system prompt. Rows of one message may be in any order.
func (c *pendingChat) all() (turns []spokenTurn) {
	if strings.TrimSpace(c.system) != "" {
		turns = append(turns, said("system", c.system))
	}
	rows := append([]*pendingChat{c}, c.rows...)
	slices.SortStableFunc(rows, func(a, b *pendingChat) int { return cmp.Compare(a.number, b.number) })
	for _, row := range rows {
		turns = append(turns, row.turns...)
	}
	return turns
}

// fault locates an error of the current element.
func (d *chatDecoder) fault(err error) error {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return undecoded(d.in, err, "")
	}
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		err = errKind
	}
	line, col := d.in.Place(0)
	return fault.Bad(line, col, err.Error())
}
