package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// codexFormat reads the session files of Codex CLI
// (~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl, which may be compressed), one or a
// folder of them. All are read before the first entry: memory is about 300 bytes for
// each call of a model.
//
//   - A call is a usage: a token_usage_record or, in older files, a token_count whose
//     total is another than the one before. Its input holds the cached tokens, and its
//     output the reasoning.
//   - A call arrives at the newest of what it waited for: a message of the user, the
//     results of tools, or the turn_context that is written before it. It ends at the
//     last part of its answer. The file has no time of a first token.
//   - A file that was forked begins with a copy of another's records, under new times.
//     They are told by their ordinals or their turns, and left out.
//   - A sub-agent has a file of its own, and belongs to the session of its caller. Its
//     first call waits for the one of the caller that ended before it began, and the
//     call after the caller waited for agents waits for the last of each that had ended.
//   - After a compaction the prompt is a new one; the usage of the call that made the
//     summary is not in most files.
func codexFormat() Format {
	f := Format{detect: isCodex}.described("codex")
	f = f.ofSessions("*.jsonl", newCodexDecoder)
	f.open = recordsOpener(newCodexDecoder).lines
	return f
}

// codexTypes are those of a line.
var codexTypes = []string{
	"session_meta", "response_item", "event_msg", "turn_context", "compacted", "token_usage_record", "world_state",
	"inter_agent_communication", "inter_agent_communication_metadata", "retained_context", "realtime_item",
}

// isCodex tells by the type of a line with a payload, which may be longer than the head.
func isCodex(head *sniff.Sample) bool {
	return slices.ContainsFunc(head.Lines(), func(line *sniff.Record) bool {
		var r codexRecord
		if !line.Has("payload") {
			return false
		}
		if json.Unmarshal(line.Raw, &r) == nil {
			return slices.Contains(codexTypes, r.Type) && len(r.Payload) > 0 && r.Payload[0] == '{'
		}
		var kind string
		dec := json.NewDecoder(bytes.NewReader(line.Raw))
		for t, err := dec.Token(); err == nil && dec.More(); t, err = dec.Token() {
			switch t {
			case json.Delim('{'):
			case "timestamp", "ordinal":
				_, err = dec.Token()
			case "type":
				t, err = dec.Token()
				kind, _ = t.(string)
			case "payload":
				return slices.Contains(codexTypes, kind)
			default:
				return false
			}
			if err != nil {
				break
			}
		}
		return false
	})
}

const (
	noteCodexLengths = "lengths are from usage: the log has no tools"
	noteCodexCopied  = "calls that a fork or a sub-agent copied from another session, left out"
	noteCodexTwice   = "calls that are in two files, kept once"
	noteCodexCompact = "calls after a compaction, which the call that made the summary is missing before"
)

// A codexRecord is a line. What is read of its payload depends on its type.
type codexRecord struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Ordinal   *int64          `json:"ordinal"`
	Payload   json.RawMessage `json:"payload"`
}

type codexMeta struct {
	ID          string          `json:"id"`
	Session     string          `json:"session_id"`
	Forked      string          `json:"forked_from_id"`
	Parent      string          `json:"parent_thread_id"`
	Timestamp   string          `json:"timestamp"`
	Source      json.RawMessage `json:"source"`
	Begins      *int64          `json:"subagent_history_start_ordinal"`
	ForkedFrom  *int64          `json:"forked_from_ordinal_exclusive"`
	HistoryBase *struct {
		End *int64 `json:"end_ordinal_exclusive"`
	} `json:"history_base"`
}

// A codexEvent is any other payload.
type codexEvent struct {
	Type     string             `json:"type"`
	Role     string             `json:"role"`
	Name     string             `json:"name"`
	Call     string             `json:"call_id"`
	Turn     string             `json:"turn_id"`
	Started  json.RawMessage    `json:"started_at"`
	Model    string             `json:"model"`
	Thread   string             `json:"thread_id"`
	Response string             `json:"response_id"`
	Usage    *tokenusage.Counts `json:"usage"`
	Info     *struct {
		Total *tokenusage.Counts `json:"total_token_usage"`
		Last  *tokenusage.Counts `json:"last_token_usage"`
	} `json:"info"`
}

// gather takes a record.
func (d *codexDecoder) gather(raw []byte) error {
	var r codexRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if d.f == nil || d.f.name != d.s.file {
		d.f = &codexFile{name: d.s.file, waits: map[string]bool{}, thread: &agentThread{session: d.s.file}}
		d.threads = append(d.threads, d.f.thread)
	}
	if r.Type == "compacted" || !slices.Contains(codexTypes, r.Type) {
		r.Payload = nil // of a compaction it holds the records of calls before
	}
	at, err := d.instant(raw, "timestamp", r.Timestamp)
	if err != nil {
		return err
	}
	if r.Type == "session_meta" {
		var m codexMeta
		if json.Unmarshal(r.Payload, &m) != nil || m.ID == "" {
			return d.bad(raw, "payload", "payload: want the id of the session, and other fields of their kinds")
		}
		d.beginThread(&m, at)
		return nil
	}
	var e codexEvent
	if r.Payload != nil && json.Unmarshal(r.Payload, &e) != nil {
		return d.bad(raw, "payload", "payload: a value is not of its kind")
	}
	f := d.f
	if f.numbered = f.cut != nil && r.Ordinal != nil; f.numbered {
		f.copied = *r.Ordinal < *f.cut
	}
	switch kind := r.Type + " " + e.Type; {
	case r.Type == "turn_context":
		f.model = d.name(e.Model)
		f.turn(&e, at)
		f.input(at, unknownGap)
	case r.Type == "compacted":
		f.input(at, unknownGap)
		f.compacted = true
	case strings.HasPrefix(r.Type, "inter_agent_communication"):
		f.copied = f.copied && f.numbered
		f.input(at, toolGap)
	case kind == "event_msg task_started":
		f.turn(&e, at)
	case kind == "event_msg user_message":
		f.input(at, thinkGap)
	case r.Type == "response_item" && strings.HasSuffix(e.Type, "_output"):
		f.input(at, toolGap)
		if f.waits[e.Call] {
			f.join = at
		}
	case r.Type == "response_item" && (e.Type == "reasoning" || strings.HasSuffix(e.Type, "_call") ||
		e.Type == "message" && e.Role == "assistant"):
		f.answering, f.end = true, at
		if e.Name == "wait" || strings.HasSuffix(e.Name, "wait_agent") {
			f.waits[e.Call] = true
		}
	case r.Type == "token_usage_record" && e.Usage != nil:
		return d.usage(raw, at, &e, *e.Usage, true)
	case kind == "event_msg token_count" && e.Info != nil && e.Info.Total != nil:
		total, before := *e.Info.Total, f.total
		last := total.Since(&before)
		if e.Info.Last != nil {
			last = *e.Info.Last
		}
		if f.total = total; total.Same(&before) || last.IsZero() {
			return nil // the same again, as before each answer and after a compaction
		}
		return d.usage(raw, at, &e, last, false)
	}
	return nil
}

// usage takes what a call used. A call may have it twice, as a record of its own and
// in the total.
func (d *codexDecoder) usage(raw []byte, at int64, e *codexEvent, u tokenusage.Counts, record bool) error {
	f := d.f
	var c agentCall
	if err := d.use(&c, raw, "payload", &u, tokenusage.Inclusive); err != nil {
		return err
	}
	if f.pending != nil && f.pending.Same(&u) && f.byRecord != record {
		f.pending = nil
		return nil
	}
	f.pending, f.byRecord = &u, record
	key := fmt.Sprint(f.thread.id, e.Response, at, c.input, c.output)
	switch {
	case f.copied || e.Thread != "" && e.Thread != f.thread.id:
		d.s.notes.Count(noteCodexCopied)
		f.answered()
		return nil
	case d.seen[key]:
		d.s.notes.Count(noteCodexTwice)
		f.answered()
		return nil
	}
	d.seen[key] = true
	c.session, c.model = d.name(f.thread.session), f.model
	c.arrival, c.end, c.gap, c.join = f.ready, f.end, f.gap, f.join
	if !f.answering {
		c.end = at
	}
	if c.arrival == 0 {
		c.arrival = c.end
	}
	if f.compacted {
		c.gap = unknownGap
		d.s.notes.Count(noteCodexCompact)
	}
	d.addTo(f.thread, c)
	f.answered()
	return nil
}

// codexSpawned reports whether a session's source says that another agent began it.
func codexSpawned(source json.RawMessage) (parent string, ok bool) {
	var s struct {
		Subagent *struct {
			Spawn struct {
				Parent string `json:"parent_thread_id"`
			} `json:"thread_spawn"`
		} `json:"subagent"`
	}
	if json.Unmarshal(source, &s) != nil || s.Subagent == nil {
		return "", false
	}
	return s.Subagent.Spawn.Parent, true
}
