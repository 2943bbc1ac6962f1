package peerfile

import (
	"encoding/json"
	"strings"

	"reprise/replay/result"
)

// A generation is a request in GuideLLM's JSON. Instants are seconds of Unix time.
type generation struct {
	Info struct {
		Conversation string `json:"conversation_id"`
		Timings      struct {
			Targeted     *float64 `json:"targeted_start"`
			Start        *float64 `json:"request_start"`
			First        *float64 `json:"first_request_iteration"`
			FirstToken   *float64 `json:"first_token_iteration"`
			FirstContent *float64 `json:"first_output_token_iteration"`
			LastToken    *float64 `json:"last_token_iteration"`
			End          *float64 `json:"request_end"`
		} `json:"timings"`
	} `json:"info"`
	Prompt *int32 `json:"prompt_tokens"`
	Cached *int32 `json:"cached_tokens"`
	Output *int32 `json:"output_tokens"`
}

// decodeGuideLLM reads GuideLLM's JSON: a run for each benchmark, such as each rate of a
// sweep.
func decodeGuideLLM(d *json.Decoder) (runs []run, err error) {
	version, usage := "", true
	err = members(d, func(key string) error {
		switch key {
		case "metadata":
			var m struct {
				Version string `json:"guidellm_version"`
			}
			err := d.Decode(&m)
			version = m.Version
			return err
		case "benchmarks":
			return elements(d, func(int) error {
				r := run{epoch: true, read: result.Reading{Instants: true, Due: true}}
				err := members(d, func(key string) error { return r.addBenchmark(d, key, &usage) })
				runs = append(runs, r)
				return err
			})
		}
		return skip(d)
	})
	for i := range runs {
		r := &runs[i]
		r.read.Tool = strings.TrimSpace("GuideLLM " + version)
		for j := range r.rows {
			if row := &r.rows[j]; row.Output != nil {
				row.OutputFrom = result.FromTokenizer
				if usage {
					row.OutputFrom = result.FromUsage
				}
			}
		}
		r.read.Lacks = []string{
			"the times between tokens: there is TPOT and no ITL",
			"whether the server counted the tokens of a request, or GuideLLM's tokenizer",
			lacksClasses,
			lacksClient,
		}
	}
	return runs, err
}

// addBenchmark takes one member of a benchmark.
func (r *run) addBenchmark(d *json.Decoder, key string, usage *bool) error {
	switch key {
	case "config":
		var config struct {
			Strategy struct {
				Kind    string `json:"type_"`
				Streams int    `json:"streams"`
			} `json:"strategy"`
			Backend struct {
				Model  string `json:"model"`
				Format string `json:"request_format"`
			} `json:"backend"`
			Usage *bool `json:"prefer_response_metrics"`
		}
		if err := d.Decode(&config); err != nil {
			return err
		}
		r.Model, r.API = config.Backend.Model, result.APIChat
		switch {
		case strings.HasSuffix(config.Backend.Format, "/embeddings"):
			r.API = result.APIEmbeddings
		case strings.HasSuffix(config.Backend.Format, "/responses"):
			r.API = result.APIResponses
		case strings.HasSuffix(config.Backend.Format, "/completions") &&
			!strings.Contains(config.Backend.Format, "chat"):
			r.API = result.APICompletions
		}
		switch config.Strategy.Kind {
		case "synchronous":
			r.Timing, r.Concurrency = result.ClosedLoop, 1
		case "concurrent":
			r.Timing, r.Concurrency = result.ClosedLoop, config.Strategy.Streams
		}
		*usage = config.Usage == nil || *config.Usage
		return nil
	case "scheduler_state":
		var state struct {
			Processing int64 `json:"processing_requests"` // at the end, so that the file has no results of them
		}
		err := d.Decode(&state)
		r.Requests = max(state.Processing, 0)
		return err
	case "requests":
		classes := map[string]string{"successful": "", "errored": "other", "incomplete": result.KindCancelled}
		conversations := map[string]int64{}
		return members(d, func(key string) error {
			class, known := classes[key]
			if !known {
				return skip(d)
			}
			return elements(d, func(int) error {
				var g generation
				if err := d.Decode(&g); err != nil {
					return err
				}
				row := g.row(class)
				if row.SentNS == nil { // it never began
					return nil
				}
				session, ok := conversations[g.Info.Conversation]
				if !ok {
					session = int64(len(conversations))
					conversations[g.Info.Conversation] = session
				}
				row.Session = &session
				r.rows = append(r.rows, row)
				return nil
			})
		})
	}
	return skip(d)
}

func (g *generation) row(class string) (row result.Result) {
	row.Error = class
	t := &g.Info.Timings
	for _, instant := range []struct {
		into **int64
		of   *float64
	}{
		{&row.SentNS, t.Start}, {&row.FirstEventNS, t.First}, {&row.FirstTokenNS, t.FirstToken},
		{&row.FirstContentNS, t.FirstContent}, {&row.LastTokenNS, t.LastToken}, {&row.DoneNS, t.End},
	} {
		if instant.of != nil {
			*instant.into = epochNS(*instant.of)
		}
	}
	if row.SentNS == nil {
		return row
	}
	row.DueNS = *row.SentNS
	if t.Targeted != nil {
		row.DueNS = *epochNS(*t.Targeted)
	}
	if g.Prompt != nil {
		row.WantInput = *g.Prompt
	}
	row.Input, row.Cached = g.Prompt, g.Cached
	if class != "" {
		row.FirstEventNS, row.FirstTokenNS, row.FirstContentNS, row.LastTokenNS, row.DoneNS = nil, nil, nil, nil, nil
		return row
	}
	row.Output = g.Output
	if g.Output != nil {
		row.WantOutput = g.Output
	}
	return row
}
