package datasets

import (
	"fmt"
	"time"

	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// openHandsFormat reads the results that OpenHands writes of its runs, such as those of
// its evaluations (output.jsonl): an object for each conversation, with its history and
// the usage of each call. Memory is about 300 bytes for each call beside one record.
//
//   - A call ends with the first event of its response, and begins as much earlier as
//     its latency says. What an agent does after that, until the next call, is tool time;
//     after a message of the user it is think time.
//   - The input holds the cached tokens. Counts that add up several calls are not read.
//   - Calls without an event, such as those of a condenser, have no time and are left out.
//   - Times have no zone: --tz names it.
func openHandsFormat() Format {
	return Format{
		detect: sniff.Lines(func(has func(string) bool) bool {
			return has("history") && has("instruction") && (has("instance_id") || has("issue"))
		}),
		open: agentsBy(gatherOpenHands).file,
	}.described("openhands")
}

const (
	noteOpenHandsTimes = "calls without an event or a latency, whose times are not known, left out"
	noteOpenHandsNone  = "conversations without the usage of their calls, left out"
)

// An openHandsRun is a line.
type openHandsRun struct {
	History []struct {
		Timestamp string `json:"timestamp"`
		Source    string `json:"source"`
		Action    string `json:"action"`
		Tool      struct {
			Response struct {
				ID string `json:"id"`
			} `json:"model_response"`
		} `json:"tool_call_metadata"`
	} `json:"history"`
	Metrics struct {
		Usages    []usageAmong[openHandsCall] `json:"token_usages"`
		Latencies []struct {
			Seconds  float64 `json:"latency"`
			Response string  `json:"response_id"`
		} `json:"response_latencies"`
	} `json:"metrics"`
}

// openHandsCall are the names among the usage of a call.
type openHandsCall struct {
	Model    string `json:"model"`
	Response string `json:"response_id"`
}

// gatherOpenHands takes a conversation.
func gatherOpenHands(d *agentLog, raw []byte) error {
	var r openHandsRun
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return err
	}
	d.s.fields.Scan(raw)
	if len(r.Metrics.Usages) == 0 {
		d.s.notes.Count(noteOpenHandsNone)
		return nil
	}
	ended, latency := map[string]int64{}, map[string]time.Duration{}
	asked, user := map[string]bool{}, false // answers to a message of the user
	for _, e := range r.History {
		id := e.Tool.Response.ID
		if user = user || e.Source == "user" && e.Action == "message"; id == "" || ended[id] != 0 {
			continue
		}
		at, err := d.instant(raw, "history", e.Timestamp)
		if err != nil {
			return err
		}
		ended[id], asked[id], user = at, user, false
	}
	for _, l := range r.Metrics.Latencies {
		if l.Seconds >= 0 && l.Seconds < maxPool.Seconds() {
			latency[l.Response] = time.Duration(l.Seconds * float64(time.Second))
		}
	}
	line, _ := d.in.Place(0)
	calls := len(d.calls)
	t := &agentThread{}
	session := d.name(fmt.Sprint(d.s.file, ":", line)) // its own id may stand for several runs
	for _, u := range r.Metrics.Usages {
		end, ok := ended[u.names.Response]
		took, ok2 := latency[u.names.Response]
		if !ok || !ok2 {
			d.s.notes.Count(noteOpenHandsTimes)
			continue
		}
		c := agentCall{session: session, model: d.name(u.names.Model), arrival: end - int64(took), end: end, gap: toolGap}
		if err := d.use(&c, raw, "metrics.token_usages", &u.counts, tokenusage.Relayed); err != nil {
			d.calls = d.calls[:calls]
			return err
		}
		if asked[u.names.Response] {
			c.gap = thinkGap
		}
		d.addTo(t, c)
	}
	return nil
}
