package result

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Share is one of Of parts of a load, which processes send side by side. Session trees,
// and places of closed loops, are dealt out like cards: share i has those whose number leaves
// i when divided by Of. So each process finds its own from the two numbers alone, and all
// together are the whole. The zero Share is the whole.
type Share struct {
	Index int `json:"index"` // from 0
	Of    int `json:"of"`
}

// Whole says that nothing is shared.
func (s Share) Whole() bool { return s.Of == 0 }

// String is the share as --shard takes it, such as 3/8.
func (s Share) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Of) }

// Has says whether what has a number, from 0, belongs to the share.
func (s Share) Has(number int64) bool {
	return s.Whole() || number%int64(s.Of) == int64(s.Index)
}

// Count is how many of n belong to the share.
func (s Share) Count(n int) int {
	if s.Whole() {
		return n
	}
	return (n + s.Of - 1 - s.Index) / s.Of
}

// Number is the number, in the whole, of the k-th that belongs to the share.
func (s Share) Number(k int64) int64 {
	if s.Whole() {
		return k
	}
	return k*int64(s.Of) + int64(s.Index)
}

// A Shard says which share of a load a run sent, and by what clock.
type Shard struct {
	Share
	Settings   string       `json:"settings_digest"`       // equal for the shards of one load: see [SettingsDigest]
	StartClock string       `json:"start_clock,omitempty"` // when all shards were to start, RFC 3339; empty is at once
	Clock      *ClockOffset `json:"clock,omitempty"`       // null where it was not measured
}

// A ClockOffset says how far a peer's wall clock was ahead of the client's, by exchanges of
// time stamps as NTP makes them (RFC 5905): the one with the shortest way counts.
type ClockOffset struct {
	Peer     string `json:"peer"` // as it was named
	OffsetNS int64  `json:"offset_ns"`
	// half of the way there and back: the offset is off by so much at most, but for what the peer's own clock is
	UncertaintyNS int64 `json:"uncertainty_ns"`
	Exchanges     int   `json:"exchanges"` // that were answered
}

// A SentShard is one of the shards that results were merged of.
type SentShard struct {
	Shard
	Version    string  `json:"version"`
	Started    string  `json:"started"`
	TraceID    string  `json:"trace_id,omitempty"`
	Requests   int64   `json:"requests"`
	ClientCPU  float64 `json:"client_cpu_cores"`
	Cores      int     `json:"cores"`
	LagP50     *int64  `json:"send_lag_p50_ns"` // null where nothing was sent
	LagP99     *int64  `json:"send_lag_p99_ns"`
	LagMax     *int64  `json:"send_lag_max_ns"`
	StalledNS  int64   `json:"stalled_ns"`
	EndedEarly string  `json:"ended_early,omitempty"`
}

// ownOfShard are the fields of a Run that shards of one load need not have in common: what
// a run finds out, and what only the first of them does to the servers.
var ownOfShard = []string{
	"version", "started", "trace_id", "cores", "note", "requests", "excluded", "unprepared", "ended_early",
	"environment", "stalls",
	"connections", "connections_why", "server_version", "max_model_len", "cache_discipline", "shard", "images",
	"server", "server_profile", "sessions_cut", "realtime",
}

// SettingsDigest is the SHA-256, in hex, of what is known of a run when it begins and what all
// shards of a load must agree on: the workload and its part, the schedule, prompts, API, model,
// endpoints, limits. It is of the JSON of the Run without the fields that are a shard's own, with
// its keys sorted.
func SettingsDigest(run Run) (string, error) {
	fields, err := run.settings()
	if err != nil {
		return "", err
	}
	doc, err := json.Marshal(fields) // maps are written with their keys in order
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:]), nil
}

// settings are the fields of a run that its shards have in common.
func (r Run) settings() (map[string]json.RawMessage, error) {
	if r.Selection != nil {
		chosen := *r.Selection
		chosen.Prime = nil
		r.Selection = &chosen
	}
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, errors.New("replay: the run's description cannot be written as JSON")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		return nil, err
	}
	for _, name := range ownOfShard {
		delete(fields, name)
	}
	return fields, nil
}

// A Setting is one that two runs do not have in common, as JSON; empty is none.
type Setting struct{ Name, A, B string }

// OtherSetting finds the first setting, by name, in which two runs that are over differ,
// leaving out what they counted. It is false where the two agree in all that is told.
func OtherSetting(a, b Run) (Setting, bool) {
	var docs [2]map[string]json.RawMessage
	for i, run := range []Run{a, b} {
		asked := Run{Load: run.Load, Source: run.Source, Routing: run.Routing, Transport: run.Transport, Plan: run.Plan,
			Selection: run.Selection, Verbatim: run.Verbatim, PromptText: run.PromptText, Privacy: run.Privacy}
		asked.Served = nil
		asked.InFlightLimit = run.InFlightLimit
		if run.Sessions != nil {
			load := *run.Sessions
			load.Counts = nil
			asked.Sessions = &load
		}
		fields, err := asked.settings()
		if err != nil {
			return Setting{}, false
		}
		docs[i] = fields
	}
	var names []string
	for _, doc := range docs {
		for name := range doc {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, cmp.Compare[string])
	for _, name := range slices.Compact(names) {
		if x, y := string(docs[0][name]), string(docs[1][name]); x != y {
			return Setting{name, x, y}, true
		}
	}
	return Setting{}, false
}

// StartedApart is how many shards were to start at another instant than most, and how far the
// furthest of them is from these. Shards that tell no instant are left out.
func StartedApart(shards []SentShard) (n int, furthest time.Duration) {
	counts := map[string]int{}
	common := ""
	for i := range shards {
		if at := shards[i].StartClock; at != "" {
			if counts[at]++; counts[at] > counts[common] || counts[at] == counts[common] && at < common {
				common = at
			}
		}
	}
	begin, err := time.Parse(time.RFC3339Nano, common)
	for i := range shards {
		at := shards[i].StartClock
		if at == "" || at == common || err != nil {
			continue
		}
		n++
		if other, err := time.Parse(time.RFC3339Nano, at); err == nil {
			furthest = max(furthest, other.Sub(begin).Abs())
		}
	}
	return n, furthest
}
