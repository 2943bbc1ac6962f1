package peerfile

import (
	"encoding/json"

	"reprise/replay/result"
	"reprise/trace"
)

// A lifecycle is a request in inference-perf's per_request_lifecycle_metrics.json. Instants
// are seconds of a clock without an epoch.
type lifecycle struct {
	Start float64 `json:"start_time"`
	End   float64 `json:"end_time"`
	Info  struct {
		Input    int32 `json:"input_tokens"`
		Response *struct {
			Output int32     `json:"output_tokens"`
			Tokens []float64 `json:"output_token_times"`
			Usage  *struct {
				Prompt     *int32 `json:"prompt_tokens"`
				Completion *int32 `json:"completion_tokens"`
				Details    *struct {
					Cached *int32 `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			} `json:"server_usage"`
		} `json:"response_metrics"`
	} `json:"info"`
	Error *struct{} `json:"error"`
}

// decodeInferencePerf reads the array of inference-perf's requests.
func decodeInferencePerf(d *json.Decoder) ([]run, error) {
	r := run{read: result.Reading{Tool: "inference-perf", Instants: true}}
	base := 0.0 // the clock may be older than a run can be long
	err := elements(d, func(i int) error {
		var l lifecycle
		if err := d.Decode(&l); err != nil {
			return err
		}
		if i == 0 {
			base = l.Start
		}
		row, err := l.row(base)
		r.rows = append(r.rows, row)
		return err
	})
	r.lack("when it ran", "which API and model it asked", lacksClasses)
	return []run{r}, err
}

func (l *lifecycle) row(base float64) (row result.Result, err error) {
	instant := func(seconds float64) *int64 {
		ns, nsErr := nanoseconds(seconds-base, perSecond)
		if nsErr != nil {
			err = nsErr
		}
		return &ns
	}
	row.SentNS = instant(l.Start)
	row.DueNS = *row.SentNS
	row.WantInput = l.Info.Input
	if l.Error != nil {
		row.Error = "other"
		return row, err
	}
	row.DoneNS = instant(l.End)
	response := l.Info.Response
	if response == nil {
		return row, err
	}
	row.Output, row.OutputFrom, row.WantOutput = trace.Ptr(response.Output), result.FromTokenizer,
		trace.Ptr(response.Output)
	if u := response.Usage; u != nil {
		row.Input = u.Prompt
		if u.Completion != nil {
			row.Output, row.OutputFrom, row.WantOutput = u.Completion, result.FromUsage, u.Completion
		}
		if u.Details != nil {
			row.Cached = u.Details.Cached
		}
	}
	// All tokens of an event have the instant of the event.
	several := false
	for i, seconds := range response.Tokens {
		now := instant(seconds)
		switch {
		case i == 0:
			row.FirstEventNS, row.FirstTokenNS, row.LastTokenNS = instant(seconds), now, instant(seconds)
		case *now == *row.LastTokenNS:
			row.EventTokens[len(row.EventTokens)-1]++
			several = true
			continue
		default:
			row.GapsNS = append(row.GapsNS, *now-*row.LastTokenNS)
			row.LastTokenNS = now
		}
		row.Events++
		row.EventTokens = append(row.EventTokens, 1)
	}
	if !several {
		row.EventTokens = nil
	}
	return row, err
}
