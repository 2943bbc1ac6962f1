package datasets

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/talk"
	"reprise/trace"
)

// A conversation is one element. Some files spell the key without s.
type conversation[T any] struct {
	ID            json.RawMessage
	Conversations []T
	Conversation  []T
	System        string
	Tools         json.RawMessage
	Functions     json.RawMessage
}

// A spokenTurn is one message in either spelling.
type spokenTurn struct {
	From, Role     *string
	Value, Content *string
	ToolCalls      json.RawMessage `json:"tool_calls"` // of the plain form, which does not read them
	at             string          // its time, as the source spells it
	calls          []any           // of tools, see [talk.CallsIn]
}

// plain reports that the turn has a speaker and a text, and no calls beside them.
func (t spokenTurn) plain() bool {
	return (t.From != nil || t.Role != nil) && (t.Value != nil || t.Content != nil) && len(t.ToolCalls) == 0
}

// said makes a turn.
func said(role, text string) spokenTurn { return spokenTurn{From: &role, Value: &text} }

var (
	errTurn = errors.New("a turn is not an object with from and value, both strings")
	errRole = errors.New("a role is not one of human, user, gpt, chatgpt, bing, bard, assistant, system, tool, " +
		"function_call and observation")
	errKind  = errors.New("it is not an object with a list of conversations")
	errList  = errors.New("it has no list of conversations")
	errTools = errors.New("tools: " + talk.WantTools)
)

// A pendingChat is one element, or several parts of one conversation.
type pendingChat struct {
	position int64 // of its first element
	id       string
	stem     string // id without the part's number; "" when it has none
	number   int64
	size     int // turns in the last part
	system   string
	turns    []spokenTurn
	tools    trace.Text
	asks     []chatAsk // where requests are, in a chat without answers
	bytes    int

	row      bool           // it is one message of a chat
	rows     []*pendingChat // the others of the chat, in the elements behind it
	snapshot bool           // it is all of the chat up to number, and a later one is more
}

// A chatAsk is a request in a chat that is recorded without its answers.
type chatAsk struct {
	before int // turns
	input  *int32
}

// chatLists are the keys under which an object has the turns of a chat, and
// pairKeys those of a question and of its answer where a turn is both.
var (
	chatLists = []string{"conversations", "conversation", "messages"}
	pairKeys  = [2][]string{{"human", "user", "input", "question"}, {"assistant", "gpt", "bot", "output", "answer"}}
)

// parseChat reads what one element tells of a chat, whatever its form; raw is the element as it stands:
//
//   - an object with a list of turns, perhaps with a system prompt and tools beside it;
//   - such a list itself;
//   - a question and its answer, in an object of both or in a list of two texts, or an instruction and its answer;
//   - one message, whose chat its conversation_id names, or that all others share;
//   - a list of rounds, each with its new messages and without an answer.
func parseChat(v any, raw []byte) (c pendingChat, err error) {
	if list, ok := v.([]any); ok {
		if roundsOf(list) {
			return c, c.addRounds(list)
		}
		c.turns, err = turnsOf(list)
		return c, err
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return c, errKind
	}
	for _, key := range []string{"id", "conversation_id"} {
		c.id = cmp.Or(c.id, row.Plain(fields[key]))
	}
	c.system = row.Plain(fields["system"])
	var b talk.Prompt
	for _, key := range []string{"tools", "functions"} {
		b.Source = func() []byte { return row.WrittenAt(raw, key) }
		if tools := fields[key]; tools != nil && talk.SetTools(&b, tools) != "" {
			return c, errTools
		}
	}
	c.tools = b.Entry.Tools
	var found any
	for _, key := range chatLists {
		if found == nil {
			found = fields[key]
		}
	}
	switch list, isList := found.([]any); {
	case isList:
		c.turns, err = turnsOf(list)
		c.snapshot = fields["conversation_idx"] != nil
		at, _ := countOf(row.Plain(fields["conversation_idx"]))
		c.number = int64(at)
	case found != nil:
		err = errKind
	case isTurn(fields):
		c.turns, err = turnOf(fields)
		c.row, c.id = true, row.Plain(fields["conversation_id"])
		at, _ := countOf(row.Plain(fields["turn"]))
		c.number = int64(at)
	default:
		if c.turns = pairOf(fields); c.turns == nil {
			err = errList
		}
		c.system = "" // which is in the pair
	}
	return c, err
}

// isTurn reports whether an object is one message.
func isTurn(fields map[string]any) bool {
	return row.IsString(fields["role"]) &&
		(fields["content"] != nil || fields["tool_calls"] != nil || fields["tool_results"] != nil) ||
		row.IsString(fields["from"]) && row.IsString(fields["value"])
}

// turnsOf reads a list of turns: objects, those as JSON in strings, pairs, or texts of two
// that speak in turn.
func turnsOf(list []any) (turns []spokenTurn, err error) {
	for i, m := range list {
		if text, isText := m.(string); isText {
			if inner, _, ok := row.DecodeJSON([]byte(text)); ok {
				m = inner
			} else if texts := slices.ContainsFunc(list, func(m any) bool { return !row.IsString(m) }); !texts &&
				len(list) > 1 {
				turns = append(turns, said([]string{"user", "assistant"}[i%2], text))
				continue
			}
		}
		var more []spokenTurn
		switch m := m.(type) {
		case []any:
			if len(m) == 2 && row.IsString(m[0]) && row.IsString(m[1]) {
				more = []spokenTurn{said("user", m[0].(string)), said("assistant", m[1].(string))}
			}
		case map[string]any:
			if isTurn(m) || m["role"] != nil || m["from"] != nil {
				more, err = turnOf(m)
			} else {
				more = pairOf(m)
			}
		}
		if more == nil || err != nil {
			return nil, cmp.Or(err, errTurn)
		}
		turns = append(turns, more...)
	}
	return turns, nil
}

// turnOf reads one message. A list of the results of tools is a message for each.
func turnOf(fields map[string]any) ([]spokenTurn, error) {
	role := cmp.Or(row.Plain(fields["from"]), row.Plain(fields["role"]))
	if results, ok := fields["tool_results"].([]any); ok {
		var turns []spokenTurn
		for _, result := range results {
			text, isText := (&talk.Prompt{}).Text(result)
			if !isText {
				return nil, errTurn
			}
			turns = append(turns, said(role, text))
		}
		return turns, nil
	}
	text, ok := (&talk.Prompt{}).Text(talk.FirstOf(fields["value"], fields["content"]))
	calls := talk.CallsIn(fields)
	if !ok || fields["value"] == nil && fields["content"] == nil && len(calls) == 0 {
		return nil, errTurn
	}
	turn := said(role, text)
	turn.calls, turn.at = calls, row.Plain(fields["timestamp"])
	return []spokenTurn{turn}, nil
}

// pairOf reads a question with its answer, and the system prompt of both; nil where an object is
// no such pair.
func pairOf(fields map[string]any) (turns []spokenTurn) {
	if system := row.Plain(fields["system"]); strings.TrimSpace(system) != "" {
		turns = append(turns, said("system", system))
	}
	if asked, answer, ok := instructionOf(fields); ok {
		history, _ := fields["history"].([]any) // of LLaMA-Factory
		earlier, _ := turnsOf(history)
		return append(append(turns, earlier...), said("user", asked), said("assistant", answer))
	}
	before := len(turns)
	for side, role := range []string{"user", "assistant"} {
		for _, key := range pairKeys[side] {
			if text, ok := fields[key].(string); ok && len(turns) == before+side {
				turns = append(turns, said(role, text))
			}
		}
	}
	if len(turns) != before+2 {
		return nil
	}
	return turns
}

// instructionOf is an instruction with the text that it is about, and the answer, as Alpaca and Dolly have them.
func instructionOf(fields map[string]any) (asked, answer string, ok bool) {
	asked, ok = fields["instruction"].(string)
	for _, key := range []string{"input", "context"} {
		if about := row.Plain(fields[key]); about != "" {
			asked += "\n\n" + about
		}
	}
	answer = cmp.Or(row.Plain(fields["output"]), row.Plain(fields["response"]))
	return asked, answer, ok && answer != ""
}

// roundsOf reports whether a list is of rounds with messages.
func roundsOf(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(round any) bool {
		messages, _ := row.Lookup(round, "messages")
		return !talk.AreMessages(messages)
	})
}

// addRounds adds rounds, in each of which one request is made. Their answers are not recorded.
func (c *pendingChat) addRounds(list []any) error {
	for _, round := range list {
		fields := round.(map[string]any)
		turns, err := turnsOf(fields["messages"].([]any))
		if err != nil {
			return err
		}
		c.turns = append(c.turns, turns...)
		ask := chatAsk{before: len(c.turns)}
		if n, ok := countOf(row.Plain(fields["prompt_tokens"])); ok {
			ask.input = &n
		}
		c.asks = append(c.asks, ask)
	}
	return nil
}

// callRoles are those of messages that are calls of tools, as JSON.
var callRoles = []string{"function_call", "tool_call"}

// callsInText takes the calls out of a message that is nothing but them. Any other text stays.
func callsInText(text string) (calls []any, rest string) {
	v, _, _ := row.DecodeJSON([]byte(text))
	calls, _ = v.([]any)
	if _, one := v.(map[string]any); one {
		calls = []any{v}
	}
	if len(calls) == 0 {
		return nil, text
	}
	return calls, ""
}

// joinTurns makes messages of turns, consecutive replies as one. last tells for each
// message its turn, the last one of several.
func joinTurns(turns []spokenTurn) (messages []trace.Message, last []int, err error) {
	messages, last = make([]trace.Message, 0, len(turns)), make([]int, 0, len(turns))
	var said []string // the replies since the last message
	var calls []any
	flush := func(end int) {
		if said == nil {
			return
		}
		reply := trace.Message{Role: trace.Assistant, Content: trace.NewText(strings.Join(said, "")),
			Calls: talk.ShapedCalls(calls)}
		messages, last = append(messages, reply), append(last, end-1)
		said, calls = nil, nil
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
			spoken, made := *text, t.calls
			if slices.Contains(callRoles, strings.ToLower(*from)) {
				made, spoken = callsInText(spoken)
			}
			calls = append(calls, made...)
			said = append(said, spoken)
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
		e.Turn, e.Messages, e.Reply, e.ReplyCalls = trace.Ptr(turn), messages[:k:k], trace.Ptr(m.Content), m.Calls
		if turn > 0 {
			e.Parents = []int64{first + int64(turn) - 1}
		}
		dst = append(dst, e)
		turn++
	}
	return dst
}

// asked appends an entry like base for each request of a chat without answers.
func (c *pendingChat) asked(dst []trace.Entry, base trace.Entry, first int64) []trace.Entry {
	all := c.all()
	for turn, ask := range c.asks {
		e := base
		e.Messages, _, _ = joinTurns(all[:len(all)-len(c.turns)+ask.before]) // checked when they were read
		e.Turn, e.InputTokens = trace.Ptr(int32(turn)), ask.input
		if turn > 0 {
			e.Parents = []int64{first + int64(turn) - 1}
		}
		dst = append(dst, e)
	}
	return dst
}
