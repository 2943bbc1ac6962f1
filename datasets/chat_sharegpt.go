package datasets

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"reprise/trace"
)

// shareGPTReads are the fields of a [conversation] and its turns.
var shareGPTReads = []SourceField{
	fieldAt("id", "session turn parents", ""),
	fieldAt("conversations[].from|conversations[].role|conversation[].from|conversation[].role", "input_tokens blocks", decides),
	fieldAt("conversations[].value|conversations[].content|conversation[].value|conversation[].content",
		"input_tokens blocks output_tokens output_blocks", tokenised),
}

// shareGPTFormat reads conversations in the form of ShareGPT's scrapes: a JSON
// array, or JSON lines, read in memory bounded by the largest conversation. There
// are no times.
//
// Each reply becomes an entry with all before it as its messages; the entries
// of a conversation share their texts. The rules for what the scrapes hold:
//
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
//     memory.
//   - Each chat is a session of its own, known by its position and its id, since
//     ids repeat.
//   - Texts are kept as they are, with the HTML that older scrapes have.
func shareGPTFormat() Format {
	return Format{
		Name:    "sharegpt",
		reads:   shareGPTReads,
		About:   "ShareGPT conversations: conversations with their texts, in a JSON array or one a line, without times",
		Example: `[{"id":"x_0","conversations":[{"from":"human","value":"Hello"},{"from":"gpt","value":"Hi!"}]}]`,
		detect: detectObject(func(has func(string) bool) bool {
			return (has("conversations") || has("conversation")) && !hasWildChat(has) && !hasLMSYS(has)
		}),
		open: func(in *bufio.Reader, head []byte, _ Options, s *Source) (decoder, error) {
			s.info.HasText, s.info.HasSessions = true, true
			return &shareGPTDecoder{in: newJSONReader(in, head), s: s}, nil
		},
	}
}

// A shareGPTDecoder holds one chat back, since the next element may go on with it.
type shareGPTDecoder struct {
	in      records
	element int64 // of the input, from 0
	entries int64 // handed out so far
	pending *pendingChat
	err     error // met after the chat that was handed out last
	s       *Source
}

// A pendingChat is one element, or several parts of one conversation.
type pendingChat struct {
	position int64 // of its first element
	id       string
	stem     string // id without the part's number; "" when it has none
	number   int64
	size     int // turns in the last part
	turns    []spokenTurn
	bytes    int
}

// A conversation is one element. Some files spell the key without s.
type conversation[T any] struct {
	ID            json.RawMessage
	Conversations []T
	Conversation  []T
}

// A spokenTurn is one message in either spelling.
type spokenTurn struct {
	From, Role     *string
	Value, Content *string
	at             string // its time, as the source spells it
}

var (
	errTurn = errors.New("a turn is not an object with from and value, both strings")
	errRole = errors.New("a role is not one of human, user, gpt, chatgpt, bing, bard, assistant, system and tool")
	errKind = errors.New("it is not an object with a list of conversations")
	errList = errors.New("it has no list of conversations")
)

const (
	withoutReply = "conversations without a reply to a user"
	rejoined     = "parts of split chats that were put together with the part before them"
	apart        = "parts of split chats that do not follow the part before them, read alone"
)

func (d *shareGPTDecoder) continueWith(next decoder) bool {
	n, ok := next.(*shareGPTDecoder)
	if ok {
		d.in = n.in
	}
	return ok
}

func (d *shareGPTDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	if d.pending == nil && d.err == nil {
		d.pending, d.err = d.read()
	}
	if d.pending == nil {
		err := d.err
		d.err = nil
		return dst, err
	}
	var next *pendingChat
	if next, d.err = d.read(); next != nil && d.pending.addPart(next) {
		d.s.notes.count(rejoined)
		return dst, nil
	}
	if f, ok := d.err.(*fault); ok && f.stop {
		return dst, f // the pending chat may not be whole
	}
	whole := d.pending
	d.pending = next
	if next != nil && next.number > 0 {
		d.s.notes.count(apart)
	}
	messages, _, _ := joinTurns(whole.turns) // checked when they were read
	base := trace.Entry{Session: trace.NewText(strconv.FormatInt(whole.position, 10) + "/" + whole.id), Kind: "chat"}
	before := len(dst)
	dst = replies(dst, messages, base, d.entries)
	d.entries += int64(len(dst) - before)
	if len(dst) == before {
		d.s.notes.count(withoutReply)
	}
	return dst, nil
}

// read reads the next element; it is nil with an error.
func (d *shareGPTDecoder) read() (*pendingChat, error) {
	raw, err := d.in.next()
	if err != nil {
		return nil, err
	}
	c := &pendingChat{position: d.element, bytes: len(raw)}
	d.element++
	// Turns that are JSON strings are rare: only when the plain form does not fit are
	// they taken one at a time.
	var plain conversation[spokenTurn]
	var kind *json.UnmarshalTypeError
	if err = json.Unmarshal(raw, &plain); errors.As(err, &kind) {
		var mixed conversation[json.RawMessage]
		if err = json.Unmarshal(raw, &mixed); err != nil {
			return nil, d.fault(err)
		}
		plain = conversation[spokenTurn]{ID: mixed.ID}
		if plain.Conversations, err = unpackTurns(mixed.Conversations); err == nil {
			plain.Conversation, err = unpackTurns(mixed.Conversation)
		}
	}
	if c.turns = plain.Conversations; c.turns == nil {
		c.turns = plain.Conversation
	}
	if c.turns == nil && err == nil {
		err = errList
	}
	if err == nil {
		_, _, err = joinTurns(c.turns)
	}
	if err != nil {
		return nil, d.fault(err)
	}
	d.s.fields.scan(raw)
	c.id = strings.Trim(string(plain.ID), `"`)
	c.size = len(c.turns)
	if i := strings.LastIndexByte(c.id, '_'); i > 0 {
		if n, err := strconv.ParseUint(c.id[i+1:], 10, 31); err == nil {
			c.stem, c.number = c.id[:i], int64(n)
		}
	}
	return c, nil
}

// addPart adds the next part of the chat, if it is that.
func (c *pendingChat) addPart(next *pendingChat) bool {
	follows := next.number == c.number+1 || next.number == c.number+int64(c.size)
	if c.stem == "" || next.stem != c.stem || !follows || next.number == c.number || c.bytes+next.bytes > maxRecord {
		return false
	}
	c.turns = append(c.turns, next.turns...)
	c.number, c.size, c.bytes = next.number, next.size, c.bytes+next.bytes
	return true
}

// unpackTurns decodes turns that may be JSON strings.
func unpackTurns(raw []json.RawMessage) ([]spokenTurn, error) {
	if raw == nil {
		return nil, nil
	}
	turns := make([]spokenTurn, len(raw))
	for i, b := range raw {
		var s string
		if json.Unmarshal(b, &s) == nil {
			b = []byte(s)
		}
		if json.Unmarshal(b, &turns[i]) != nil {
			return nil, errTurn
		}
	}
	return turns, nil
}

// fault locates an error of the current element.
func (d *shareGPTDecoder) fault(err error) error {
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
		err = errKind
	}
	line, col := d.in.place(0)
	return bad(line, col, err.Error())
}

// joinTurns makes messages of turns, consecutive replies as one. last tells for each
// message its turn, the last one of several.
func joinTurns(turns []spokenTurn) (messages []trace.Message, last []int, err error) {
	messages, last = make([]trace.Message, 0, len(turns)), make([]int, 0, len(turns))
	var said []string // the replies since the last message
	flush := func(end int) {
		if said != nil {
			messages = append(messages, trace.Message{Role: trace.Assistant, Content: trace.NewText(strings.Join(said, ""))})
			last = append(last, end-1)
			said = nil
		}
	}
	for i, t := range turns {
		from, text := cmp.Or(t.From, t.Role), cmp.Or(t.Value, t.Content)
		if from == nil || text == nil {
			return nil, nil, errTurn
		}
		role, ok := trace.RoleOf(*from)
		if !ok {
			return nil, nil, errRole
		}
		if role == trace.Assistant {
			said = append(said, *text)
			continue
		}
		flush(i)
		messages = append(messages, trace.Message{Role: role, Content: trace.NewText(*text)})
		last = append(last, i)
	}
	flush(len(turns))
	return messages, last, nil
}

// replies appends an entry like base for each reply after a user's message.
// The first of them is at position first of the source.
func replies(dst []trace.Entry, messages []trace.Message, base trace.Entry, first int64) []trace.Entry {
	user, turn := false, int32(0)
	for k, m := range messages {
		user = user || m.Role == trace.User
		if m.Role != trace.Assistant || !user {
			continue
		}
		e := base
		e.Turn, e.Messages, e.Reply = trace.Ptr(turn), messages[:k:k], trace.Ptr(m.Content)
		if turn > 0 {
			e.Parents = []int64{first + int64(turn) - 1}
		}
		dst = append(dst, e)
		turn++
	}
	return dst
}
