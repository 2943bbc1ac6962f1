package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// geminiFormat reads the session files of Gemini CLI
// (~/.gemini/tmp/PROJECT/chats/session-….jsonl, those of sub-agents in folders beside
// them), one or a folder of them. All are read before the first entry: memory is about
// 300 bytes for each message.
//
//   - A call is a message of type gemini with tokens. A message that is written again
//     replaces the one with its id.
//   - The input holds the cached tokens; thoughts stand beside the output, and are added.
//   - A call arrives with the message of the user before it, or the last result of the
//     tools of the call before it. It ends at its own time.
//   - A message after a rewind follows the one that was gone back to.
//   - Files of before 2026 are one object, with a list of the messages.
func geminiFormat() Format {
	f := Format{detect: isGemini}.described("gemini-cli")
	f = f.ofSessions("*.jsonl|session-*.json", openGemini)
	f.open = func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
		first, _, _ := bytes.Cut(head, []byte("\n"))
		if string(bytes.TrimSpace(first)) == "{" { // an object over many lines
			return recordsOpener(openGemini).file(in, head, o, s)
		}
		return recordsOpener(openGemini).lines(in, head, o, s)
	}
	return f
}

func openGemini(in record.Reader, o Options, s *Source) decoder {
	d := &geminiDecoder{agentLog: newAgentLog(in, o, s)}
	d.agentLog.gather = d.gather
	s.notes.SayOnce(noteAgentArrival)
	return d
}

// isGemini tells by what a file says of itself, or by a message with tokens.
func isGemini(head *sniff.Sample) bool {
	return slices.ContainsFunc(append(head.Lines(), head.Records()...), func(line *sniff.Record) bool {
		return line.Has("projectHash") && line.Has("sessionId") ||
			line.Has("tokens") && line.Has("id") && bytes.Contains(line.Raw, []byte(`"type":"gemini"`))
	})
}

// A geminiRecord is a line: what the file is, a message, or a change of what was before.
type geminiRecord struct {
	Session   string       `json:"sessionId"`
	Project   string       `json:"projectHash"`
	Kind      string       `json:"kind"`
	Start     string       `json:"startTime"`
	ID        string       `json:"id"`
	Timestamp string       `json:"timestamp"`
	Type      string       `json:"type"`
	Model     string       `json:"model"`
	Rewind    string       `json:"$rewindTo"`
	Tools     []geminiTool `json:"toolCalls"`

	Tokens   *tokenusage.Counts `json:"tokens"`
	Messages []json.RawMessage  `json:"messages"`
}

// A memberPlace is a reader whose current record holds a message at an offset.
type memberPlace struct {
	record.Reader
	at int
}

func (m memberPlace) Place(offset int) (line, col int64) { return m.Reader.Place(m.at + offset) }

type geminiTool struct {
	Timestamp string `json:"timestamp"`
}

type geminiDecoder struct {
	*agentLog
	file  string
	begun bool
	byID  map[string]*geminiMessage
	last  *geminiMessage // nil before the first
}

// A geminiMessage is what comes after it has to know of a message.
type geminiMessage struct {
	at     int64 // when the next call could begin
	gap    gapKind
	call   int32 // the latest; -1 for none
	own    bool  // it is the message's
	before *geminiMessage
}

// begin takes what a file says of itself, and its messages where it is one object.
func (d *geminiDecoder) begin(t *agentThread, r *geminiRecord, raw []byte) (err error) {
	t.id, t.session = r.Session, r.Session
	// A sub-agent is in a folder that is named for its parent.
	if folders := strings.Split(strings.ReplaceAll(d.file, `\`, "/"), "/"); len(folders) > 1 && r.Kind == "subagent" {
		t.parent, t.spawned = folders[len(folders)-2], true
	}
	t.born, err = d.instant(raw, "startTime", r.Start)
	within, offset := d.in, 0
	for _, message := range r.Messages {
		offset += bytes.Index(raw[offset:], message)
		if d.in = (memberPlace{within, offset}); err == nil {
			err = d.gather(message)
		}
	}
	d.in = within
	return err
}

// gather takes a line.
func (d *geminiDecoder) gather(raw []byte) error {
	var r geminiRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	if len(r.Messages) == 0 {
		d.s.fields.Scan(raw)
	}
	if !d.begun || d.file != d.s.file {
		d.begun, d.file, d.byID, d.last = true, d.s.file, map[string]*geminiMessage{}, nil
		d.threads = append(d.threads, &agentThread{session: d.file})
	}
	t := d.threads[len(d.threads)-1]
	switch {
	case r.Project != "" && t.id == "":
		return d.begin(t, &r, raw)
	case r.Rewind != "":
		if m, ok := d.byID[r.Rewind]; ok {
			d.last = m
		}
		return nil
	case r.Type == "" || r.ID == "" || r.Type != "user" && r.Type != "gemini":
		return nil
	}
	at, err := d.instant(raw, "timestamp", r.Timestamp)
	if err != nil {
		return err
	}
	known, again := d.byID[r.ID]
	m := geminiMessage{at: at, gap: thinkGap, before: d.last, call: -1}
	if d.last != nil {
		m.call = d.last.call
	}
	if again { // it is written again, with more
		m.before, m.call, m.own = known.before, known.call, known.own
	}
	if u := r.Tokens; r.Type == "gemini" && u != nil {
		var counted agentCall
		if err := d.use(&counted, raw, "tokens", u, tokenusage.Inclusive); err != nil {
			return err
		}
		if !m.own {
			c := agentCall{session: d.name(t.session), arrival: at, end: at}
			if m.before != nil && m.before.at <= at {
				if c.arrival, c.gap = m.before.at, m.before.gap; c.gap == toolGap {
					c.join = c.arrival
				}
			}
			d.addTo(t, c)
			d.calls[len(d.calls)-1].parents = nil // it follows what was gone back to
			if m.call >= 0 {
				d.calls[len(d.calls)-1].parents = []int32{m.call}
			}
			m.call, m.own = int32(len(d.calls)-1), true
		}
		c := &d.calls[m.call]
		c.model, c.input, c.cached = d.name(r.Model), counted.input, counted.cached
		c.output, c.reasoning = counted.output, counted.reasoning
	}
	for _, tool := range r.Tools {
		done, err := d.instant(raw, "toolCalls", tool.Timestamp)
		if err != nil {
			return err
		}
		m.at, m.gap = max(m.at, done), toolGap
	}
	d.byID[r.ID], d.last = &m, &m
	return nil
}
