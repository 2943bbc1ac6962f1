package datasets

import (
	"encoding/json"

	"reprise/datasets/internal/sniff"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

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
		detect: sniff.Objects(func(has func(string) bool) bool { return has("info") && has("messages") }),
	}.described("opencode")
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
