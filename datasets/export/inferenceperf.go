package export

import (
	"strconv"
	"time"

	"reprise/datasets"
	"reprise/trace"
)

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
			"times below 100 ns; inference-perf reads them to 1 µs, before September 2026 to 10 ms", "block ids, so all sharing of prefixes",
			"sessions, parents and think times", "all columns but arrival and lengths",
		},
		Use: "inference-perf --config_file config.yml, where load is {type: trace_replay, trace: {file: FILE, format: AzurePublicDataset}} and data is {type: random, trace: the same}",
		top: "TIMESTAMP,ContextTokens,GeneratedTokens\n",
		open: func(_ Options, l *losses) (encoder, error) {
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				l.count("%d of %d arrivals were rounded to 100 ns", r.ArrivalNS%100 != 0)
				l.count("%d of %d arrivals are finer than the microsecond that inference-perf reads", r.ArrivalNS%1e3 != 0)
				l.count("%d of %d arrivals are finer than 10 ms, to which inference-perf before September 2026 cuts them", r.ArrivalNS%1e7 != 0)
				b = datasets.Epoch.Add(time.Duration(r.ArrivalNS+50)).AppendFormat(b, layout)
				b = append(b, ',')
				b = strconv.AppendInt(b, int64(r.InputTokens), 10)
				b = append(b, ',')
				b = strconv.AppendInt(b, int64(r.OutputTokens), 10)
				return append(b, '\n'), nil
			}, nil
		},
	}
}
