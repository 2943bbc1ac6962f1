package datasets

import (
	"bytes"
	"strconv"
	"time"

	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/talk"
	"reprise/trace"
)

// sweAgentFormat reads the trajectories of SWE-agent: a JSON object with the steps of a
// task and the history of its messages, a file for each task or a folder of them. Each
// is a session, and a record: when something is wrong in it, all of it is left out.
//
//   - A call is a message of the assistant that is no demonstration. Its prompt is that
//     of its step, in newer files, or all of the history before it.
//   - Lengths are those of the text. They are an estimate: histories may have been
//     shortened for a call, and definitions of tools are not in them. Of two real
//     trajectories that say how many tokens were sent and received in all, inputs are
//     0.3 and 0.6 % short with the model's tokenizer, and outputs are equal, so that
//     these totals, which few trajectories have, are not read.
//   - There are no times, but for how long the action of a step ran, which is tool time.
func sweAgentFormat() Format {
	f := Format{detect: isSWEAgent}.described("swe-agent")
	return f.ofSessions("*.traj", func(in record.Reader, _ Options, s *Source) decoder {
		s.info.HasText, s.info.HasSessions = true, true
		s.notes.SayOnce(noteSWELengths)
		return &sweAgentDecoder{in: in, s: s}
	})
}

const (
	noteSWELengths = "lengths are estimated from the text: prompts may have been shortened, and tools are missing"
	noteSWENone    = "trajectories without an answer of a model"
)

// isSWEAgent tells by a step of the trajectory or, where that is behind the head, by the
// messages of the history.
func isSWEAgent(head *sniff.Sample) bool {
	keys := record.Keys(bytes.TrimSpace(head.Bytes))
	first := func(list string) []string { // keys of its first member
		_, rest, _ := bytes.Cut(head.Bytes, []byte(`"`+list+`"`))
		return record.Keys(bytes.TrimLeft(rest, " \t\r\n:["))
	}
	switch step, message := first("trajectory"), first("history"); {
	case sniff.Any(keys, "trajectory") && len(step) > 0:
		return sniff.Any(step, "action") && sniff.Any(step, "observation")
	case sniff.Any(keys, "history"):
		return sniff.Any(message, "role") && sniff.Any(message, "agent")
	}
	return false
}

type sweAgentDecoder struct {
	in      record.Reader
	s       *Source
	entries int64
	number  int
}

func (d *sweAgentDecoder) continueWith(next decoder) bool {
	return goOn(next, func(n *sweAgentDecoder) { d.in = n.in })
}

// decode appends the calls of a trajectory.
func (d *sweAgentDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := row.JSON{Records: d.in, Fields: d.s.fields}.Next()
	if err != nil {
		return dst, err
	}
	history, _ := r.Value("history")
	list, _ := history.([]any)
	var b builder
	if why := talk.SetMessages(&b.Prompt, list); why != "" {
		return dst, row.BadAt(r, "history", "history: "+why)
	}
	d.number++
	session := trace.NewText("trajectory " + strconv.Itoa(d.number))
	before, step := len(dst), 0
	for k, m := range b.Entry.Messages {
		fields, _ := list[k].(map[string]any)
		if demo, _ := fields["is_demo"].(bool); m.Role != trace.Assistant || demo {
			continue
		}
		at := "trajectory." + strconv.Itoa(step)
		e := trace.Entry{
			Session: session, Turn: trace.Ptr(int32(step)), Kind: "chat",
			Messages: b.Entry.Messages[:k:k], Reply: trace.Ptr(m.Content), ReplyCalls: m.Calls,
		}
		query, path, ok := row.Find(r, []string{at + ".query", at + ".messages"})
		if asked, _ := query.([]any); ok && len(asked) > 0 {
			var own builder
			if why := talk.SetMessages(&own.Prompt, asked); why != "" {
				return dst[:before], row.BadAt(r, path, path+": "+why)
			}
			e.Messages = own.Entry.Messages
		}
		if len(e.Messages) == 0 {
			return dst[:before], row.BadAt(r, "history", "history: an answer stands before any message")
		}
		if step > 0 {
			e.Parents = []int64{d.entries + int64(step) - 1}
			v, _ := r.Value("trajectory." + strconv.Itoa(step-1) + ".execution_time")
			if took, ok := lengthOf(row.Plain(v), time.Second, int64(maxPool/time.Second)); ok {
				e.Tool = &took
			}
		}
		dst = append(dst, e)
		step++
	}
	d.entries += int64(step)
	if step == 0 {
		d.s.notes.Count(noteSWENone)
	}
	return dst, nil
}
