package datasets

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"reprise/trace"
)

// shareGPTFormat reads conversations in the form of ShareGPT's scrapes: a JSON
// array, read in memory bounded by its largest element. There are no times.
//
// Each reply becomes an entry with all before it as its messages; the entries
// of a conversation share their texts. The rules for what the scrapes hold:
//
//   - Replies before the first message of a user are context, not requests: the
//     conversation was cut.
//   - Consecutive replies are one turn, their texts put end to end, both as the
//     reply and in the messages of later turns.
//   - A message at the end that no reply follows yields nothing.
//   - Every element is a session of its own, known by its position and its id:
//     ids repeat, and chats that were split into several elements (ids a_0,
//     a_1…) are not put together again.
func shareGPTFormat() Format {
	return Format{
		Name:    "sharegpt",
		About:   "ShareGPT conversations: a JSON array of conversations with their texts, without times",
		Example: `[{"id":"x_0","conversations":[{"from":"human","value":"Hello"},{"from":"gpt","value":"Hi!"}]}]`,
		detect: func(head []byte) bool {
			head = bytes.TrimSpace(head)
			if len(head) == 0 || head[0] != '[' {
				return false
			}
			for _, key := range objectKeys(bytes.TrimSpace(head[1:])) {
				if key == "conversations" || key == "conversation" {
					return true
				}
			}
			return false
		},
		open: func(in *bufio.Reader, _ []byte, _ Options, s *Source) (decoder, error) {
			s.info.HasText, s.info.HasSessions = true, true
			return &shareGPTDecoder{in: newArrayReader(in), s: s}, nil
		},
	}
}

type shareGPTDecoder struct {
	in      *arrayReader
	element int64 // of the array, from 0
	entries int64 // handed out so far
	s       *Source
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
}

var (
	errTurn = errors.New("a turn is not an object with from and value, both strings")
	errRole = errors.New("a role is not one of human, user, gpt, chatgpt, bing, bard, assistant, system and tool")
	errKind = errors.New("it is not an object with a list of conversations")
	errList = errors.New("it has no list of conversations")
)

func (d *shareGPTDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.next()
	if err != nil {
		return dst, err
	}
	position := d.element
	d.element++
	id, turns, err := decodeConversation(raw)
	if err != nil {
		return dst, d.fault(err)
	}
	messages, err := join(turns)
	if err != nil {
		return dst, d.fault(err)
	}
	before := len(dst)
	dst = d.turns(dst, messages, trace.NewText(strconv.FormatInt(position, 10)+"/"+id))
	if len(dst) == before {
		d.s.notes.count("conversations without a reply to a user")
	}
	return dst, nil
}

// decodeConversation decodes an element. Turns that are JSON strings are rare:
// only when the plain form does not fit are they taken one at a time.
func decodeConversation(raw []byte) (id string, turns []spokenTurn, err error) {
	var plain conversation[spokenTurn]
	var kind *json.UnmarshalTypeError
	if err = json.Unmarshal(raw, &plain); errors.As(err, &kind) {
		var mixed conversation[json.RawMessage]
		if err = json.Unmarshal(raw, &mixed); err != nil {
			return "", nil, err
		}
		plain = conversation[spokenTurn]{ID: mixed.ID}
		if plain.Conversations, err = unpack(mixed.Conversations); err == nil {
			plain.Conversation, err = unpack(mixed.Conversation)
		}
	}
	turns = plain.Conversations
	if turns == nil {
		turns = plain.Conversation
	}
	if turns == nil && err == nil {
		err = errList
	}
	return strings.Trim(string(plain.ID), `"`), turns, err
}

// unpack decodes turns that may be JSON strings.
func unpack(raw []json.RawMessage) ([]spokenTurn, error) {
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
		return bad(line, col, "it is not valid JSON")
	case errors.As(err, &kind):
		err = errKind
	}
	line, col := d.in.place(0)
	return bad(line, col, err.Error())
}

// join makes messages of turns, consecutive replies as one.
func join(turns []spokenTurn) ([]trace.Message, error) {
	messages := make([]trace.Message, 0, len(turns))
	var replies []string // those since the last message
	flush := func() {
		if replies != nil {
			messages = append(messages, trace.Message{Role: trace.Assistant, Content: trace.NewText(strings.Join(replies, ""))})
			replies = nil
		}
	}
	for _, t := range turns {
		from, text := cmp.Or(t.From, t.Role), cmp.Or(t.Value, t.Content)
		if from == nil || text == nil {
			return nil, errTurn
		}
		role, ok := roleOf(*from)
		if !ok {
			return nil, errRole
		}
		if role == trace.Assistant {
			replies = append(replies, *text)
			continue
		}
		flush()
		messages = append(messages, trace.Message{Role: role, Content: trace.NewText(*text)})
	}
	flush()
	return messages, nil
}

// turns appends an entry for each reply behind a user's message.
func (d *shareGPTDecoder) turns(dst []trace.Entry, messages []trace.Message, session trace.Text) []trace.Entry {
	user, turn := false, int32(0)
	for k, m := range messages {
		user = user || m.Role == trace.User
		if m.Role != trace.Assistant || !user {
			continue
		}
		e := trace.Entry{
			Session:  session,
			Turn:     trace.Ptr(turn),
			Messages: messages[:k:k],
			Reply:    trace.Ptr(m.Content),
			Kind:     "chat",
		}
		if turn > 0 {
			e.Parents = []int64{d.entries - 1}
		}
		dst = append(dst, e)
		d.entries++
		turn++
	}
	return dst
}
