package recording

import (
	"encoding/json"
	"fmt"
	"time"

	"reprise/trace"
	"reprise/trace/usage"
)

// Schema names the layout of the files that this package writes and reads.
const Schema = "part/1"

// Meta is what the parts of a capture say of it.
type Meta struct {
	Schema    string `json:"schema"`     // always [Schema]
	CaptureID string `json:"capture_id"` // of one run of a recorder, which has one key
	// of the key, where it is in a file and other captures may have it too
	KeyID     string    `json:"key_id,omitempty"`
	Begin     time.Time `json:"capture_begin"`
	End       time.Time `json:"capture_end,omitzero"` // of what is in the file; zero in a journal
	BlockSize int       `json:"block_size"`           // tokens in a block
	Tokenizer string    `json:"tokenizer"`
	Template  string    `json:"template"`
	KeepModel bool      `json:"keep_model"` // names of models are as the requests spell them
	Share     float64   `json:"share"`      // of the sessions that are recorded; 1 is all
	Settings  string    `json:"settings"`   // digest of what decides lengths and blocks
	Counts    Counts    `json:"counts"`     // since the capture began

	// Breakers say where near-identical prompts part, as package breaker writes it, since the
	// capture began. No journal has them.
	Breakers json.RawMessage `json:"breakers,omitempty"`

	// Keys are the keys of all captures of a [Set], as [trace.Meta.Keys]. No part has them.
	Keys string `json:"-"`
}

// Counts say what became of the requests of a capture. All of them were forwarded.
type Counts struct {
	Recorded   int64 `json:"recorded"`
	SampledOut int64 `json:"sampled_out"`
	NotAsked   int64 `json:"passed_other"`
	Memory     int64 `json:"lost_memory"`
	TooLong    int64 `json:"lost_too_long"`
	Unreadable int64 `json:"lost_unreadable"`
	Unreached  int64 `json:"lost_unreached"`
	ClientGone int64 `json:"lost_client_gone,omitempty"`
	NoLength   int64 `json:"lost_no_length"`
	Disk       int64 `json:"lost_disk"`
	Failed     int64 `json:"lost_fault"`
	// Usage counts the recorded answers whose usage is not as it should be.
	Usage usage.Tally `json:"usage,omitzero"`
}

// An Outcome is one thing that became of requests: its name in JSON and for Prometheus, what it says
// after a number of requests, how many, and whether these should have been recorded and were not.
type Outcome struct {
	Name, Says string
	N          *int64
	Lost       bool
}

// Outcomes are all of them, with those that were recorded first.
func (c *Counts) Outcomes() []Outcome {
	return []Outcome{
		{"recorded", "recorded", &c.Recorded, false},
		{"sampled_out", "of sessions that --sample leaves out", &c.SampledOut, false},
		{"passed_other", "to other paths, passed on", &c.NotAsked, false},
		{"lost_memory", "not recorded: the texts of all in flight exceeded --memory", &c.Memory, true},
		{"lost_too_long", "not recorded: longer than 256 MiB", &c.TooLong, true},
		{"lost_unreadable", "not recorded: the body is no request of its API", &c.Unreadable, true},
		{"lost_unreached", "not recorded: no engine could be reached", &c.Unreached, true},
		{"lost_client_gone", "not recorded: the client hung up before the whole request had come", &c.ClientGone, true},
		{"lost_no_length", "not recorded: neither text nor a count of tokens tells the length", &c.NoLength, true},
		{"lost_disk", "not recorded: the disk was full or too slow", &c.Disk, true},
		{"lost_fault", "not recorded: a fault of the recorder", &c.Failed, true},
	}
}

// Lost is how many requests should have been recorded and were not.
func (c Counts) Lost() (n int64) {
	for _, o := range c.Outcomes() {
		if o.Lost {
			n += *o.N
		}
	}
	return n
}

// Passed is how many requests the counts are of.
func (c Counts) Passed() (n int64) {
	for _, o := range c.Outcomes() {
		n += *o.N
	}
	return n
}

// Metadata of a part: the whole as JSON, beside the keys that traces have too.
const (
	schemaKey  = "reprise.schema"
	captureKey = "reprise.capture"
)

// parseMeta reads what was written, and refuses what no recorder writes.
func parseMeta(text []byte) (Meta, error) {
	var m Meta
	if err := json.Unmarshal(text, &m); err != nil || m.Schema == "" {
		return m, fmt.Errorf("it is not a part of a recording")
	}
	switch {
	case m.Schema != Schema:
		return m, fmt.Errorf("its schema is not %s: it was recorded by another version of Reprise", Schema)
	case m.BlockSize < 1 || m.BlockSize > 1<<16 || m.CaptureID == "" || m.Begin.IsZero():
		return m, fmt.Errorf("its capture window is incomplete")
	}
	return m, nil
}

// Window is when a capture was recorded, as a trace declares it.
func (m Meta) Window() trace.Capture {
	return trace.Capture{Begin: m.Begin.UTC(), End: m.End.UTC()}
}
