package datasets

import (
	"io"
	"slices"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/datasets/internal/talk"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// batchAskedAt is where a line of a batch's input has its fields, and
// batchAnsweredAt one of its output or its errors.
var (
	batchAskedAt = Mapping{
		"user":        {"body.user"},
		"model":       {"body.model"},
		"salt":        {"body.cache_salt"},
		"prefix_key":  {"body.prompt_cache_key"},
		"kind":        {"kind"},
		"max_tokens":  {"body.max_completion_tokens", "body.max_tokens", "body.max_output_tokens"},
		"temperature": {"body.temperature"},
		"stream":      {"body.stream"},
		"messages":    {"body.messages", "messages"},
		"tools":       {"body.tools", "body.functions"},
		"prompt":      {"body.prompt", "prompt"},
	}
	batchAnsweredAt = Mapping{
		"output":        {"response.body.choices.0.message", "response.body.choices.0.text"},
		"finish_reason": {"response.body.choices.0.finish_reason"},
		"status":        {"response.status_code"},
		"error":         {"error", "response.body.error"},
	}
	batchAsked, batchAnswered = batchAskedAt.fields(), batchAnsweredAt.withErrors().withUsage().fields()
)

// batchMade is where [exchange.setRequest] takes what it makes from.
var batchMade = map[string]string{"kind": "url", "messages": "body.input|body.instructions", "prompt": "body.input"}

// batchUsage is where the usage of an answer is.
const batchUsage = "response.body.usage"

// batchFormat reads the JSON lines of OpenAI's Batch API, which vLLM's run_batch
// shares: requests, responses, or both, in any number of files. They are joined
// by custom_id, in whatever order they stand, so that all of the source is held
// in memory; a batch has at most 50,000 requests and 200 MB. The rules:
//
//   - Entries come in the order of the requests. Those without a response have no
//     output length: max_tokens is a limit, not a length, and is kept as one.
//   - Responses without their requests give lengths and no text.
//   - A request that failed is kept as failed when its prompt is there.
//   - A batch has no arrivals. When every response tells when it was created,
//     these are the times: how the batch was worked off, not how it was asked for.
func batchFormat() Format {
	f := Format{
		reads:  append(mappedFields(batchAskedAt, batchMade), mappedFields(batchAnsweredAt, nil)...),
		bodies: []string{"body"},
		detect: sniff.Objects(func(has func(string) bool) bool {
			return has("custom_id") && (has("body") || has("response") || has("error"))
		}),
	}
	return f.described("openai-batch").ofFiles(newBatchDecoder)
}

// A batchDecoder reads everything, and then hands out one exchange at a time.
type batchDecoder struct {
	in     row.JSON
	clock  stamp.Clock
	bodies bool // see [Options.Bodies]
	byID   map[string]*exchange
	order  []*exchange // requests in their order, and then responses without one
	extra  []*exchange // responses, until a request claims them
	read   bool
	next   int
	s      *Source

	counts *usageReader
}

// An exchange is a request with its response.
type exchange struct {
	b               builder
	asked, answered bool
	bodies          bool // the other members of the body are wanted
	created         *stamp.Stamp
}

func newBatchDecoder(in record.Reader, o Options, s *Source) decoder {
	s.info.HasText = true
	return &batchDecoder{
		in: row.JSON{Records: in, Fields: s.fields}, clock: o.clock(), s: s,
		bodies: o.Bodies, byID: map[string]*exchange{},
		counts: newUsageReader(tokenusage.Body, []string{batchUsage}, nil, o),
	}
}

func (d *batchDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	for !d.read {
		r, err := d.in.Next()
		if err == io.EOF {
			d.settle()
			break
		}
		if err == nil {
			err = d.addLine(row.NewView(r))
		}
		if err != nil {
			return dst, err
		}
	}
	if d.next == len(d.order) {
		return dst, io.EOF
	}
	x := d.order[d.next]
	d.order[d.next] = nil
	d.next++
	return append(dst, x.b.Entry), nil
}

// addLine adds one line to its exchange.
func (d *batchDecoder) addLine(v row.View) error {
	found, _ := v.Value("custom_id")
	id, ok := word(found)
	if !ok || id == "" {
		return row.BadAt(v, "custom_id", "custom_id: "+wantWord)
	}
	x := d.byID[id]
	if x == nil {
		x = &exchange{bodies: d.bodies}
	}
	// A line is filled in apart, so that one at fault leaves nothing behind.
	trial := *x
	_, isRequest := v.Value("body")
	switch {
	case isRequest && x.asked || !isRequest && x.answered:
		return row.BadAt(v, "custom_id", "an earlier line has the same custom_id")
	case isRequest:
		if err := trial.setRequest(v); err != nil {
			return err
		}
		d.order = append(d.order, x)
	default:
		if err := d.counts.show(v, &d.s.notes); err != nil {
			return err
		}
		if err := fillFields(&trial.b, batchAnswered, v); err != nil {
			return err
		}
		if created, _, ok := row.Find(v, []string{"response.body.created", "response.body.created_at"}); ok {
			if st, ok := stamp.ReadISO(row.Plain(created)); ok {
				trial.created = &st
			}
		}
		trial.answered = true
		d.extra = append(d.extra, x)
	}
	*x = trial
	d.byID[id] = x
	return nil
}

// setRequest fills in a request. The target of the url is its kind; the Responses API
// calls the prompt input, and so do embeddings.
func (x *exchange) setRequest(v row.View) error {
	url, _ := v.Value("url")
	switch path := row.Plain(url); {
	case strings.HasSuffix(path, "/chat/completions"):
		v.Made["kind"] = "chat"
	case strings.HasSuffix(path, "/completions"):
		v.Made["kind"] = "completion"
	case strings.HasSuffix(path, "/responses"):
		v.Made["kind"] = "responses"
	case strings.HasSuffix(path, "/embeddings"):
		v.Made["kind"] = "embedding"
	case path != "":
		v.Made["kind"] = "other"
	}
	input, _ := v.Value("body.input")
	instructions, _ := v.Value("body.instructions")
	switch {
	case talk.AreMessages(input) || row.IsString(input) && row.IsString(instructions):
		list, isList := input.([]any)
		if !isList {
			list = []any{map[string]any{"role": "user", "content": input}}
		}
		if row.IsString(instructions) {
			list = append([]any{map[string]any{"role": "system", "content": instructions}}, list...)
		}
		v.Put("messages", list, "body.input")
	case input != nil:
		v.Put("prompt", input, "body.input")
	}
	if err := fillFields(&x.b, batchAsked, v); err != nil {
		return err
	}
	if kind := x.b.Entry.Kind; x.bodies && (kind == "" || kind == "chat" || kind == "completion") {
		x.b.Entry.Fields = otherMembers(v, []string{"body"})
	}
	if x.b.Entry.Messages == nil && x.b.Entry.InputTokens == nil {
		return row.BadAt(v, "body", "its body has no messages, prompt or input")
	}
	x.asked = true
	return nil
}

const (
	noteUnanswered = "requests without a response, whose output lengths are not known: give the batch's output " +
		"file beside its input"
	noteUnasked      = "responses without their requests: only their lengths were read"
	noteEmptyAnswer  = "responses without their requests and without usage were left out"
	noteUnknownInput = "requests with an empty or redacted prompt, whose tokens no response counts, were left out"
	noteBatchTimes   = "the responses' times of creation were taken: a batch has no arrivals"
)

// settle ends the reading: it decides on the times, drops what has no input and
// checks each exchange.
func (d *batchDecoder) settle() {
	d.read = true
	for _, x := range d.extra {
		switch {
		case x.asked:
			continue
		case x.b.Entry.InputTokens == nil:
			d.s.notes.Count(noteEmptyAnswer)
			continue
		}
		d.s.notes.Count(noteUnasked)
		d.order = append(d.order, x)
	}
	d.extra, d.byID = nil, nil
	d.order = slices.DeleteFunc(d.order, func(x *exchange) bool {
		unknown := x.b.lengthUnknown()
		if unknown {
			d.s.notes.Count(noteUnknownInput)
		}
		return unknown
	})
	for _, x := range d.order {
		x.b.finish(0) // an exchange without input is not among them
		d.s.info.HasUsers = d.s.info.HasUsers || x.b.Entry.User != (trace.Text{})
		if !x.answered {
			d.s.notes.Count(noteUnanswered)
		}
	}
	d.setTimes()
}

// setTimes gives all entries their times, or none.
func (d *batchDecoder) setTimes() {
	times := make([]time.Time, len(d.order))
	for i, x := range d.order {
		if x.created == nil {
			return
		}
		var f *fault.Fault
		if i == 0 {
			_, f = d.clock.Settle(*x.created)
		}
		if f == nil {
			times[i], f = d.clock.Instant(*x.created)
		}
		if f != nil {
			return
		}
	}
	for i, x := range d.order {
		x.b.Entry.Time = times[i]
	}
	if len(times) > 0 {
		d.s.info.HasTimes, d.s.info.TimeUnit = true, d.clock.Unit()
		d.s.notes.SayOnce(noteBatchTimes)
	}
}
