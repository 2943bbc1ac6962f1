package result

import (
	"cmp"

	"reprise/trace"
	"reprise/trace/usage"
)

// Values of Result.OutputFrom.
const (
	FromUsage     = "usage"
	FromTokenizer = "tokenizer"
)

// The APIs that a request may be sent to: values of [Run].API, and but for the last
// of [Result].API.
const (
	APIChat        = "chat"
	APICompletions = "completions"
	APIResponses   = "responses"
	APIMessages    = "messages"   // of Anthropic
	APIEmbeddings  = "embeddings" // not streamed: its latency is that of the whole answer
	// APIAuto is what each row's kind says: chat, completion, responses or embedding,
	// and chat for any other.
	APIAuto = "auto"
)

// A Result is one replayed request: instants in nanoseconds from the start of
// the run on one monotonic clock, counts, and how it ended. Latencies are
// derived from the instants, never stored. What did not happen is null.
type Result struct {
	trace.Row `parquet:"-"`

	RowID    int64  `parquet:"row,delta"` // row of the workload
	Session  *int64 `parquet:"session,optional"`
	Category string `parquet:"category,optional,dict"`
	Class    string `parquet:"class,optional,dict"`

	DueNS int64 `parquet:"due_ns,delta"` // when the schedule wanted it sent
	// when the client let go of it; from here to sent it waits for its connection
	ReleasedNS   *int64 `parquet:"released_ns,optional"`
	SentNS       *int64 `parquet:"sent_ns,optional"`    // entry to the write of the request
	HeadersNS    *int64 `parquet:"headers_ns,optional"` // response headers read
	FirstEventNS *int64 `parquet:"first_event_ns,optional"`
	FirstTokenNS *int64 `parquet:"first_token_ns,optional"` // first event with generated content
	LastTokenNS  *int64 `parquet:"last_token_ns,optional"`
	DoneNS       *int64 `parquet:"done_ns,optional"` // stream closed, or the failure

	WantInput int32 `parquet:"want_input_tokens"` // as the workload asks
	// as the workload asks; nil where the server may end by itself
	WantOutput *int32 `parquet:"want_output_tokens,optional"`
	// leading prompt tokens that earlier rows have sent, or, in threads, that were generated
	Known      *int32 `parquet:"known_tokens,optional"`
	Input      *int32 `parquet:"input_tokens,optional"`     // usage.prompt_tokens
	Cached     *int32 `parquet:"cached_tokens,optional"`    // usage.prompt_tokens_details.cached_tokens
	Output     *int32 `parquet:"output_tokens,optional"`    // see OutputFrom
	OutputFrom string `parquet:"output_from,optional,dict"` // usage or tokenizer

	Events int32   `parquet:"token_events"`
	GapsNS []int64 `parquet:"gaps_ns,list"` // between successive token events, Events-1 of them

	// EventTokens is how many tokens each token event carried, by the running
	// usage that came with it; empty when the server did not say, or each
	// carried one.
	EventTokens []int32 `parquet:"event_tokens,list"`

	HTTPStatus *int32 `parquet:"http_status,optional"`
	// class from openai's closed list, or [KindPrepare]; empty is success
	Error        string `parquet:"error,optional,dict"`
	FinishReason string `parquet:"finish_reason,optional,dict"` // from trace's closed list

	// FirstContentNS is the first event with something else than reasoning, which
	// FirstTokenNS counts too; null when all of the answer was reasoning.
	FirstContentNS *int64 `parquet:"first_content_ns,optional"`
	// Round is which time the workload was played, from 0: with RowID it names a
	// request of a run that plays it several times, see replay.Loop.
	Round int32 `parquet:"round"`
	// that it was sent to: chat, completions, responses, messages or embeddings
	API          string `parquet:"api,optional,dict"`
	Endpoint     *int32 `parquet:"endpoint,optional"`       // index into Run.Endpoints
	Attempts     int32  `parquet:"attempts"`                // how often it was tried; more than one was a retry
	RetryAfterNS *int64 `parquet:"retry_after_ns,optional"` // what the server last asked for by Retry-After
	// for each of Run.Served, an index into its values; −1 is none
	Served []int32 `parquet:"served,list"`

	// ReadDelaysUS is how long each token event had been there when it was read, by the
	// kernel's receive timestamp: µs, rounded up, 1 at least. A negative one says that
	// more of the answer came with the same read: the kernel keeps the last stamp of what
	// it has merged, so the event may have been there longer, up to the read before.
	// Empty where there are no such timestamps: only Linux has them, over HTTP/1.1
	// without TLS or a proxy.
	ReadDelaysUS []int32 `parquet:"read_delays_us,list"`

	// Where the request stands in its session. Thread numbers the conversations of a
	// session tree from 0, the root; only a run of session trees knows it. Turn is from 0
	// within the thread, or where that is not known as the workload says. Parents are the
	// rows of the workload that it had to wait for, in the same round; think and tool time
	// are as recorded.
	Thread  *int32  `parquet:"thread,optional"`
	Turn    *int32  `parquet:"turn,optional"`
	Parents []int64 `parquet:"parents,optional,list"`
	ThinkNS *int64  `parquet:"think_ns,optional"`
	ToolNS  *int64  `parquet:"tool_ns,optional"`
	// Play is how often the session tree had been played before, 0 for the first time;
	// null in a run whose unit of load is the request.
	Play *int32 `parquet:"play,optional"`

	// ArrivalNS and RecordedE2ENS are arrival_ns and e2e_ns of the workload: when the source
	// had the request, whatever the schedule of the run, and how long it took there. Null in
	// files of versions that did not say, the second also where the source does not.
	ArrivalNS     *int64 `parquet:"arrival_ns,optional"`
	RecordedE2ENS *int64 `parquet:"recorded_e2e_ns,optional"`

	// User, Model and Adapter are those of the workload: a pseudonymous user or tenant, and
	// labels. The model that was asked for is [Run].Model.
	User    *int64 `parquet:"user,optional"`
	Model   string `parquet:"model,optional,dict"`
	Adapter string `parquet:"adapter,optional,dict"`

	// Refuted names what is wrong about the counts that the server claims, by the keys of
	// [usage.Finding] with commas between them; empty where nothing is. The counts that are
	// wrong are null above, and stand here as they were claimed.
	Refuted       string `parquet:"refuted,optional,dict"`
	ClaimedInput  *int64 `parquet:"claimed_input_tokens,optional"`
	ClaimedCached *int64 `parquet:"claimed_cached_tokens,optional"`
	ClaimedOutput *int64 `parquet:"claimed_output_tokens,optional"`
	// TextBytes is how long the text of the answer is, with reasoning and calls of tools; null
	// where it was not seen, and in files of versions that did not say.
	TextBytes *int64 `parquet:"text_bytes,optional"`

	// QueueNS and PrefillNS are how long the request waited at the server to be scheduled, and from there to its first
	// token, as the server says in its answer; null where it does not, and in files of versions that did not ask.
	QueueNS   *int64 `parquet:"queue_ns,optional"`
	PrefillNS *int64 `parquet:"prefill_ns,optional"`

	// Uncertain says which token events have an instant that is not known well, nil that
	// none has. Files do not have it: a report marks those of [report.InstantsKernel].
	Uncertain []bool `parquet:"-"`
}

// AddedColumns implements [trace.Grown].
func (Result) AddedColumns() []string {
	return []string{"thread", "turn", "parents", "think_ns", "tool_ns", "play", "arrival_ns", "recorded_e2e_ns", "user",
		"model", "adapter",
		"refuted", "claimed_input_tokens", "claimed_cached_tokens", "claimed_output_tokens", "text_bytes",
		"queue_ns", "prefill_ns"}
}

// Failed says whether the request counts as an error. One that was cut off on
// purpose does not.
func (r *Result) Failed() bool { return r.Error != "" && r.Error != KindCancelled }

// Certain says whether the instant of a token event is known well.
func (r *Result) Certain(event int) bool { return r.Uncertain == nil || !r.Uncertain[event] }

// ReadDelay is how long a token event had been there when it was read, by ReadDelaysUS,
// which has it. last says that nothing of the answer came behind it in the same read.
func (r *Result) ReadDelay(event int) (ns int64, last bool) {
	us := int64(r.ReadDelaysUS[event])
	return 1000 * max(us, -us), us > 0
}

// AtOnce says whether all tokens of an answer came together: in one event, in one read, or faster
// than any model makes them. Something held the answer back until it was whole, so that the times
// between its tokens were not measured.
func (r *Result) AtOnce() bool {
	steps := max(r.Events, r.tokens()) - 1
	return r.Events > 0 && steps > 0 && r.FirstTokenNS != nil && r.LastTokenNS != nil &&
		*r.LastTokenNS-*r.FirstTokenNS <= int64(usage.FastestToken)*int64(steps)
}

// tokens is how many the answer has, 0 where nobody counted them.
func (r *Result) tokens() int32 {
	if r.Output == nil {
		return 0
	}
	return *r.Output
}

// Several returns whether an answer has several tokens, between which there are times.
func (r *Result) Several() bool { return r.Events > 1 || r.Events == 1 && r.tokens() > 1 }

// An answer in fewer pieces than fewPieces, of more tokens than tokensOfPiece each in the mean, does
// not tell the times between its tokens. Those of a speculative decoder come in more pieces.
const (
	fewPieces     = 4
	tokensOfPiece = 4
)

// InPieces says whether the tokens of an answer came in so few pieces that the times between
// them are not known, such as the first token at once and the rest at the end. Events that
// follow each other faster than any model makes tokens are one piece.
func (r *Result) InPieces() bool {
	n := r.tokens()
	if r.Events < 2 || n <= tokensOfPiece {
		return false
	}
	pieces := int32(1)
	for _, gap := range r.GapsNS {
		if gap <= int64(usage.FastestToken) {
			continue
		}
		if pieces++; pieces >= fewPieces {
			return false
		}
	}
	return n > tokensOfPiece*pieces
}

// Untimed says whether the times between the tokens of an answer were not measured.
func (r *Result) Untimed() bool { return r.AtOnce() || r.InPieces() }

// Gaps yields the gaps between token events whose instants are known well, with their
// indices in GapsNS: none of an answer whose tokens have no times of their own.
func (r *Result) Gaps(yield func(i int, ns int64) bool) {
	if r.Untimed() {
		return
	}
	for i, gap := range r.GapsNS {
		if r.Certain(i) && r.Certain(i+1) && !yield(i, gap) {
			return
		}
	}
}

// KindPrepare is the class of a row whose prompt could not be made: it was due,
// and not sent.
const KindPrepare = "prepare"

// Classes of openai's closed list that readers of results tell from the others.
const (
	KindCancelled   = "cancelled"    // cut off on purpose, as its user did
	KindConnect     = "connect"      // no connection: the server took none, or the client had none left
	KindRateLimited = "rate_limited" // HTTP 429
	KindTooLong     = "too_long"     // the prompt does not fit the server's context
)

// A RequestKey names a request of a run: a row of the workload, and its round.
type RequestKey struct {
	Round int32
	Row   int64
}

// Compare orders requests by round and row, which is the order of a results file.
func (k RequestKey) Compare(o RequestKey) int {
	return cmp.Or(cmp.Compare(k.Round, o.Round), cmp.Compare(k.Row, o.Row))
}

// Key names the request that r is of.
func (r *Result) Key() RequestKey { return RequestKey{r.Round, r.RowID} }

// A SessionKey names a session of a run: a session of the workload in one of its rounds and
// plays.
type SessionKey struct {
	Session int64 `json:"session"`
	Round   int32 `json:"round,omitempty"`
	Play    int32 `json:"play,omitempty"`
}

// Compare orders sessions by round, play and number.
func (k SessionKey) Compare(o SessionKey) int {
	return cmp.Or(cmp.Compare(k.Round, o.Round), cmp.Compare(k.Play, o.Play), cmp.Compare(k.Session, o.Session))
}

// SessionKey names the session that r is of. It is not ok where it is of none.
func (r *Result) SessionKey() (k SessionKey, ok bool) {
	if r.Session == nil {
		return SessionKey{}, false
	}
	k = SessionKey{Session: *r.Session, Round: r.Round}
	if r.Play != nil {
		k.Play = *r.Play
	}
	return k, true
}

// resultBytes is about what a Result takes in memory and in a file.
func resultBytes(r *Result) int64 {
	return 448 + 8*int64(len(r.GapsNS)+len(r.Parents)) + 4*int64(len(r.EventTokens)+len(r.ReadDelaysUS))
}
