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
	Schema    string    `json:"schema"`           // always [Schema]
	CaptureID string    `json:"capture_id"`       // of one run of a recorder, which has one key
	KeyID     string    `json:"key_id,omitempty"` // of the key, where it is in a file and other captures may have it too
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
	SampledOut int64 `json:"sampled_out"`  // sessions that are not in the share
	NotAsked   int64 `json:"passed_other"` // other paths than those of the APIs
	Memory     int64 `json:"lost_memory"`  // there was no memory for the texts of more requests
	TooLong    int64 `json:"lost_too_long"`
	Unreadable int64 `json:"lost_unreadable"` // a body that is not a request of its API
	Unreached  int64 `json:"lost_unreached"`  // no server could be reached, so that the body never came
	NoLength   int64 `json:"lost_no_length"`  // neither a text nor a count of tokens
	Disk       int64 `json:"lost_disk"`       // the disk was full or too slow
	Failed     int64 `json:"lost_fault"`      // a fault of the recorder's own
	// Usage counts the recorded answers whose usage is not as it should be.
	Usage usage.Tally `json:"usage,omitzero"`
}

// Lost is how many requests should have been recorded and were not.
func (c Counts) Lost() int64 {
	return c.Memory + c.TooLong + c.Unreadable + c.Unreached + c.NoLength + c.Disk + c.Failed
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
