package datasets

import (
	"bytes"
	"encoding/json"
	"slices"

	"reprise/datasets/internal/input"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// claudeFormat reads the session files of Claude Code
// (~/.claude/projects/PROJECT/SESSION.jsonl, and those of sub-agents in
// SESSION/subagents), one or a folder of them. All are read before the first entry:
// memory is about 300 bytes for each record, whatever its text.
//
//   - Usage leaves cached tokens out of input_tokens; the input is the sum of its three parts.
//   - A call is a message.id of a requestId. It has a record for each part of its
//     answer, and copies in the files of sessions that were resumed or forked. Its
//     output is the largest that one of them counts.
//   - A call arrives at the newest of what it waited for: a text of the user or the
//     results of tools. It ends at its last record. The log has no time of a first
//     token.
//   - A sub-agent belongs to the session of its caller. Its first call waits for the
//     call that spawned it, and the call after its result waits for its last one,
//     unless it runs in the background.
//   - After a compaction the prompt is a new one; the call that made the summary is
//     not in the log, nor are system prompts and definitions of tools.
func claudeFormat() Format {
	f := Format{detect: isClaude}.described("claude-code")
	f = f.ofSessions("*.jsonl", newClaudeDecoder)
	f.detectFiles = func(files []File) bool {
		some := false
		for _, f := range sessionFiles(files, "*.jsonl") {
			head, err := input.Head(f)
			if err != nil || !isClaude(sniff.New(head)) && !isClaudeAside(head) {
				return false
			}
			some = some || isClaude(sniff.New(head))
		}
		return some
	}
	return f
}

const (
	noteClaudeArrival = "a call arrives with the message or the tool result that it answers and ends with its last " +
		"record: there is no time to first token"
	noteClaudeLengths = "lengths are from usage: the log has no system prompts and no tools"
	noteClaudeCopies  = "calls that several sessions have, kept once"
	noteClaudeLocal   = "messages that the client made itself or that failed, left out: they have no usage"
	noteClaudeOutput  = "outputs whose length is not in the log, estimated as a token for each 3 bytes"
	noteClaudeCompact = "calls after a compaction, which the call that made the summary is missing before"
	noteClaudeAlone   = "sub-agents whose caller is not in the log"
	noteClaudeOverlap = "calls that did not wait for the one before them to end"
)

// isClaude tells by the keys that every message has, also where a first record is
// longer than the head.
func isClaude(head *sniff.Sample) bool {
	return slices.ContainsFunc(head.Lines(),
		func(line *sniff.Record) bool { return line.Has("parentUuid") && line.Has("isSidechain") })
}

// isClaudeAside tells files that stand beside sessions: titles without messages, and
// the journals of workflows.
func isClaudeAside(head []byte) bool {
	for _, line := range record.HeadLines(head) {
		var r struct{ Type, LeafUUID, Key, SessionID, MessageID string }
		if len(line) < len(head) && json.Unmarshal(line, &r) != nil ||
			r.Type != "" && r.LeafUUID+r.Key+r.SessionID+r.MessageID == "" {
			return false
		}
	}
	return true
}

// A claudeRecord is a line.
type claudeRecord struct {
	Type          string           `json:"type"`
	UUID          string           `json:"uuid"`
	Parent        string           `json:"parentUuid"`
	LogicalParent string           `json:"logicalParentUuid"` // over a compaction
	Session       string           `json:"sessionId"`
	Agent         string           `json:"agentId"`
	Sidechain     bool             `json:"isSidechain"`
	Failed        bool             `json:"isApiErrorMessage"`
	Summary       bool             `json:"isCompactSummary"`
	Request       string           `json:"requestId"`
	Timestamp     string           `json:"timestamp"`
	Message       claudeMessage    `json:"message"`
	Result        claudeToolResult `json:"toolUseResult"`
}

// A claudeMessage is in the shape of the API.
type claudeMessage struct {
	ID      string        `json:"id"`
	Model   string        `json:"model"`
	Stop    string        `json:"stop_reason"`
	Content claudeContent `json:"content"`

	Usage *tokenusage.Counts `json:"usage"`
}

// claudeContent is a list of blocks, or a text for a list of one.
type claudeContent []claudeBlock

type claudeBlock struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Result   string          `json:"tool_use_id"`
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	Input    json.RawMessage `json:"input"`
}

// A claudeToolResult is what a tool told the client, where that is of an agent.
type claudeToolResult struct {
	Agent  string `json:"agentId"`
	Run    string `json:"runId"`
	Status string `json:"status"`
}

// UnmarshalJSON takes an object, and leaves out anything else.
func (m *claudeMessage) UnmarshalJSON(raw []byte) error {
	type plain claudeMessage
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return json.Unmarshal(raw, (*plain)(m))
}

// UnmarshalJSON takes a text or a list, and leaves out anything else.
func (c *claudeContent) UnmarshalJSON(raw []byte) error {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		*c = claudeContent{{Type: "text"}}
		return json.Unmarshal(raw, &(*c)[0].Text)
	case len(raw) > 0 && raw[0] == '[':
		return json.Unmarshal(raw, (*[]claudeBlock)(c))
	}
	return nil
}

// UnmarshalJSON takes an object of an agent, and leaves out anything else: results
// may be megabytes.
func (r *claudeToolResult) UnmarshalJSON(raw []byte) error {
	type plain claudeToolResult
	if raw[0] == '{' && (bytes.Contains(raw, []byte(`"agentId"`)) || bytes.Contains(raw, []byte(`"runId"`))) {
		_ = json.Unmarshal(raw, (*plain)(r)) // a result of another tool may have such fields too
	}
	return nil
}

// gather takes a record.
func (d *claudeDecoder) gather(raw []byte) error {
	var r claudeRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if r.UUID == "" || r.Timestamp == "" {
		return nil // titles, modes, snapshots of files
	}
	at, err := d.instant(raw, "timestamp", r.Timestamp)
	if err != nil {
		return err
	}
	used := r.Type == "assistant" && r.Message.Usage != nil
	var counted agentCall
	switch u := r.Message.Usage; {
	case used && (r.Failed || r.Message.Model == "<synthetic>" || u.IsZero() && !u.Invalid()):
		d.s.notes.Count(noteClaudeLocal)
		used = false
	case used:
		if err := d.use(&counted, raw, "message.usage", u, tokenusage.Exclusive); err != nil {
			return err
		}
	}
	n, known := d.addNode(&r, at)
	if used {
		d.addCall(&r, &counted, n, at, known)
	}
	return nil
}

// addCall adds the part of a call that a record has, with what it counts.
func (d *claudeDecoder) addCall(r *claudeRecord, counted *agentCall, n int32, at int64, known bool) {
	id := r.Message.ID
	if id == "" {
		id = r.UUID
	}
	i, again := d.byID[id]
	if again && d.extra[i].request != r.Request && !r.Sidechain && !d.extra[i].sidechain {
		id += "\x00" + r.Request // another call, of a provider that numbers messages anew
		i, again = d.byID[id]
	}
	if !again {
		i = int32(len(d.calls))
		d.byID[id] = i
		line, _ := d.in.Place(0)
		d.calls = append(d.calls, agentCall{session: d.name(r.Session), model: d.name(r.Message.Model), end: at,
			output: -1, reasoning: -1, cached: -1, file: d.s.file, line: line})
		d.extra = append(d.extra, claudeCall{first: n, session: r.Session, request: r.Request, sidechain: r.Sidechain})
	}
	c, x := &d.calls[i], &d.extra[i]
	d.nodes[n].call = i
	if known || x.request != r.Request || x.session != r.Session {
		if !x.copied {
			d.s.notes.Count(noteClaudeCopies)
		}
		x.copied = true
		if !x.sidechain || r.Sidechain {
			return
		}
		// The main conversation has it, and the aside was a copy.
		x.first, x.sidechain, x.request, c.end = n, false, r.Request, at
	}
	if counted.output >= c.output {
		c.input, c.cached, c.output, c.reasoning = counted.input, counted.cached, counted.output, counted.reasoning
	}
	c.end = max(c.end, at)
	if r.Message.Stop != "" {
		c.finish = trace.ClosedFinish(r.Message.Stop)
	}
	for _, b := range r.Message.Content {
		x.bytes += int64(len(b.Text) + len(b.Thinking) + len(b.Input))
		if b.Type == "tool_use" && b.ID != "" {
			d.addToolUse(i, &b)
		}
	}
}
