package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reprise/replay/host"
	"reprise/trace/usage"
)

// A Privacy is what the privacy card of a workload says, in short. The card itself
// is in the workload.
type Privacy struct {
	Card  string   `json:"card"`            // its digest, hex SHA-256
	Unit  string   `json:"unit_of_privacy"` // whom it protects, such as user or request
	Time  string   `json:"time,omitempty"`  // how times were changed
	Risks []string `json:"residual_risks,omitempty"`
}

// Values of Run.Timing.
const (
	OpenLoop = "open-loop" // at the recorded times
	Causal   = "causal"    // a turn waits for its parents

	// ClosedLoop is a request after another, some at once: the next is sent when
	// one is over. The server sets the rate, so that its saturation is hidden.
	ClosedLoop = "closed-loop"
)

// Schema names the layout of a results file.
const Schema = "results/1"

// Run describes the run as a whole. A results file keeps it as JSON under
// the metadata key "reprise.run". Its parts are embedded, so that the JSON is one flat
// object whose keys have the order of the fields here; files that were written keep
// their bytes. Durations are in nanoseconds.
type Run struct {
	Schema  string `json:"schema"` // [Schema]
	Version string `json:"version"`
	Started string `json:"started"` // RFC 3339, UTC

	Load
	Source
	Sending
	Client

	EndedEarly string `json:"ended_early,omitempty"` // why
	PlannedNS  int64  `json:"planned_ns"`            // first to last due

	Simulation

	Odd Odd `json:"odd_answers,omitzero"`
	// by servers about errors, the first time of each class and status
	Said      []Said     `json:"said,omitempty"`
	Realtime  bool       `json:"realtime,omitempty"`  // requests were sent by a realtime thread
	Wire      *Wire      `json:"wire,omitempty"`      // null where net/http or something else had the connections
	Selection *Selection `json:"selection,omitempty"` // which part of the workload was sent; null is all of it

	Clock

	Plan Asked `json:"plan,omitzero"`
	// digest of the raw file, of a run that sent what the source sent
	Verbatim string `json:"verbatim_digest,omitempty"`

	Note   string     `json:"note,omitempty"`   // by who started the run
	Images *ImageLoad `json:"images,omitempty"` // null where no request has image tokens
	// what prompts are written in: [TextStable], words or corpus; empty is not known
	PromptText string `json:"prompt_text,omitempty"`

	Servers

	// turns whose prompts were to hold the server's replies; null in a run without replay.Threading
	Thread  *Threads `json:"thread,omitempty"`
	Privacy *Privacy `json:"privacy,omitempty"` // from the workload's privacy card; null without a card
	// where it was measured; null in files of versions that did not say
	Environment *Environment `json:"environment,omitempty"`

	Routing
	Transport

	Determinism *Determinism `json:"determinism,omitempty"` // null when it was not checked

	Sessions *Sessions `json:"sessions,omitempty"` // null where the unit of load is the request

	Scenario *Scenario `json:"scenario,omitempty"` // null where the run was held to no published rules

	Read *Reading `json:"read_from,omitempty"` // null: a client of ours made the run, or a simulation

	Shard  *Shard      `json:"shard,omitempty"`  // null: the run sent the whole load
	Shards []SentShard `json:"shards,omitempty"` // that the results were merged of, by their index
}

// A Reading says that another tool made a run, and what its file does not tell.
type Reading struct {
	Tool       string   `json:"tool"`                  // and its version, where the file has it
	Instants   bool     `json:"instants"`              // when each request was sent is known
	Due        bool     `json:"due"`                   // when each was due is known
	DurationNS int64    `json:"duration_ns,omitempty"` // as the tool says, where instants are not known
	Lacks      []string `json:"lacks"`                 // in words
}

// Watched says whether a client of ours sent the requests, so that what it did is known.
func (r *Run) Watched() bool { return r.Simulated == "" && r.Read == nil }

// Timed says whether requests were sent, and it is known when each was due: otherwise none
// was on time or late.
func (r *Run) Timed() bool { return r.Simulated == "" && (r.Read == nil || r.Read.Due) }

// runKey is where files keep the Run, as JSON.
const runKey = "reprise.run"

func (r Run) encode() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		// A NaN is all that can be wrong.
		return "", errors.New("replay: the run's description cannot be written as JSON")
	}
	return string(b), nil
}

// decodeRun reads a Run and checks that it is of our schema.
func decodeRun(doc string) (Run, error) {
	var run Run
	switch err := json.Unmarshal([]byte(doc), &run); {
	case doc == "":
		return run, fmt.Errorf("it has no %s, so it does not hold results", runKey)
	case err != nil:
		return run, fmt.Errorf("its %s was written by another version of Reprise", runKey)
	case run.Schema == Schema:
		return run, nil
	case strings.HasPrefix(run.Schema, "results/"):
		return run, fmt.Errorf("its schema has another version than %s", Schema)
	}
	return run, fmt.Errorf("its schema is not %s", Schema)
}

// Load is what requests were made of, and when they were due.
type Load struct {
	API         string  `json:"api"`     // chat, completions, responses, messages, embeddings, or auto: see Result.API
	Prompts     string  `json:"prompts"` // text or ids
	Model       string  `json:"model"`
	Tokenizer   string  `json:"tokenizer"`
	Guessed     bool    `json:"tokenizer_guessed,omitempty"` // nobody named the tokenizer: it is the usual one
	Words       int     `json:"one_token_words,omitempty"`   // that prompts are made of, since the server counts otherwise
	Speed       float64 `json:"speed"`
	Timing      string  `json:"timing"`                // open-loop, causal or closed-loop
	Rate        string  `json:"rate,omitempty"`        // arrival process in place of recorded times
	Concurrency int     `json:"concurrency,omitempty"` // of a closed loop
	RampUp      string  `json:"ramp_up,omitempty"`     // of its concurrency
	KeepThink   bool    `json:"keep_think,omitempty"`
	Connections string  `json:"connections"` // per-request, pooled, pooled:N or per-session

	// of the schedule they were chosen for; "" where they were asked for
	ConnectionsWhy string `json:"connections_why,omitempty"`
}

// ImageLoad is the requests that have image tokens, for which text is sent.
type ImageLoad struct {
	Requests int64 `json:"requests"`
	Tokens   int64 `json:"tokens"` // by the workload
}

// Source is the workload, and how its tokens are counted.
type Source struct {
	Workload    string `json:"workload_digest"`
	Tier        string `json:"tier,omitempty"`
	Seed        string `json:"seed"`
	BlockSize   int    `json:"block_size"`               // of the workload
	ServerBlock int    `json:"server_block_size"`        // that expected reuse is counted in
	Overhead    int    `json:"template_overhead_tokens"` // that the server's template adds to a prompt

	// ServerBlockFrom says where ServerBlock is from: [BlockGiven], or what the server
	// states it in, such as a metric; empty is a default.
	ServerBlockFrom string `json:"server_block_size_from,omitempty"`
}

// BlockGiven is the [Source].ServerBlockFrom of a block size that a flag gave.
const BlockGiven = "flag"

// Sending is what became of the rows that were read.
type Sending struct {
	Requests   int64   `json:"requests"`          // sent
	Excluded   int64   `json:"excluded"`          // rows left out: failed in the source
	Unprepared int64   `json:"unprepared"`        // rows without a prompt, see [KindPrepare]
	Unready    string  `json:"unready,omitempty"` // why the first of them had none
	NotSent    int64   `json:"not_sent"`          // due after an early end
	Beyond     int64   `json:"beyond"`            // due after the duration that was asked for
	Window     *Window `json:"window"`            // which requests are measured; null is all
	// Cut are the sessions that had requests left when the run ended; null where all were
	// sent, and in files of versions that did not say.
	Cut *CutSessions `json:"sessions_cut,omitempty"`
	// turns whose parents failed, or were skipped themselves: a user without an answer asks nothing further
	Skipped int64 `json:"skipped"`
	// due before they could be read, since too many rows waited for their parents
	ReadLate      int64  `json:"read_late"`
	Drift         *Drift `json:"drift"`           // of the turns of a causal run; null where none was sent
	ShortTails    int64  `json:"short_tails"`     // partial blocks too short to differ
	MaxInFlight   int    `json:"max_in_flight"`   // highest seen
	InFlightLimit int    `json:"in_flight_limit"` // 0 is none
	HeldBack      int64  `json:"held_back"`       // requests that waited at the limit
}

// Client is what the run cost the client's machine.
type Client struct {
	ClientCPU    float64 `json:"client_cpu_cores"` // mean cores used
	Cores        int     `json:"cores"`
	GCPauseMaxNS int64   `json:"gc_pause_max_ns"`
	// CPU is what kept the client from the cores, null where the system does not say.
	CPU *host.CPULimits `json:"cpu_limits,omitempty"`
}

// Simulation says what engines gave the results, where that is known.
type Simulation struct {
	// Simulated says what model gave the results, in virtual time: nothing was
	// sent, and there was no client to measure. Empty for a replay.
	Simulated string `json:"simulated,omitempty"`
	// PresetWarning says how far that model is from the hardware that its preset names;
	// empty where it is near.
	PresetWarning string `json:"preset_warning,omitempty"`
	// Extrapolates are the bounds of what the model was fitted to that the run went beyond.
	Extrapolates []Beyond `json:"extrapolates,omitempty"`
	Instances    int      `json:"instances,omitempty"` // engines that took the requests, where that is known
	// PrefixCaching says whether they kept the KV of prompts for later ones; null is
	// not known, as of every live server.
	PrefixCaching *bool `json:"prefix_caching,omitempty"`
}

// Clock is what the clocks of the client did while it sent.
type Clock struct {
	// most that the wall clock was off from where it would have been without a step, looked at each second
	ClockJumpNS int64 `json:"clock_jump_ns"`
	// longest that such a look was overdue: the process, or the machine, stood still
	StalledNS int64 `json:"stalled_ns"`
	// Stalls are those that a heartbeat noticed, each millisecond; null in files of
	// versions that had none, and where nothing was sent.
	Stalls *Stalls `json:"stalls,omitempty"`
}

// Servers is what the servers say about themselves, what was done to them before the
// run, and what was measured at them during it.
type Servers struct {
	// as they say at /version; several are joined by commas
	ServerVersion string           `json:"server_version,omitempty"`
	MaxModelLen   int              `json:"max_model_len,omitempty"` // the smallest that they list; 0 is not known
	Cache         *CacheDiscipline `json:"cache_discipline,omitempty"`
	Server        *Server          `json:"server,omitempty"` // null: nothing was measured there
}

// Routing is to which servers the requests went.
type Routing struct {
	Endpoints []string       `json:"endpoints,omitempty"` // URLs without queries
	Balance   string         `json:"balance,omitempty"`   // of several: round-robin or session
	Overheads map[string]int `json:"template_overhead_tokens_by_api,omitempty"`
	// Templates say for each API how much of the overhead stands before a prompt and how
	// much after it.
	Templates map[string]Template `json:"template_by_api,omitempty"`
	// Uncounted are the APIs whose servers send no usage, so that the overhead of their
	// templates is not known, and is 0 or what the user said. Those of NoStreamOptions refuse
	// stream_options, and requests to them have none.
	Uncounted       []string `json:"template_overhead_unknown,omitempty"`
	NoStreamOptions []string `json:"stream_options_refused,omitempty"`
	// Adapted says how requests differed from what was asked for, since the servers refuse
	// it: a sentence each.
	Adapted []string `json:"adapted,omitempty"`
}

// A Template is what a server's template puts around a prompt, in tokens.
type Template struct {
	Before int    `json:"before_tokens"`
	After  int    `json:"after_tokens"`
	Found  string `json:"found"` // how the two were told apart: one of the constants
}

// Values of [Template].Found.
const (
	TemplateMeasured = "measured" // by the server's counts
	TemplateDerived  = "derived"  // from its counts of a conversation, as if messages of both roles ended alike
	TemplateGiven    = "given"    // by the user
	TemplateAssumed  = "assumed"  // the two cannot be told apart: all of it is taken to stand after the prompt
)

// RequestID is the X-Request-Id of a request, unless the user set that header; "" where requests have none.
func (t *Transport) RequestID(row int64, round int32) string {
	switch {
	case t.TraceID == "":
		return ""
	case round > 0:
		return fmt.Sprintf("%s-%d-%d", t.TraceID, row, round)
	}
	return fmt.Sprintf("%s-%d", t.TraceID, row)
}

// Transport is how requests were sent, and what headers and limits they had.
type Transport struct {
	// of the requests' traceparent, and what [Transport.RequestID] begins with
	TraceID  string   `json:"trace_id,omitempty"`
	Affinity string   `json:"affinity_header,omitempty"`
	Served   []Served `json:"served,omitempty"` // response headers that were recorded
	// settings by their names in the body; "workload" is each row's own
	Sampling  map[string]json.RawMessage `json:"sampling,omitempty"`
	Retries   int                        `json:"retries,omitempty"` // of one request, at most
	BackoffNS int64                      `json:"backoff_ns,omitempty"`
	// a retry went to the endpoint after the one that failed, round and round
	RetryOther    bool   `json:"retry_other,omitempty"`
	TLSUnverified bool   `json:"tls_unverified,omitempty"` // certificates were not checked
	HTTP2         bool   `json:"http2,omitempty"`
	Proxy         string `json:"proxy,omitempty"`      // URL, or none; empty is the environment's
	TimeoutNS     int64  `json:"timeout_ns,omitempty"` // of one request

	FirstTokenTimeoutNS int64 `json:"first_token_timeout_ns,omitempty"` // 0 is none of its own
	IdleTimeoutNS       int64 `json:"idle_timeout_ns,omitempty"`
}

// TextStable is the PromptText of words without meaning.
const TextStable = "stable"

// Determinism says whether a server answers the same twice.
type Determinism struct {
	Rows     int64 `json:"sampled_rows"`
	Compared int64 `json:"compared_rows"`  // both answers came whole
	Differed int64 `json:"differing_rows"` // other text, or another length
}

// Said is what a server said about an error, without what it quoted of a prompt, a secret or a
// line end: at most 300 characters.
type Said struct {
	Class  string `json:"class"`                 // as [Result].Error
	Status int32  `json:"http_status,omitempty"` // 0 within an answer of status 200
	Words  string `json:"words"`
}

// Odd counts answers that were odd in a way that no Result shows. What was odd
// about them was tolerated, and is no error.
type Odd struct {
	RetryAfter int64 `json:"retry_after,omitempty"`      // an error asked to be repeated later
	Waited     int64 `json:"retry_waited,omitempty"`     // and was, after the time that it asked for
	NoDone     int64 `json:"no_done,omitempty"`          // finished, but without [DONE]
	DoneAgain  int64 `json:"done_again,omitempty"`       // more than one [DONE]
	NoFinish   int64 `json:"no_finish_reason,omitempty"` // [DONE], but no choice said that it had finished
	KeepAlives int64 `json:"keep_alives,omitempty"`      // comments, or data events without data
	Malformed  int64 `json:"malformed_events,omitempty"` // data that is not a JSON object; it was skipped
	Choices    int64 `json:"several_choices,omitempty"`  // gaps are between events of any of them
	NoUsage    int64 `json:"no_usage,omitempty"`         // the server counted nothing
	// usage counts more or fewer tokens than there were events, and no running usage tells whose
	Uncounted int64 `json:"uncounted_events,omitempty"`
	// Usage counts the sound answers whose usage is not as it should be.
	Usage usage.Tally `json:"usage,omitzero"`
}

// MaxRecordHeaders is how many response headers may be recorded.
const MaxRecordHeaders = 4

// OtherValue stands for the values of a recorded header that are no short tokens, and for
// those beyond the first 1,024.
const OtherValue = "(other)"

// Served lists the values that a recorded response header had, in the order in which
// they were first seen. Result.Served holds indexes into Values.
type Served struct {
	Header string   `json:"header"`
	Values []string `json:"values"` // at most 64 letters, digits and -_.: each, or [OtherValue]
}

// A Wire is what became of the client's connections in a run.
type Wire struct {
	Dials       int64 `json:"dials"`            // connections that were opened, those that nobody needed included
	DialsMinute int64 `json:"dials_max_minute"` // the most in any one minute to one server
	// requests for which none was ready: they dialled between released and sent
	Waited       int64 `json:"waited"`
	Reused       int64 `json:"reused"`        // requests on a connection that had served another
	Replaced     int64 `json:"replaced"`      // connections that the server closed while nobody used them
	Stale        int64 `json:"stale"`         // requests lost, as "reset", to a connection that the server was closing
	ServerCloses bool  `json:"server_closes"` // it promises to keep connections and does not: none was used again

	// of those that waited, requests for which there was no local port left
	PortWaits   int64 `json:"port_waits,omitempty"`
	PortWaitMax int64 `json:"port_wait_max_ns,omitempty"` // the longest such wait

	LocalPorts int64  `json:"local_ports,omitempty"` // that connections to one address can have, where the system tells
	Note       string `json:"note,omitempty"`        // what is to be known of them, in words
}
