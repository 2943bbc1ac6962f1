package export

import (
	"fmt"
	"strconv"

	"reprise/datasets"
	"reprise/trace"
)

const vllmCommand = "vllm bench serve --base-url URL --model MODEL --dataset-path FILE --num-prompts ROWS " +
	"--ignore-eos --save-result --save-detailed"

// vllmTimedFormat writes what vLLM's benchmark reads as its dataset
// timed_trace, so that its defaults are right: seconds, and blocks of 16
// tokens. With another --timed-trace-chunk-hash-size than that of the file it
// makes prompts of another length, and says nothing.
func vllmTimedFormat() Format {
	return Format{
		Name: "vllm-timed-trace",
		About: "JSON lines for vllm bench serve --dataset-name timed_trace: seconds, lengths, ids of 16-token " +
			"prefix blocks",
		Example: `{"timestamp": 1.5002, "input_length": 40, "output_length": 21, "hash_ids": [0, 1, 2]}`,
		Loses: []string{
			"sessions, parents and think times", "all columns but arrival, lengths and blocks",
			"the remainder of shared prefixes, if the block size is not a multiple of 16",
			"the contents of prompts from run to run, unless PYTHONHASHSEED is set",
		},
		Use:         vllmCommand + " --dataset-name timed_trace --timed-trace-chunk-hash-size 16",
		Tried:       "vllm-rs 0.33.0, the client in Rust of vLLM's wheel, 23 November 2026",
		NeedsBlocks: true,
		says:        []string{"blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			regrouping := regroup(o.BlockSize, datasets.BailianBlock)
			l.addSentence(regrouping.loss)
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				if err := wantBlocks(r, o.BlockSize, "timed_trace"); err != nil {
					return b, err
				}
				ids, err := regrouping.blocks(r)
				if err != nil {
					return b, err
				}
				b = append(b, `{"timestamp": `...)
				b = appendSeconds(b, r.ArrivalNS)
				b = appendLengths(b, r)
				b = append(b, `, "hash_ids": `...)
				b = appendIDs(b, ids, ", ")
				return append(b, "}\n"...), nil
			}, nil
		},
	}
}

// vllmCustomFormat writes what vLLM's benchmark reads as its dataset custom.
func vllmCustomFormat() Format {
	return Format{
		Name:    "vllm-custom",
		About:   "JSON lines for vllm bench serve --dataset-name custom: prompts and output lengths, no times",
		Example: `{"prompt": "some words", "output_tokens": 21}`,
		Loses: []string{
			"arrivals: vLLM sends at its own rate", "sessions, parents and think times",
			"block ids, except as shared text in the prompts", "all columns but lengths",
			"the order, without --disable-shuffle, and exact lengths, without --skip-chat-template",
		},
		Use: vllmCommand +
			" --dataset-name custom --custom-output-len -1 --disable-shuffle --skip-chat-template",
		NameEnd:      ".jsonl",
		Tried:        "vllm-rs 0.33.0, the client in Rust of vLLM's wheel, 23 November 2026",
		NeedsPrompts: true,
		says:         []string{"blocks"},
		open: func(o Options, l *losses) (encoder, error) {
			p := newPrompts(o.Prompter, l)
			return func(b []byte, _ int64, r *trace.Request) ([]byte, error) {
				b = append(b, `{"prompt": `...)
				b, err := p.append(b, r)
				if r.OutputTokens != nil {
					b = append(b, `, "output_tokens": `...)
					b = strconv.AppendInt(b, p.output(r), 10)
				}
				return append(b, "}\n"...), err
			}, nil
		},
	}
}

// prompts makes what stands for a row in formats that hold requests and no
// times.
type prompts struct {
	prompter Prompter
	losses   *losses
	buf      []byte
	last     int64 // arrival
}

func newPrompts(p Prompter, l *losses) *prompts {
	ps := &prompts{prompter: p, losses: l}
	l.addSentence(func() string {
		if ps.last == 0 {
			return ""
		}
		return fmt.Sprintf("the arrivals of %d rows: the file keeps their order alone", l.rows)
	})
	return ps
}

// append appends the prompt of a row as a JSON string.
func (p *prompts) append(b []byte, r *trace.Request) ([]byte, error) {
	var err error
	p.last = r.ArrivalNS
	p.losses.count("%d of %d rows have no input; their prompts have a token", r.InputTokens == 0)
	if p.buf, err = p.prompter.Prompt(r, p.buf[:0]); err != nil {
		return b, fmt.Errorf("cannot be turned into a prompt: %w", err)
	}
	return appendText(b, p.buf), nil
}

// output returns how many tokens to ask for: servers refuse to make none.
func (p *prompts) output(r *trace.Request) int64 {
	p.losses.count("%d of %d rows had no output and ask for one token", r.OutputTokens != nil && *r.OutputTokens == 0)
	return max(int64(r.OutputOr(0)), 1)
}
