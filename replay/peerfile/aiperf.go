package peerfile

import (
	"encoding/json"
	"strings"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
)

// A record is a line of AIPerf's profile_export.jsonl. Instants are nanoseconds of Unix
// time.
type record struct {
	Metadata struct {
		Conversation string `json:"conversation_id"`
		Issued       *int64 `json:"credit_issued_ns"`
		Start        *int64 `json:"request_start_ns"`
		Ack          *int64 `json:"request_ack_ns"`
		End          *int64 `json:"request_end_ns"`
		Phase        string `json:"benchmark_phase"`
		Cancelled    bool   `json:"was_cancelled"`
	} `json:"metadata"`
	Metrics map[string]struct {
		Value json.RawMessage `json:"value"`
		Unit  string          `json:"unit"`
	} `json:"metrics"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// number is a metric of one number, in the unit; missing where it has another.
func (r *record) number(name, unit string) (v float64, ok bool) {
	m, has := r.Metrics[name]
	return v, has && m.Unit == unit && json.Unmarshal(m.Value, &v) == nil
}

// tokens is a metric that counts tokens, or nil.
func (r *record) tokens(name string) *int32 {
	v, ok := r.number(name, "tokens")
	if !ok || v < 0 || v > 1<<30 {
		return nil
	}
	return trace.Ptr(int32(v))
}

// decodeAIPerf reads the lines of AIPerf's requests. Those of a warm-up are left out.
func decodeAIPerf(d *json.Decoder) ([]run, error) {
	r := run{epoch: true, read: result.Reading{Tool: "AIPerf", Instants: true, Due: true}}
	conversations := map[string]int64{}
	for d.More() {
		var line record
		if err := d.Decode(&line); err != nil {
			return nil, err
		}
		m := &line.Metadata
		if m.Phase != "" && m.Phase != "profiling" || m.Start == nil {
			continue
		}
		session, known := conversations[m.Conversation]
		if !known {
			session = int64(len(conversations))
			conversations[m.Conversation] = session
		}
		row, err := line.row()
		if err != nil {
			return nil, err
		}
		row.Session = &session
		r.rows = append(r.rows, row)
	}
	r.read.Lacks = []string{
		"how late AIPerf issued requests: they count as due when it did",
		"which API and model it asked",
		lacksClient,
	}
	return []run{r}, nil
}

func (r *record) row() (row result.Result, err error) {
	m := &r.Metadata
	row = result.Result{DueNS: *m.Start, SentNS: m.Start}
	if m.Issued != nil {
		row.DueNS = *m.Issued
	}
	if n := r.tokens("input_sequence_length"); n != nil {
		row.WantInput = *n
	}
	row.Input, row.Cached = r.tokens("usage_prompt_tokens"), r.tokens("usage_prompt_cache_read_tokens")
	switch {
	case m.Cancelled:
		row.Error = result.KindCancelled
		return row, nil
	case r.Error != nil:
		row.Error = openai.HTTPError(r.Error.Code, nil).Kind // what the file says in words is not looked at
		if r.Error.Code >= 100 && r.Error.Code < 600 {
			row.HTTPStatus = trace.Ptr(int32(r.Error.Code))
		}
		return row, nil
	}
	row.HeadersNS, row.DoneNS = m.Ack, m.End
	if row.Output = r.tokens("usage_completion_tokens"); row.Output != nil {
		row.OutputFrom = result.FromUsage
	} else if row.Output = r.tokens("output_sequence_length"); row.Output != nil {
		row.OutputFrom = result.FromTokenizer
	}
	if row.Output != nil {
		row.WantOutput = row.Output
	}
	for _, instant := range []struct {
		name string
		into []**int64
	}{
		{"time_to_first_token", []**int64{&row.FirstEventNS, &row.FirstTokenNS}},
		{"time_to_first_output_token", []**int64{&row.FirstContentNS}},
		{"request_latency", []**int64{&row.LastTokenNS}},
	} {
		v, ok := r.number(instant.name, "ms")
		if !ok {
			continue
		}
		after, err := nanoseconds(v, perMilli)
		if err != nil {
			return row, err
		}
		for _, p := range instant.into {
			*p = at(*m.Start, after)
		}
	}
	if row.FirstTokenNS == nil { // it was not streamed
		row.LastTokenNS = nil
		return row, nil
	}
	row.Events = 1
	var gaps []float64
	if g := r.Metrics["inter_chunk_latency"]; g.Unit == "ms" && strings.HasPrefix(string(g.Value), "[") {
		if err := json.Unmarshal(g.Value, &gaps); err != nil {
			return row, err
		}
	}
	for _, gap := range gaps {
		ns, err := nanoseconds(gap, perMilli)
		if err != nil {
			return row, err
		}
		row.GapsNS = append(row.GapsNS, ns)
		row.Events++
	}
	return row, nil
}
