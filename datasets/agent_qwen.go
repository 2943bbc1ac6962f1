package datasets

import (
	"slices"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// qwenFormat reads the session files of Qwen Code
// (~/.qwen/projects/PROJECT/chats/SESSION.jsonl), one or a folder of them. All are read
// before the first entry: memory is about 300 bytes for each call and each id.
//
//   - A call is a record of type assistant with usageMetadata; the ui_telemetry records
//     that say the same again are not read. The input holds the cached tokens; thoughts
//     stand beside the candidates, and are added, unless the total shows that the
//     candidates hold them, as they do where the provider speaks OpenAI's protocol.
//   - A call arrives with the newest record of its session before it that is of the user
//     or the result of a tool. It ends at its own time.
func qwenFormat() Format {
	f := Format{detect: isQwen}.described("qwen-code")
	f = f.ofSessions("*.jsonl", openQwen)
	f.open = recordsOpener(openQwen).lines
	return f
}

func openQwen(in record.Reader, o Options, s *Source) decoder {
	seen := map[string]bool{} // by id
	gather := func(l *agentLog, raw []byte) error { return gatherQwen(l, raw, seen) }
	return agentsBy(gather, noteAgentArrival)(in, o, s)
}

// isQwen tells by records of a tree that are not Claude Code's, and their usage.
func isQwen(head *sniff.Sample) bool {
	return slices.ContainsFunc(head.Lines(), func(line *sniff.Record) bool {
		return line.Has("usageMetadata") && line.Has("parentUuid") && line.Has("sessionId")
	}) && !isClaude(head)
}

// A qwenRecord is a line.
type qwenRecord struct {
	UUID      string `json:"uuid"`
	Session   string `json:"sessionId"`
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Model     string `json:"model"`

	Usage *tokenusage.Counts `json:"usageMetadata"`
}

// gatherQwen takes a record, unless one with its id was seen.
func gatherQwen(d *agentLog, raw []byte, seen map[string]bool) error {
	var r qwenRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if r.Type != "user" && r.Type != "tool_result" && r.Type != "assistant" || r.UUID != "" && seen[r.UUID] {
		return nil
	}
	seen[r.UUID] = true
	at, err := d.instant(raw, "timestamp", r.Timestamp)
	if err != nil {
		return err
	}
	q := d.begun[r.Session]
	if q == nil {
		q = &agentThread{}
		d.begun[r.Session] = q
	}
	switch {
	case r.Type == "user":
		q.ready, q.gap = at, thinkGap
	case r.Type == "tool_result":
		q.ready, q.gap = at, toolGap
	case r.Usage != nil:
		c := agentCall{session: d.name(r.Session), model: d.name(r.Model), arrival: q.ready, gap: q.gap, end: at}
		if err := d.use(&c, raw, "usageMetadata", r.Usage, tokenusage.Inclusive); err != nil {
			return err
		}
		if q.ready == 0 || q.ready > at {
			c.arrival = at
		}
		d.addTo(q, c)
		q.ready, q.gap = at, unknownGap
	}
	return nil
}
