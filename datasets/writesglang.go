package datasets

import (
	"fmt"

	"reprise/trace"
)

// sglangIDTokens is about how many tokens SGLang's benchmark makes for a block
// id: the id itself and "hi" 128 times (benchmark/datasets/mooncake.py).
const sglangIDTokens = 130

// sglangOutput writes what SGLang's benchmark reads as its dataset mooncake:
// the lines of the release. It reads timestamp, hash_ids and output_length, and
// no input_length.
func sglangOutput() Output {
	out := mooncakeOutput()
	open := out.open
	out.Name = "sglang"
	out.About = "the lines of the Mooncake release, for SGLang's bench_serving, which ignores input_length"
	out.Loses = []string{
		"times below the millisecond", "sessions, parents and think times", "all columns but arrival, lengths and blocks",
		"input lengths: SGLang makes some 130 tokens for each block id, whatever the block size, and a fixed question",
	}
	out.Use = "python -m sglang.bench_serving --backend sglang --dataset-name mooncake --dataset-path FILE --num-prompts ROWS --use-trace-timestamps"
	out.open = func(o WriteOptions, l *losses) (encoder, error) {
		inner, err := open(o, newLosses(out.says)) // the block size does not matter here
		if err != nil {
			return nil, err
		}
		var ids, input int64
		l.sum(func() string {
			return fmt.Sprintf("SGLang ignores input_length: it will make about %d prompt tokens, some %d for each block id, in place of %d",
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
