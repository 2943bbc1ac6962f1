package export

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets"
	"reprise/trace"
)

const blisHeader = "trace_version: 2\ntime_unit: microseconds\nmode: generated\nwarm_up_requests: 0\n"

const blisColumns = "request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming," +
	"input_tokens,output_tokens,text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,deadline_us,server_input_tokens," +
	"arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,finish_reason\n"

// blisClasses are the SLO classes that BLIS knows.
var blisClasses = []string{"critical", "standard", "sheddable", "batch", "background"}

// blisFormat writes TraceV2 of BLIS (github.com/inference-sim/inference-sim,
// sim/workload/tracev2.go), a YAML header and a CSV, which its simulator
// replays. Users become clients; 0 and "" stand for what is not known.
func blisFormat() Format {
	return Format{
		Name:    "blis",
		About:   "TraceV2 of the BLIS simulator: a CSV of requests and a second file with a YAML header",
		Example: "0,,,,0,0,,0,true,700,21,700,0,0,0,0,model-0,0,0,1500200,1500200,0,0,0,ok,,",
		Loses: []string{
			"times below the microsecond", "block ids: BLIS has one prefix for each group of requests, and " +
				"none is written",
			"parents and think times, which BLIS takes from the arrivals in a session",
			"adapters, replicas, images, sampling settings",
			"missing values, which become 0", "classes other than its own five",
		},
		Use:       "blis replay --trace-header HEADER --trace-data FILE --model MODEL",
		HeaderExt: "yaml",
		top:       blisColumns,
		says: []string{"session", "turn", "user", "model", "class", "reasoning_tokens", "image_tokens",
			"stream", "status",
			"finish_reason", "ttft_ns", "e2e_ns"},
		open: func(o Options, l *losses) (encoder, error) {
			if _, err := io.WriteString(o.Header, blisHeader); err != nil {
				return nil, err
			}
			e := &blisEncoder{model: o.Model, losses: l, sessions: placer{}}
			return e.encode, nil
		},
	}
}

type blisEncoder struct {
	model    string
	losses   *losses
	sessions placer
}

func (e *blisEncoder) encode(b []byte, row int64, r *trace.Request) ([]byte, error) {
	b = strconv.AppendInt(b, row, 10)
	b = appendOptional(append(b, ','), r.User)
	b = append(b, ",,"...) // tenant_id
	if r.Class != nil {
		known := slices.Contains(blisClasses, *r.Class)
		e.losses.count("%d of %d rows are of a class that BLIS does not know", !known)
		if known {
			b = append(b, *r.Class...)
		}
	}
	b = appendOptional(append(b, ','), r.Session)
	b = append(b, ',')
	b = strconv.AppendInt(b, e.round(row, r), 10)
	b = append(b, ",,0,"...) // prefix_group, prefix_length
	b = strconv.AppendBool(b, r.Stream != nil && *r.Stream)
	images := min(valueOf(r.ImageTokens), r.InputTokens)
	for _, n := range []*int32{&r.InputTokens, r.OutputTokens, trace.Ptr(r.InputTokens - images), &images} {
		b = appendOptional(append(b, ','), n)
	}
	b = append(b, ",0,0,"...) // audio_tokens, video_tokens
	ratio := 0.0              // the share of the output that was reasoning
	if output := r.OutputOr(0); output != 0 {
		ratio = float64(min(max(valueOf(r.ReasoningTokens), 0), output)) / float64(output)
	}
	b = strconv.AppendFloat(b, ratio, 'f', -1, 64)
	b = append(b, ',')
	model := r.Model
	if e.model != "" {
		e.losses.count("%d of %d rows are of another model than the one named", model != "" && model != e.model)
		model = e.model
	}
	b = appendCSV(b, model)
	b = append(b, ",0,0"...) // deadline_us, server_input_tokens
	e.losses.count("%d of %d arrivals were rounded to the microsecond", r.ArrivalNS%1e3 != 0)
	at := []int64{r.ArrivalNS, r.ArrivalNS, 0, 0} // arrival, send, first chunk and last chunk
	for i, latency := range []*int64{r.TTFTNS, r.E2ENS} {
		if latency != nil {
			at[2+i] = r.ArrivalNS + max(*latency, 0)
			e.losses.count("%d recorded latencies in %d rows were rounded to the microsecond", *latency%1e3 != 0)
		}
	}
	for _, ns := range at {
		b = append(b, ',')
		b = strconv.AppendInt(b, (ns+500)/1e3, 10)
	}
	b = append(b, ",0,"...) // num_chunks
	switch r.Status {
	case "", trace.StatusOK:
		b = append(b, "ok"...)
	case trace.StatusCancelled:
		e.losses.count("%d of %d rows were cancelled, which BLIS has no word for: they are written as incomplete", true)
		b = append(b, "incomplete"...)
	default:
		b = append(b, "error"...)
	}
	b = append(b, ",,"...) // error_message
	b = appendCSV(b, r.FinishReason)
	return append(b, '\n'), nil
}

// round returns the place of a row in its session: BLIS refuses a session whose
// rounds do not count from 0.
func (e *blisEncoder) round(row int64, r *trace.Request) int64 {
	round := int32(0)
	if r.Session != nil {
		round = e.sessions.place(row, r).turn
	}
	e.losses.count("%d of %d rows have a number of their turn that is not their place in the session",
		r.Turn != nil && *r.Turn != round)
	return int64(round)
}

func valueOf(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

func appendOptional[T int32 | int64](b []byte, n *T) []byte {
	if n == nil {
		return b
	}
	return strconv.AppendInt(b, int64(*n), 10)
}

// appendCSV appends a field, quoted where RFC 4180 wants it.
func appendCSV(b []byte, field string) []byte {
	if !strings.ContainsAny(field, ",\"\r\n") {
		return append(b, field...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(field, `"`, `""`)...)
	return append(b, '"')
}

// inferencePerfFormat writes the CSV of the Azure traces of 2023, which
// inference-perf replays. Its reader drops dates that have a zone and no
// fraction, so every date has seven digits, as Azure's do, and no zone; until
// pull request 782 of September 2026 it kept two of them, since then six.
// Times count from [datasets.Epoch].
func inferencePerfFormat() Format {
	const layout = "2006-01-02 15:04:05.0000000"
	return Format{
		Name:    "inference-perf",
		About:   "CSV of the Azure traces, for inference-perf: TIMESTAMP,ContextTokens,GeneratedTokens",
		Example: "1970-01-01 00:00:01.5002000,700,21",
		Loses: []string{
			"times below 100 ns; inference-perf reads them to 1 µs, before September 2026 to 10 ms",
			"block ids, so all prefix reuse",
			"sessions, parents and think times", "all columns but arrival and lengths",
		},
		// The stage is not used beside a trace, and 0.7 does not run without one.
		Use: "inference-perf --server.type vllm --server.base_url URL --server.model_name MODEL --server.ignore_eos " +
			"true --api.type completion --api.streaming true" +
			" --load.type trace_replay --load.trace.file FILE --load.trace.format AzurePublicDataset --load.stages " +
			"'[{\"rate\": 1, \"duration\": 1}]'" +
			" --data.type random --data.trace.file FILE --data.trace.format AzurePublicDataset " +
			"--report.request_lifecycle.per_request true",
		Tried: "inference-perf 0.7.0, 23 November 2026",
		top:   "TIMESTAMP,ContextTokens,GeneratedTokens\n",
		open: func(_ Options, l *losses) (encoder, error) {
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				l.count("%d of %d arrivals were rounded to 100 ns", r.ArrivalNS%100 != 0)
				l.count("%d of %d arrivals are finer than the microsecond that inference-perf reads",
					r.ArrivalNS%1e3 != 0)
				l.count("%d of %d arrivals are finer than 10 ms, to which inference-perf before September "+
					"2026 cuts them", r.ArrivalNS%1e7 != 0)
				b = datasets.Epoch.Add(time.Duration(r.ArrivalNS+50)).AppendFormat(b, layout)
				b = append(b, ',')
				b = strconv.AppendInt(b, int64(r.InputTokens), 10)
				b = appendOptional(append(b, ','), r.OutputTokens)
				return append(b, '\n'), nil
			}, nil
		},
	}
}
