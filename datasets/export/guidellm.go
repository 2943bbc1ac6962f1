package export

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/trace"
)

var errGuideLLMID = errors.New("has a block id above 2147483647, more than GuideLLM can hold: number the blocks densely")

// guideLLMFormat writes the Mooncake lines with timestamps in seconds. GuideLLM
// sends at start + time_scale·timestamp seconds and never converts, so that the
// milliseconds of the release run a thousand times too slow. Its ids have 32
// bits and a sign, its times are 32-bit floats. A trace without blocks is
// written without ids, for its kind trace_synthetic.
func guideLLMFormat() Format {
	return Format{
		Name:    "guidellm",
		About:   "Mooncake lines with timestamps in seconds, as GuideLLM takes them",
		Example: `{"timestamp": 1.5002, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}`,
		Loses: []string{
			"sessions, parents and think times", "all columns but arrival, lengths and blocks",
			"the last digits of times, which GuideLLM holds as 32-bit floats: 0.1 ms after an hour, 4 ms after a day",
			"exact prompt lengths, which drift as GuideLLM decodes and encodes its prompts",
		},
		Use:  "guidellm run --profile kind=replay,time_scale=1.0 --data kind=mooncake,path=FILE,hash_id_block_size=BLOCK (kind=trace_synthetic without blocks)",
		says: []string{"blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			var off time.Duration
			l.sum(func() string {
				if off < time.Microsecond {
					return ""
				}
				return fmt.Sprintf("GuideLLM holds times as 32-bit floats: in this trace they are off by up to %v", off.Round(time.Microsecond))
			})
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				off = max(off, float32Error(r.ArrivalNS))
				b = append(b, `{"timestamp": `...)
				b = appendSeconds(b, r.ArrivalNS)
				b = appendLengths(b, r)
				if o.BlockSize > 0 {
					if err := wantBlocks(r, o.BlockSize, "GuideLLM"); err != nil {
						return b, err
					}
					if slices.ContainsFunc(r.Blocks, func(id uint64) bool { return id > math.MaxInt32 }) {
						return b, errGuideLLMID
					}
					b = append(b, `, "hash_ids": `...)
					b = appendIDs(b, r.Blocks, ", ")
				}
				return append(b, "}\n"...), nil
			}, nil
		},
	}
}

// float32Error returns how far a time is from the nearest float32 in seconds.
func float32Error(ns int64) time.Duration {
	seconds := float64(ns) / 1e9
	return time.Duration(math.Abs(float64(float32(seconds))-seconds) * 1e9)
}
