package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/replay/contract"
	"reprise/replay/result"
)

// SweepSchema names the layout of a [SweepResult] as JSON.
const SweepSchema = "sweep/1"

// A SweepResult is what a sweep came to, with every level that was measured. Its JSON
// names carry their units as those of a summary do.
type SweepResult struct {
	Schema     string   `json:"schema"`
	Command    string   `json:"command"`              // without secrets
	Hypothesis string   `json:"hypothesis,omitempty"` // as it was before the sweep
	Version    string   `json:"version"`
	Workload   string   `json:"workload_digest"`
	Tier       string   `json:"tier,omitempty"`
	Model      string   `json:"model"`
	Endpoints  []string `json:"endpoints,omitempty"`
	Server     string   `json:"server_version,omitempty"`
	Simulated  string   `json:"simulated,omitempty"`
	// PresetWarning is that of the runs, see [result.Run].
	PresetWarning string `json:"preset_warning,omitempty"`

	Started  string   `json:"started,omitempty"` // of the first level
	Seed     string   `json:"seed"`
	Closed   bool     `json:"closed_loop"`       // loads are requests in flight, and saturation is hidden
	Process  string   `json:"process,omitempty"` // arrivals of an open loop
	Contract []string `json:"contract"`          // its clauses
	// GPUs and PricePerGPUHour are those of the contract, 0 when it names none.
	GPUs            int     `json:"contract_gpus,omitempty"`
	PricePerGPUHour float64 `json:"contract_price_per_gpu_hour,omitempty"`

	Environment *result.Environment `json:"environment,omitempty"` // of the first level

	Levels  []Level     `json:"levels"` // in the order in which they were measured, with those that did not hold
	Stopped Stop        `json:"stopped"`
	Knee    *KneeResult `json:"knee"` // null when too few levels can be trusted
	Highest Highest     `json:"highest"`
}

// A Stop says why a sweep went no further up.
type Stop struct {
	Code string `json:"code"` // one of the Stopped constants
	Text string `json:"text"`
}

// Why a sweep went no further up.
const (
	StoppedEnd       = "end"        // of the ladder
	StoppedSaturated = "saturated"  // the server
	StoppedUntrusted = "untrusted"  // the client was the limit
	StoppedResolved  = "resolution" // an adaptive search found what it sought
)

// about takes over what a run says of its surroundings.
func (r *SweepResult) about(run *result.Run) {
	r.Tier, r.Model, r.Endpoints = run.Tier, run.Model, run.Endpoints
	r.Server, r.Simulated, r.PresetWarning, r.Version = run.ServerVersion, run.Simulated, run.PresetWarning, run.Version
	r.Started, r.Environment = cmp.Or(r.Started, run.Started), cmp.Or(r.Environment, run.Environment)
}

// Under takes over the contract that the levels were held against, nil when there was
// none.
func (r *SweepResult) Under(c *contract.Contract) {
	if r.Contract = []string{}; c == nil {
		return
	}
	for i := range c.Clauses {
		r.Contract = append(r.Contract, c.Clauses[i].Whole())
	}
	r.GPUs, r.PricePerGPUHour = c.GPUs, c.PricePerGPUHour
}

// Reprice takes GPUs and price of a contract for those of the sweep. It must have the
// clauses that the sweep was held against, in any order.
func (r *SweepResult) Reprice(c *contract.Contract) error {
	var given SweepResult
	given.Under(c)
	is, was := slices.Sorted(slices.Values(given.Contract)), slices.Sorted(slices.Values(r.Contract))
	switch {
	case len(was) == 0:
		return errors.New("the sweep was made without a contract")
	case !slices.Equal(is, was):
		return fmt.Errorf("the sweep was made under another contract: %s; this one says: %s", strings.Join(r.Contract, "; "), strings.Join(given.Contract, "; "))
	}
	r.GPUs, r.PricePerGPUHour = cmp.Or(c.GPUs, r.GPUs), cmp.Or(c.PricePerGPUHour, r.PricePerGPUHour)
	return nil
}

// Ladder are the levels of the ladder in ascending order, without the runs that
// confirm.
func (r *SweepResult) Ladder() []*Level {
	var out []*Level
	for _, l := range byLoad(r.Levels) {
		if l.Role == RoleLevel {
			out = append(out, l)
		}
	}
	return out
}

// stopped says why the ladder ended at its last level.
func (r *SweepResult) stopped() Stop {
	if len(r.Levels) == 0 {
		return Stop{Code: StoppedEnd, Text: "there is no level"}
	}
	last := &r.Levels[len(r.Levels)-1]
	at := fmt.Sprintf("%s, at %s: ", last.Outcome, last.Name)
	switch {
	case last.Outcome == Untrusted:
		return Stop{StoppedUntrusted, at + last.Why}
	case last.Outcome == Saturated:
		return Stop{StoppedSaturated, at + last.Why}
	case last.Load < r.Ladder()[len(r.Ladder())-1].Load:
		return Stop{StoppedResolved, "the search has the resolution that was asked for"}
	}
	return Stop{StoppedEnd, "the last level of the ladder was measured"}
}

// Untrusted is the first level that was limited by the client, nil when none was.
func (r *SweepResult) Untrusted() *Level {
	for i := range r.Levels {
		if r.Levels[i].Outcome == Untrusted {
			return &r.Levels[i]
		}
	}
	return nil
}

// ReadSweep reads the JSON of a sweep. Errors begin with the name, and with the line
// and the column at fault.
func ReadSweep(name string, in io.Reader) (SweepResult, error) {
	var r SweepResult
	text, err := io.ReadAll(io.LimitReader(in, maxSweepText))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		at := int64(0)
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = e.Offset
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = e.Offset
		}
		before := text[:max(at-1, 0)]
		line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
		return r, fmt.Errorf("%s:%d:%d: it is no result of a sweep: %w", name, line, column, err)
	}
	if r.Schema != SweepSchema {
		return r, fmt.Errorf("%s:1:1: it is no result of a sweep: its schema is not %s", name, SweepSchema)
	}
	return r, nil
}

// maxSweepText bounds what is read of a file: a level takes 4 kB.
const maxSweepText = 64 << 20
