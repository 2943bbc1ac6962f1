package datasets

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"reprise/trace"
)

// rolloutReads are the fields of a [rollout].
var rolloutReads = []SourceField{
	fieldAt("group|stream", "session", ""),
	fieldAt("prompt_len", "input_tokens blocks", ""),
	fieldAt("out_lens", "output_tokens input_tokens", ""),
	fieldAt("obs_lens", "input_tokens", ""),
	fieldAt("tool_times", "tool_ns", ""),
}

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
		Name: "rl-rollouts", sized: true,
		Tried:   fromDocumentation,
		reads:   rolloutReads,
		About:   "rollouts of reinforcement learning: a trajectory a line, by lengths of answers and observations",
		Example: `{"group":0,"stream":0,"prompt_len":7570,"out_lens":[399],"obs_lens":[23],"tool_times":[1.5]}`,
		detect: func(head *sample) bool {
			keys := objectKeys(head.bytes)
			return anyOf(keys, "prompt_len") && anyOf(keys, "out_lens") && anyOf(keys, "obs_lens")
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			d := &rolloutsDecoder{in: newJSONReader(in, head), s: s, size: cmp.Or(o.BlockSize, rolloutBlock), groups: map[int64]rolloutGroup{}}
			s.info.HasSessions, s.info.BlocksHashed, s.info.BlockSize = true, true, d.size
			return d, nil
		},
	}
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
	first  uint64 // of its full blocks, which are numbered on from here
}

type rolloutsDecoder struct {
	in      records
	s       *Source
	size    int
	entries int64
	ids     uint64 // blocks so far
	groups  map[int64]rolloutGroup
}

// decode appends the turns of a trajectory.
func (d *rolloutsDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	raw, err := d.in.next()
	if err != nil {
		return dst, err
	}
	var r rollout
	if err := decodeRecord(d.in, raw, &r); err != nil {
		return dst, err
	}
	fail := func(path, why string) ([]trace.Entry, error) {
		line, col := d.in.place(offsetOf(raw, path))
		return dst, bad(line, col, why)
	}
	group, known := d.groups[r.Group]
	if !known {
		group = rolloutGroup{r.Prompt, d.ids}
	}
	turns, input, blocks := len(r.Outputs), int64(group.tokens), 0
	switch {
	case group.tokens < 1 || group.tokens > maxContext:
		return fail("prompt_len", fmt.Sprintf("prompt_len: want a whole number from 1 to %d", maxContext))
	case turns == 0 || len(r.Observed) < turns-1:
		return fail("obs_lens", "obs_lens: want a length for each of out_lens but the last, and one of out_lens at least")
	case r.ToolTimes != nil && len(r.ToolTimes) < turns-1:
		return fail("tool_times", "tool_times: want a time for each of out_lens but the last")
	}
	session := trace.NewText(strconv.FormatInt(r.Group, 10) + "/" + strconv.FormatInt(r.Stream, 10))
	ids := make([]uint64, 0, int(group.tokens)/d.size)
	for i := range int(group.tokens) / d.size {
		ids = append(ids, group.first+uint64(i))
	}
	next := d.ids
	if !known {
		next += uint64(len(ids))
	}
	var all []trace.Entry
	for k, out := range r.Outputs {
		if k > 0 {
			input += int64(r.Outputs[k-1]) + int64(r.Observed[k-1])
		}
		if out < 0 || k > 0 && r.Observed[k-1] < 0 || input > maxContext {
			return fail("out_lens", fmt.Sprintf("out_lens, obs_lens: want whole numbers from 0, of a prompt of at most %d tokens", maxContext))
		}
		if blocks += blocksOf(int32(input), d.size); blocks > maxRolloutBlocks {
			return fail("out_lens", fmt.Sprintf("the prompts of its trajectory have more than %d blocks: say a larger size with --source-block-size", maxRolloutBlocks))
		}
		for len(ids) < int(input)/d.size {
			ids, next = append(ids, next), next+1
		}
		prompt := slices.Clone(ids)
		if int(input)%d.size > 0 { // what follows differs from what the next prompt has there
			prompt, next = append(prompt, next), next+1
		}
		e := trace.Entry{Session: session, Turn: trace.Ptr(int32(k)), Kind: "chat", InputTokens: trace.Ptr(int32(input)), OutputTokens: trace.Ptr(out), SourceBlocks: prompt}
		if k > 0 {
			e.Parents, e.Think, e.Tool = []int64{d.entries + int64(k) - 1}, trace.Ptr(time.Duration(0)), trace.Ptr(time.Duration(0))
			if r.ToolTimes != nil {
				whole, nano, ok := readDecimal(string(r.ToolTimes[k-1]))
				if !ok || whole < 0 || nano < 0 || whole >= 1e9 {
					return fail("tool_times", "tool_times: want seconds that are not negative")
				}
				*e.Tool = time.Duration(whole)*time.Second + time.Duration(nano)
			}
		}
		all = append(all, e)
	}
	d.s.fields.scan(raw)
	d.groups[r.Group], d.ids, d.entries = group, next, d.entries+int64(len(all))
	return append(dst, all...), nil
}
