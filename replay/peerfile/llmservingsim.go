package peerfile

import (
	"encoding/json"

	"reprise/replay/result"
	"reprise/trace"
)

// A served is a line of the requests that LLMServingSim's bench records inside of vLLM.
// Instants are seconds of vLLM's clock, which has no epoch.
type served struct {
	Input     int32   `json:"input_toks"`
	Output    int32   `json:"output_toks"`
	Queued    float64 `json:"queued_ts"`
	Scheduled float64 `json:"scheduled_ts"`
	First     float64 `json:"first_token_ts"`
	Last      float64 `json:"last_token_ts"`
}

// decodeLLMServingSim reads the lines of LLMServingSim's bench. A request counts as sent
// when vLLM had queued it.
func decodeLLMServingSim(d *json.Decoder) ([]run, error) {
	r := run{read: result.Reading{Tool: "LLMServingSim", Instants: true}}
	base := 0.0
	for d.More() {
		var line served
		if err := d.Decode(&line); err != nil {
			return nil, err
		}
		if len(r.rows) == 0 {
			base = line.Queued
		}
		row := result.Result{WantInput: line.Input, WantOutput: trace.Ptr(line.Output)}
		var at [3]int64
		for i, seconds := range []float64{line.Queued, line.First, line.Last} {
			ns, err := nanoseconds(seconds-base, perSecond)
			if err != nil {
				return nil, err
			}
			at[i] = ns
		}
		row.DueNS, row.SentNS = at[0], &at[0]
		if line.First == 0 || line.Last == 0 { // it was not answered
			row.Error = "other"
			r.rows = append(r.rows, row)
			continue
		}
		row.Input, row.Output, row.OutputFrom, row.FinishReason = trace.Ptr(line.Input), trace.Ptr(line.Output),
			result.FromUsage, "length"
		first, last := at[1], at[2]
		row.FirstEventNS, row.FirstTokenNS, row.LastTokenNS, row.DoneNS = &at[1], &first, &last, &at[2]
		r.rows = append(r.rows, row)
	}
	r.lack("when each token but the first and the last came", "when it ran",
		"which API and model it asked", lacksClasses)
	return []run{r}, nil
}
