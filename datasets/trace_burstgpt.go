package datasets

import (
	"bufio"
	"maps"
	"slices"
	"time"

	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

var burstGPTFields = Mapping{
	"time":          {"Timestamp"},
	"model":         {"Model"},
	"input_tokens":  {"Request tokens"},
	"output_tokens": {"Response tokens"},
	"class":         {"Log Type"},
}

// burstGPTLater are the columns that newer files have besides.
var burstGPTLater = Mapping{
	"session": {"Session ID", "SessionID"},
	"e2e_s":   {"Elapsed time"},
}

// burstGPTFormat reads BurstGPT (arXiv 2401.17644; github.com/HPMLL/BurstGPT):
// CSV of seconds from midnight of the first day. Columns are matched by name, in
// any order; newer files add the session, of conversations only, and the time to
// the whole response, which is not a TTFT. A request with no response tokens
// has failed, say its authors. The kind of log (conversation or API) becomes the
// class. Turns of a session are not put in each other's wake: they may overlap.
func burstGPTFormat() Format {
	return Format{
		Name:  "burstgpt",
		reads: append(mappedFields(burstGPTFields, nil), mappedFields(burstGPTLater, nil)...),
		About: "BurstGPT traces: CSV of seconds, models, lengths and kinds of log, with sessions in newer files",
		Example: "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log " +
			"Type\n5,ChatGPT,472,18,490,Conversation log",
		timed:  true,
		csv:    true,
		detect: sniff.Columns("Timestamp", "Request tokens", "Response tokens"),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			m, columns := maps.Clone(burstGPTFields), sniff.HeadColumns(head)
			for name, paths := range burstGPTLater {
				if slices.ContainsFunc(paths, func(p string) bool { return slices.Contains(columns, p) }) {
					m[name] = paths
				}
			}
			d, err := openCSV(in, head, m, o, s)
			if err != nil {
				return nil, err
			}
			d.timing = withTimes
			if d.clock.Told == 0 {
				d.clock.Told = time.Second
			}
			for i := range d.fields {
				f := &d.fields[i]
				f.required = f.name == "input_tokens" || f.name == "output_tokens"
				if f.name == "output_tokens" {
					output := f.set
					f.set = func(b *builder, v any) string {
						why := output(b, v)
						if why == "" && *b.Entry.OutputTokens == 0 { // the request failed
							b.Entry.Status = trace.StatusFailed
						}
						return why
					}
				}
			}
			return d, nil
		},
	}
}
