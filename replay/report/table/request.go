package table

import (
	"cmp"
	"math"
	"slices"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/sample"
)

// A request is a row of the table. Instants are in seconds from the start of the run,
// latencies in milliseconds. What did not happen, or was not told, is null.
//
// Latencies are of requests that succeeded, as in a report: one that was refused in a
// millisecond must not make the server look fast. They count from when the request was
// sent, and with from_due in their name from when it was due.
type request struct {
	trace.Row `parquet:"-"`

	Run     string `parquet:"run,dict"`         // name of the run
	RowID   int64  `parquet:"row,delta"`        // row of the workload, from 0
	Round   int32  `parquet:"round"`            // which time the workload was played, from 0
	Session *int64 `parquet:"session,optional"` // as in the workload
	Turn    *int32 `parquet:"turn,optional"`    // place among the requests of the session in this run and round, from 0
	Thread  *int32 `parquet:"thread,optional"`  // agent of the session, from 0, as in the workload
	Play    *int32 `parquet:"play,optional"`    // which time the session was played, from 0, in a load by session

	RequestID string `parquet:"request_id,optional"` // X-Request-Id, unless the user set that header

	// Of the request's session tree, the same in all of its requests; null where the run has too
	// many sessions to keep all.
	Tree          *int64 `parquet:"tree,optional"`                // the least session of the tree
	SessionStatus string `parquet:"session_status,optional,dict"` // see [report.SessionOutcome]
	// from its first due time to its last answer, of one that succeeded
	SessionTime   *float64 `parquet:"session_time_s,optional"`
	SessionServer *float64 `parquet:"session_server_s,optional"` // of that the server's part along the critical path

	Phase        string `parquet:"phase,dict"`  // warm_up, measured or cool_down
	Status       string `parquet:"status,dict"` // succeeded, failed, cancelled or not_sent
	Error        string `parquet:"error,optional,dict"`
	HTTPStatus   *int32 `parquet:"http_status,optional"`
	FinishReason string `parquet:"finish_reason,optional,dict"`
	Attempts     int32  `parquet:"attempts"` // more than one was a retry

	Model    string `parquet:"model,optional,dict"` // that the run asked for
	API      string `parquet:"api,optional,dict"`
	Endpoint string `parquet:"endpoint,optional,dict"` // URL
	Category string `parquet:"category,optional,dict"` // prefix reuse in the workload
	Class    string `parquet:"class,optional,dict"`    // priority or SLO class in the workload

	Due        float64  `parquet:"due_s"` // when the schedule wanted it sent
	Sent       *float64 `parquet:"sent_s,optional"`
	FirstToken *float64 `parquet:"first_token_s,optional"`
	LastToken  *float64 `parquet:"last_token_s,optional"`
	Done       *float64 `parquet:"done_s,optional"` // the stream closed, or the failure

	SendLag     *float64 `parquet:"send_lag_ms,optional"` // sent − due, of every request that was sent
	Headers     *float64 `parquet:"headers_ms,optional"`  // to the response's headers
	TTFT        *float64 `parquet:"ttft_ms,optional"`
	TTFTFromDue *float64 `parquet:"ttft_from_due_ms,optional"`
	TTFO        *float64 `parquet:"ttfo_ms,optional"` // to the first token after reasoning
	E2E         *float64 `parquet:"e2e_ms,optional"`
	E2EFromDue  *float64 `parquet:"e2e_from_due_ms,optional"`
	TPOT        *float64 `parquet:"tpot_ms,optional"`
	Queue       *float64 `parquet:"queue_ms,optional"`    // at the server, as its answer says
	Prefill     *float64 `parquet:"prefill_ms,optional"`  // at the server, to the first token
	ITLMean     *float64 `parquet:"itl_mean_ms,optional"` // of the gaps between token events of this request
	ITLMedian   *float64 `parquet:"itl_p50_ms,optional"`
	ITLMax      *float64 `parquet:"itl_max_ms,optional"`

	Input          *int32 `parquet:"input_tokens,optional"` // as the server counted
	InputWanted    int32  `parquet:"input_tokens_wanted"`   // as the workload asks
	Output         *int32 `parquet:"output_tokens,optional"`
	OutputWanted   *int32 `parquet:"output_tokens_wanted,optional"`
	OutputFrom     string `parquet:"output_from,optional,dict"`       // who counted the output: usage or tokenizer
	Cached         *int32 `parquet:"cached_tokens,optional"`          // as the server said
	CachedExpected *int32 `parquet:"cached_tokens_expected,optional"` // see [report.Reusable]
	Events         int32  `parquet:"token_events"`
}

// A deriver makes the rows of one run.
type deriver struct {
	name  string
	run   *result.Run
	round int32
	turns map[int64]int32 // requests of each session so far in the round

	sessions map[result.SessionKey]*report.SessionTime // of the tree that each belongs to
}

// meet reads the results of the run once for what needs all requests of a session.
func (d *deriver) meet(results trace.Reader[result.Result]) error {
	times := report.NewSessionTimes(d.run)
	if err := trace.Each(results, func(_ int64, r *result.Result) error {
		if err := report.CheckResult(r); err != nil {
			return err
		}
		times.Add(r)
		return nil
	}); err != nil {
		return err
	}
	d.sessions = map[result.SessionKey]*report.SessionTime{}
	all := times.Sessions()
	for i := range all {
		for _, key := range all[i].Sessions {
			d.sessions[key] = &all[i]
		}
	}
	return nil
}

// derive makes the row of a result. One that contradicts itself is an error.
func (d *deriver) derive(r *result.Result) (request, error) {
	if err := report.CheckResult(r); err != nil {
		return request{}, err
	}
	outcome, class := report.OutcomeOf(r)
	q := request{
		Run: d.name, RowID: r.RowID, Round: r.Round, Session: r.Session, Turn: d.turnOf(r),
		Thread: r.Thread, Play: r.Play, RequestID: d.run.RequestID(r.RowID, r.Round),
		Phase: "measured", Status: outcome.String(), Error: class, HTTPStatus: r.HTTPStatus,
		FinishReason: r.FinishReason, Attempts: r.Attempts,
		Model: d.run.Model, API: r.API, Category: r.Category, Class: r.Class,
		Due: float64(r.DueNS) / 1e9, Sent: seconds(r.SentNS), FirstToken: seconds(r.FirstTokenNS),
		LastToken: seconds(r.LastTokenNS), Done: seconds(r.DoneNS),
		Input: r.Input, InputWanted: r.WantInput, Output: r.Output, OutputWanted: r.WantOutput,
		OutputFrom: r.OutputFrom,
		Cached:     r.Cached, Events: r.Events,
	}
	if key, ok := r.SessionKey(); ok {
		if of := d.sessions[key]; of != nil {
			q.Tree, q.SessionStatus = trace.Ptr(of.Key.Session), of.Outcome.String()
			if of.Outcome == report.SessionSucceeded {
				q.SessionTime, q.SessionServer = seconds(&of.NS), seconds(&of.ServerNS)
			}
		}
	}
	if before, after := d.run.Window.Holds(r); before {
		q.Phase = "warm_up"
	} else if after {
		q.Phase = "cool_down"
	}
	if r.Endpoint != nil && *r.Endpoint >= 0 && int(*r.Endpoint) < len(d.run.Endpoints) {
		q.Endpoint = d.run.Endpoints[*r.Endpoint]
	}
	if _, blocks, ok := report.Reusable(d.run, r, int64(cmp.Or(d.run.ServerBlock, d.run.BlockSize))); ok {
		q.CachedExpected = trace.Ptr(int32(blocks))
	}
	if r.SentNS != nil && d.run.Timed() {
		q.SendLag = milliseconds(*r.SentNS - r.DueNS)
	}
	if outcome == report.Succeeded {
		q.addLatencies(r)
	}
	return q, nil
}

// turnOf counts the requests of a session. Results come in the order of rounds and rows,
// and the rows of a session in that of its turns.
func (d *deriver) turnOf(r *result.Result) *int32 {
	if r.Session == nil {
		return nil
	}
	if d.turns == nil || r.Round != d.round {
		d.round, d.turns = r.Round, map[int64]int32{}
	}
	n := d.turns[*r.Session]
	d.turns[*r.Session]++
	return &n
}

// addLatencies adds those of a request that succeeded.
func (q *request) addLatencies(r *result.Result) {
	l := report.Derive(r)
	for _, c := range []struct {
		to   **float64
		from report.Span
	}{
		{&q.Headers, l.Headers[report.FromSent]},
		{&q.TTFT, l.TTFT[report.FromSent]}, {&q.TTFTFromDue, l.TTFT[report.FromDue]},
		{&q.TTFO, l.TTFO[report.FromSent]},
		{&q.E2E, l.E2E[report.FromSent]}, {&q.E2EFromDue, l.E2E[report.FromDue]},
		{&q.TPOT, l.TPOT},
	} {
		if c.from.OK {
			*c.to = milliseconds(c.from.NS)
		}
	}
	if r.QueueNS != nil {
		q.Queue = milliseconds(*r.QueueNS)
	}
	if r.PrefillNS != nil {
		q.Prefill = milliseconds(*r.PrefillNS)
	}
	if len(r.GapsNS) == 0 || r.Untimed() {
		return
	}
	var gaps sample.Moments
	for _, gap := range r.GapsNS {
		gaps.Add(gap)
	}
	order := sample.Sorted(slices.Sorted(slices.Values(r.GapsNS)))
	q.ITLMean = milliseconds(int64(math.Round(gaps.Mean()))) // to the nanosecond, as all times are
	q.ITLMedian, q.ITLMax = milliseconds(order.At(1, 2)), milliseconds(gaps.Max)
}

func milliseconds(ns int64) *float64 { return trace.Ptr(float64(ns) / 1e6) }

func seconds(ns *int64) *float64 {
	if ns == nil {
		return nil
	}
	return trace.Ptr(float64(*ns) / 1e9)
}
