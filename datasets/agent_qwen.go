package datasets

import (
	"slices"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

var qwenReads = []SourceField{
	fieldAt("type|parentUuid", "", decides),
	fieldAt("uuid", "", "read to know the records of one call, and not kept"),
	fieldAt("sessionId", "session turn parents", ""),
	fieldAt("timestamp", "arrival_ns e2e_ns think_ns tool_ns", ""),
	fieldAt("model", "model", ""),
	usageAt("usageMetadata"),
}

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
	f := Format{
		Name:    "qwen-code",
		reads:   qwenReads,
		About:   "Qwen Code sessions: the .jsonl files or the folder of ~/.qwen/projects",
		Example: `{"uuid":"u2","parentUuid":"u1","sessionId":"q1","timestamp":"2026-02-23T14:24:56.857Z","type":"assistant","cwd":"/p","model":"m","message":{"role":"model","parts":[]},"usageMetadata":{"promptTokenCount":900,"cachedContentTokenCount":640,"candidatesTokenCount":28,"thoughtsTokenCount":12,"totalTokenCount":940}}`,
		Tried:   "1 session of Qwen Code 0.15, run against a simulated server: 4 calls",
		detect:  isQwen,
	}
	return f.ofSessions(".jsonl", func(in record.Reader, o Options, s *Source) decoder {
		d := &qwenDecoder{agentLog: newAgentLog(in, o, s), sessions: map[string]*qwenSession{}, seen: map[string]bool{}}
		d.agentLog.gather = d.gather
		s.notes.SayOnce(noteAgentArrival)
		return d
	})
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

type qwenDecoder struct {
	*agentLog
	sessions map[string]*qwenSession
	seen     map[string]bool
}

// A qwenSession is how far a session has come.
type qwenSession struct {
	agentThread
	ready int64
	gap   gapKind
}

// gather takes a record.
func (d *qwenDecoder) gather(raw []byte) error {
	var r qwenRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if r.Type != "user" && r.Type != "tool_result" && r.Type != "assistant" || r.UUID != "" && d.seen[r.UUID] {
		return nil
	}
	d.seen[r.UUID] = true
	at, err := d.instant(raw, "timestamp", r.Timestamp)
	if err != nil {
		return err
	}
	q := d.sessions[r.Session]
	if q == nil {
		q = &qwenSession{}
		d.sessions[r.Session] = q
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
		d.addTo(&q.agentThread, c)
		q.ready, q.gap = at, unknownGap
	}
	return nil
}
