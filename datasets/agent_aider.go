package datasets

import (
	"encoding/json"
	"fmt"

	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// aiderFormat reads the log that Aider writes with --analytics-log: JSON lines of
// events. Memory is about 300 bytes for each call.
//
//   - message_send is a call that has ended, and the message_send_starting before it the
//     arrival. One without an end failed or was interrupted, and is left out.
//   - A session begins when Aider is launched and when its chat is cleared.
//   - Times are whole seconds. The log has no cached tokens, and counts of calls of
//     several models, such as that of an editor, together.
func aiderFormat() Format {
	return Format{
		timed: true,
		detect: sniff.Rows(func(keys []string) bool {
			return len(keys) == 4 && sniff.Any(keys, "event") && sniff.Any(keys, "properties") &&
				sniff.Any(keys, "user_id") && sniff.Any(keys, "time")
		}),
		open: agentsBy(gatherAider).lines,
	}.described("aider")
}

const noteAiderUnended = "calls that were begun and have no end, left out"

// An aiderRecord is a line.
type aiderRecord struct {
	Event      string                `json:"event"`
	Properties usageAmong[aiderSent] `json:"properties"`
	User       string                `json:"user_id"`
	Time       json.Number           `json:"time"`
}

type aiderSent struct {
	Model string `json:"main_model"`
}

// gatherAider takes an event. A call that has begun is what its user's thread is ready for.
func gatherAider(d *agentLog, raw []byte) error {
	d.s.info.HasUsers = true
	var r aiderRecord
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	at, err := d.instant(raw, "time", string(r.Time))
	if err != nil {
		return err
	}
	u := d.begun[r.User]
	if u == nil {
		u = &agentThread{session: d.name(r.User)}
		d.begun[r.User] = u
	}
	switch r.Event {
	case "launched", "command_clear", "command_reset":
		*u = agentThread{session: d.name(fmt.Sprint(r.User, ":", at)), ready: u.ready}
	case "message_send_starting":
		if u.ready != 0 {
			d.s.notes.Count(noteAiderUnended)
		}
		u.ready = at
	case "message_send":
		c := agentCall{session: u.session, user: d.name(r.User), model: d.name(r.Properties.names.Model),
			arrival: u.ready, end: at}
		if err := d.use(&c, raw, "properties", &r.Properties.counts, tokenusage.Relayed); err != nil {
			return err
		}
		if u.ready == 0 {
			c.arrival = at
		}
		u.ready = 0
		d.addTo(u, c)
	}
	return nil
}
