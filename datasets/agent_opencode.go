package datasets

import (
	"encoding/json"

	"reprise/datasets/internal/sniff"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

var openCodeReads = []SourceField{
	fieldAt("info.id|info.parentID", "session turn parents", ""),
	fieldAt("info.time.created", "parents", ""),
	fieldAt("messages[].info.role", "", decides),
	fieldAt("messages[].info.time.created|messages[].info.time.completed", "arrival_ns e2e_ns think_ns tool_ns", ""),
	fieldAt("messages[].info.modelID", "model", ""),
	fieldAt("messages[].info.finish", "finish_reason tool_ns think_ns", ""),
	usageAt("messages[].info.tokens"),
}

// openCodeFormat reads the sessions that "opencode export SESSION" writes: a JSON object
// with the session and its messages, one file or several. Memory is one session and
// about 300 bytes for each call.
//
//   - A call is a message of the assistant with tokens. Cached tokens and reasoning stand
//     beside input and output, and are added.
//   - It arrives when it was created and ends when it was completed. After one that
//     called tools the time until the next is tool time, after any other think time.
//   - A session with a parent is a sub-agent of that.
func openCodeFormat() Format {
	f := Format{
		Name:  "opencode",
		reads: openCodeReads,
		About: "OpenCode sessions: what opencode export writes, one session a file",
		Example: `{"info":{"id":"ses_1","time":{"created":1767323040000}},"messages":[{"info":{"id":"msg_2","role":"assistant","modelID":"m","finish":"tool-calls",` +
			`"time":{"created":1767323045000,"completed":1767323047000},"tokens":{"input":20,"output":28,"reasoning":12,"cache":{"read":640,"write":240}}},"parts":[]}]}`,
		Tried:  "1 export of OpenCode 1.17: 21 calls",
		detect: sniff.Objects(func(has func(string) bool) bool { return has("info") && has("messages") }),
	}
	return f.ofFiles(agentsBy(gatherOpenCode))
}

// An openCodeSession is a record.
type openCodeSession struct {
	Info struct {
		ID     string `json:"id"`
		Parent string `json:"parentID"`
		Time   struct {
			Created json.Number `json:"created"`
		} `json:"time"`
	} `json:"info"`
	Messages []openCodeMessage `json:"messages"`
}

type openCodeMessage struct {
	Info struct {
		Role   string `json:"role"`
		Model  string `json:"modelID"`
		Finish string `json:"finish"`
		Time   struct {
			Created   json.Number `json:"created"`
			Completed json.Number `json:"completed"`
		} `json:"time"`

		Tokens *tokenusage.Counts `json:"tokens"`
	} `json:"info"`
}

// gatherOpenCode takes a session.
func gatherOpenCode(d *agentLog, raw []byte) error {
	var r openCodeSession
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if r.Info.ID == "" {
		return d.bad(raw, "info", "info: want the id of the session")
	}
	t := &agentThread{id: r.Info.ID, session: r.Info.ID, parent: r.Info.Parent, spawned: true}
	calls := len(d.calls)
	gap := unknownGap
	for i := range r.Messages {
		m := &r.Messages[i].Info
		if m.Role == "user" {
			gap = thinkGap
		}
		u := m.Tokens
		if m.Role != "assistant" || u == nil || m.Time.Completed == "" {
			continue
		}
		begun, err := d.instant(raw, "messages", string(m.Time.Created))
		var ended int64
		if err == nil {
			ended, err = d.instant(raw, "messages", string(m.Time.Completed))
		}
		c := agentCall{session: d.name(t.session), model: d.name(m.Model), arrival: begun, end: max(begun, ended),
			gap: gap, finish: trace.ClosedFinish(m.Finish)}
		if err == nil {
			beside := u.ReasoningBeside()
			err = d.use(&c, raw, "messages", &beside, tokenusage.Exclusive)
		}
		if err != nil {
			d.calls = d.calls[:calls]
			return err
		}
		if t.born == 0 {
			t.born = begun
		}
		if gap == toolGap {
			c.join = begun
		}
		if gap = thinkGap; m.Finish == "tool-calls" {
			c.finish, gap = "tool_calls", toolGap
		}
		d.addTo(t, c)
	}
	d.threads = append(d.threads, t)
	return nil
}
