package export

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"reprise/datasets"
	"reprise/trace"
)

// mooncakeFormat is one line for each row, spelled as in the release.
func mooncakeFormat() Format {
	return Format{
		Name:    "mooncake",
		About:   "JSON lines of the Mooncake release: integer milliseconds, lengths, ids of prefix blocks",
		Example: `{"timestamp": 1500, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}`,
		Loses: []string{
			"times below the millisecond", "sessions, parents and think times",
			"all columns but arrival, lengths and blocks",
			"the block size, which readers take to be 512",
		},
		NeedsBlocks: true,
		says:        []string{"blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			l.addSentence(func() string { return otherBlockSize(o.BlockSize) })
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				l.count(roundedToMS, r.ArrivalNS%1e6 != 0)
				b = append(b, `{"timestamp": `...)
				b = strconv.AppendInt(b, milliseconds(r.ArrivalNS), 10)
				b = appendLengths(b, r)
				b = append(b, `, "hash_ids": `...)
				b = appendIDs(b, r.Blocks, ", ")
				return append(b, "}\n"...), wantBlocks(r, o.BlockSize, "Mooncake")
			}, nil
		},
	}
}

func otherBlockSize(size int) string {
	if size == datasets.MooncakeBlock || size == 0 {
		return ""
	}
	return fmt.Sprintf("readers of the format take a block to be %d tokens; here it is %d",
		datasets.MooncakeBlock, size)
}

// appendLengths appends the lengths under their names in the Mooncake release,
// which most formats share. Another member stands before them. An output length that is not
// known is left out.
func appendLengths(b []byte, r *trace.Request) []byte {
	b = append(b, `, "input_length": `...)
	b = strconv.AppendInt(b, int64(r.InputTokens), 10)
	if r.OutputTokens == nil {
		return b
	}
	b = append(b, `, "output_length": `...)
	return strconv.AppendInt(b, int64(*r.OutputTokens), 10)
}

// sglangIDTokens is about how many tokens SGLang's benchmark makes for a block
// id: the id itself and "hi" 128 times (benchmark/datasets/mooncake.py).
const sglangIDTokens = 130

// sglangFormat writes what SGLang's benchmark reads as its dataset mooncake:
// the lines of the release. It reads timestamp, hash_ids and output_length, and
// no input_length.
func sglangFormat() Format {
	out := mooncakeFormat()
	open := out.open
	out.Name = "sglang"
	out.About = "the lines of the Mooncake release, for SGLang's bench_serving, which ignores input_length"
	out.Loses = []string{
		"times below the millisecond", "sessions, parents and think times",
		"all columns but arrival, lengths and blocks",
		"input lengths: SGLang makes some 130 tokens for each block id, whatever the block size, and a fixed question",
	}
	out.Use = "python -m sglang.bench_serving --backend sglang --dataset-name mooncake --dataset-path FILE " +
		"--num-prompts ROWS --use-trace-timestamps"
	out.open = func(o Options, l *losses) (encoder, error) {
		inner, err := open(o, newLosses(out.says)) // the block size does not matter here
		if err != nil {
			return nil, err
		}
		var ids, input int64
		l.addSentence(func() string {
			return fmt.Sprintf("SGLang ignores input_length: it will make about %d prompt tokens, some %d for each "+
				"block id, in place of %d",
				ids*sglangIDTokens, sglangIDTokens, input)
		})
		return func(b []byte, row int64, r *trace.Request) ([]byte, error) {
			l.count(roundedToMS, r.ArrivalNS%1e6 != 0)
			ids += int64(len(r.Blocks))
			input += int64(r.InputTokens)
			return inner(b, row, r)
		}, nil
	}
	return out
}

var errGuideLLMID = errors.New("has a block id above 2147483647, more than GuideLLM can hold: number the " +
	"blocks densely")

const guideLLMCommand = "guidellm run --backend " +
	"kind=openai_http,target=URL,model=MODEL,request_format=/v1/completions --profile kind=replay,time_scale=1.0 " +
	"--output kind=json,path=guidellm.json --data "

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
		Use: guideLLMCommand +
			`'{"kind": "mooncake", "source": {"kind": "json_file", "path": "FILE"}, "hash_id_block_size": BLOCK}'`,
		UseBlockless: guideLLMCommand +
			`'{"kind": "trace_synthetic", "source": {"kind": "json_file", "path": "FILE"}}'`,
		NameEnd: ".jsonl",
		Tried:   "GuideLLM 0.8.1, 23 November 2026",
		says:    []string{"blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			var off time.Duration
			l.addSentence(func() string {
				if off < time.Microsecond {
					return ""
				}
				return fmt.Sprintf("GuideLLM holds times as 32-bit floats: in this trace they are off by up to %v",
					off.Round(time.Microsecond))
			})
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				seconds := float64(r.ArrivalNS) / 1e9
				off = max(off, time.Duration(math.Abs(float64(float32(seconds))-seconds)*1e9))
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
