package datasets

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	"reprise/trace"
)

// rolloutsFormat reads the recorded rollouts of reinforcement learning that the agentic
// benchmark of vLLM's TPU backend replays (benchmark_agentic.py --trace-file; pull requests
// 3365 and 3383 of vllm-project/tpu-inference). A line is a trajectory. The rules, which are
// those of its replay:
//
//   - The prompt of a turn is that of the turn before with its answer and what the
//     environment said to that.
//   - Streams of a group begin with one prompt, as long as that of the group's first stream.
//   - A turn is sent when its answer's tool time is over, at once where none is recorded.
//     There are no other times.
func rolloutsFormat() Format {
	return Format{
		sized: true,
		detect: func(head *sniff.Sample) bool {
			keys := record.Keys(head.Bytes)
			return sniff.Any(keys, "prompt_len") && sniff.Any(keys, "out_lens") && sniff.Any(keys, "obs_lens")
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openRollouts(in, head, o, s, rolloutKeys{"prompt_len", "out_lens", "obs_lens", "tool_times"}, nil)
		},
	}.described("rl-rollouts")
}

// trieFormat reads the workloads of Applied Compute's trie (github.com/Applied-Compute/trie),
// which NVIDIA's Dynamo calls applied_compute_agentic and EvalScope trie workloads. A line is
// the session of an agent, of num_turns calls that end in a tool and a final one. The rules
// are those of rolloutsFormat; sessions share no prompt, and the seconds of a tool are always
// there.
func trieFormat() Format {
	return Format{
		sized: true,
		detect: func(head *sniff.Sample) bool {
			keys := record.Keys(head.Bytes)
			return sniff.Any(keys, "input_prompt_length") && sniff.Any(keys, "assistant_response_length") &&
				sniff.Any(keys, "tool_call_output_length")
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openRollouts(in, head, o, s, rolloutKeys{"input_prompt_length", "assistant_response_length",
				"tool_call_output_length", "tool_call_latency"},
				func(in record.Reader, raw []byte) (r rollout, err error) {
					var one trieRow
					if err := decodeRecord(in, raw, &one); err != nil {
						return r, err
					}
					n := len(one.Outputs)
					if one.Turns != n || len(one.Observed) != n || len(one.ToolTimes) != n || one.Final == nil {
						return r, badIn(in, raw, "num_turns", "num_turns: want as many lengths and latencies, and a "+
							"final_assistant_response_length")
					}
					return rollout{0, 0, one.Prompt, append(one.Outputs, *one.Final), one.Observed, one.ToolTimes}, nil
				})
		},
	}.described("trie")
}

// A trieRow is one record of trieFormat.
type trieRow struct {
	Turns     int           `json:"num_turns"`
	Prompt    int32         `json:"input_prompt_length"`
	Outputs   []int32       `json:"assistant_response_length"`
	Observed  []int32       `json:"tool_call_output_length"`
	ToolTimes []json.Number `json:"tool_call_latency"` // seconds
	Final     *int32        `json:"final_assistant_response_length"`
}

// rolloutKeys are the names of a rollout's parts, for what is said of faults.
type rolloutKeys struct{ prompt, outputs, observed, toolTimes string }

// openRollouts opens rows of rollouts that parse reads, or rows of rolloutsFormat if it is nil.
func openRollouts(in *bufio.Reader, head []byte, o Options, s *Source, keys rolloutKeys,
	parse func(record.Reader, []byte) (rollout, error)) (decoder, error) {
	d := &rolloutsDecoder{in: record.NewJSON(in, head), s: s, size: cmp.Or(o.BlockSize, rolloutBlock),
		groups: map[int64]rolloutGroup{}, keys: keys, parse: parse}
	s.info.HasSessions, s.info.BlocksHashed, s.info.BlockSize = true, true, d.size
	return d, nil
}

const (
	rolloutBlock     = 16      // tokens, unless it is told
	maxRolloutBlocks = 1 << 24 // of the prompts of a trajectory
)

// A rollout is one record.
type rollout struct {
	Group     int64         `json:"group"`
	Stream    int64         `json:"stream"`
	Prompt    int32         `json:"prompt_len"`
	Outputs   []int32       `json:"out_lens"`
	Observed  []int32       `json:"obs_lens"`
	ToolTimes []json.Number `json:"tool_times"` // seconds
}

// A rolloutGroup is the prompt that its streams share.
type rolloutGroup struct {
	tokens int32
	first  blockIDs // of its full blocks, which are numbered on from here
}

type rolloutsDecoder struct {
	in      record.Reader
	s       *Source
	size    int
	keys    rolloutKeys
	parse   func(in record.Reader, raw []byte) (rollout, error) // nil for rolloutsFormat
	entries int64
	ids     blockIDs // so far
	rows    int64
	groups  map[int64]rolloutGroup // of this file
	files   int                    // before this one
}

// continueWith goes on with the next file, whose groups are others than those before.
func (d *rolloutsDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *rolloutsDecoder) { d.in, d.groups, d.files = n.in, n.groups, d.files+1 })
}

// decode appends the turns of a trajectory.
func (d *rolloutsDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.Next()
	if err != nil {
		return dst, err
	}

	r, err := d.rollout(raw)
	if err != nil {
		return dst, err
	}

	fail := func(path, why string) ([]trace.Entry, error) {
		return dst, badIn(d.in, raw, path, why)
	}
	name := fmt.Sprintf("%d/%d", r.Group, r.Stream)
	if d.files > 0 {
		name = fmt.Sprintf("%d/%s", d.files, name)
	}
	group, known := d.groups[r.Group]
	if d.parse != nil { // a session by itself
		name, known = strconv.FormatInt(d.rows, 10), false
	}
	if !known {
		group = rolloutGroup{r.Prompt, d.ids}
	}
	if path, why := d.lacks(&r, group); why != "" {
		return fail(path, why)
	}

	input, blocks := int64(group.tokens), 0
	session := trace.NewText(name)
	next, first := d.ids, group.first
	ids := first.fill(make([]uint64, 0, int(group.tokens)/d.size), int(group.tokens)/d.size)
	if !known {
		next = first
	}
	var all []trace.Entry
	for k, out := range r.Outputs {
		if k > 0 {
			input += int64(r.Outputs[k-1]) + int64(r.Observed[k-1])
		}
		if out < 0 || k > 0 && r.Observed[k-1] < 0 || input > maxContext {
			return fail(d.keys.outputs,
				fmt.Sprintf("%s, %s: want whole numbers from 0, of a prompt of at most %d tokens", d.keys.outputs,
					d.keys.observed, maxContext))
		}
		if blocks += blocksOf(int32(input), d.size); blocks > maxRolloutBlocks {
			return fail(d.keys.outputs,
				fmt.Sprintf("the prompts of its trajectory have more than %d blocks: say a larger size with "+
					"--source-block-size", maxRolloutBlocks))
		}
		ids = next.fill(ids, int(input)/d.size)
		prompt := slices.Clone(ids)
		if int(input)%d.size > 0 { // what follows differs from what the next prompt has there
			prompt = append(prompt, next.next())
		}
		e := trace.Entry{Session: session, Turn: trace.Ptr(int32(k)), Kind: "chat",
			InputTokens: trace.Ptr(int32(input)), OutputTokens: trace.Ptr(out), SourceBlocks: prompt}
		if k > 0 {
			e.Parents, e.Think, e.Tool = []int64{d.entries + int64(k) - 1}, trace.Ptr(time.Duration(0)),
				trace.Ptr(time.Duration(0))
			if r.ToolTimes != nil {
				var ok bool
				if *e.Tool, ok = lengthOf(string(r.ToolTimes[k-1]), time.Second, 1e9); !ok {
					return fail(d.keys.toolTimes, d.keys.toolTimes+": want seconds that are not negative")
				}
			}
		}
		all = append(all, e)
	}
	d.s.fields.Scan(raw)
	d.groups[r.Group], d.ids, d.entries, d.rows = group, next, d.entries+int64(len(all)), d.rows+1
	return append(dst, all...), nil
}

// rollout parses a record.
func (d *rolloutsDecoder) rollout(raw []byte) (r rollout, err error) {
	if d.parse != nil {
		return d.parse(d.in, raw)
	}
	err = decodeRecord(d.in, raw, &r)
	return r, err
}

// lacks says which field of a rollout has no length or time that it needs, and why, or "".
func (d *rolloutsDecoder) lacks(r *rollout, group rolloutGroup) (path, why string) {
	keys, turns := &d.keys, len(r.Outputs)
	switch {
	case group.tokens < 1 || group.tokens > maxContext:
		return keys.prompt, fmt.Sprintf("%s: want a whole number from 1 to %d", keys.prompt, maxContext)
	case turns == 0 || len(r.Observed) < turns-1:
		return keys.observed, fmt.Sprintf("%s: want a length for each of %s but the last, and one of %[2]s at least",
			keys.observed, keys.outputs)
	case r.ToolTimes != nil && len(r.ToolTimes) < turns-1:
		return keys.toolTimes, fmt.Sprintf("%s: want a time for each of %s but the last", keys.toolTimes, keys.outputs)
	}
	return "", ""
}
