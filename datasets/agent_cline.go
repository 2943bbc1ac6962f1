package datasets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// clineFormat reads the ui_messages.json of tasks of Cline and Roo Code, in
// globalStorage/EXTENSION/tasks/TASK of VS Code, one or a folder of tasks. All are read
// before the first entry: memory is about 300 bytes for each call.
//
//   - A call is an api_req_started, at whose time it arrives; what it used is JSON in its
//     text, which is empty where it failed or has not ended. A task is a session.
//   - Cached tokens stand beside the input, but where the text says that the protocol is
//     OpenAI's.
//   - When a call ended is not in the file.
func clineFormat() Format {
	f := Format{detect: isCline}.described("cline")
	return f.ofSessions("*ui_messages.json", agentsBy(gatherCline))
}

// isCline tells by the first message.
func isCline(head *sniff.Sample) bool {
	list, ok := bytes.CutPrefix(bytes.TrimSpace(head.Bytes), []byte("["))
	keys := record.Keys(bytes.TrimSpace(list))
	return ok && sniff.Any(keys, "ts") && sniff.Any(keys, "type") && sniff.Any(keys, "say", "ask")
}

const noteClineUnended = "calls without the tokens that they used, left out: they failed or have not ended"

// A clineMessage is what the task showed.
type clineMessage struct {
	At    json.Number `json:"ts"`
	Say   string      `json:"say"`
	Text  string      `json:"text"`
	Model struct {
		ID string `json:"modelId"`
	} `json:"modelInfo"`
}

// clineSent is what stands among the counts of a call.
type clineSent struct {
	Protocol string `json:"apiProtocol"`
}

// gatherCline takes a message.
func gatherCline(d *agentLog, raw []byte) error {
	var m clineMessage
	if err := decodeRecord(d.in, raw, &m); err != nil {
		return err
	}
	var packed any
	if m.Say == "api_req_started" {
		packed, _, _ = row.DecodeJSON([]byte(m.Text))
		d.s.fields.AdmitAt("text", packed)
	}
	d.s.fields.Scan(raw)
	if m.Say != "api_req_started" {
		return nil
	}
	at, err := d.instant(raw, "ts", string(m.At))
	if err != nil {
		return err
	}
	var sent usageAmong[clineSent]
	u := &sent.counts
	if json.Unmarshal([]byte(m.Text), &sent) != nil ||
		!u.Invalid() && !(u.Has(tokenusage.Input) && u.Has(tokenusage.Output)) {
		d.s.notes.Count(noteClineUnended)
		return nil
	}
	dialect := tokenusage.Exclusive
	if sent.names.Protocol == "openai" {
		dialect = tokenusage.Relayed
	}
	c := agentCall{model: d.name(m.Model.ID), arrival: at, end: at}
	if err := d.use(&c, raw, "text", u, dialect); err != nil {
		return err
	}
	t := d.begun[d.s.file]
	if t == nil {
		task := path.Base(path.Dir(strings.ReplaceAll(d.s.file, `\`, "/")))
		t = &agentThread{session: d.name(fmt.Sprint("task ", len(d.begun)+1, " ", task))}
		d.begun[d.s.file] = t
	}
	c.session = t.session
	d.addTo(t, c)
	return nil
}
