package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	tokenusage "reprise/trace/usage"
)

// drainTime is how long after [DONE] a stream may take to end. Its end lets a
// pooled connection serve again, and is not worth more.
const drainTime = 250 * time.Millisecond

// An answer reads one stream after another.
type answer struct {
	start   time.Time
	from    *reply
	bound   openai.Bound
	came    int64  // bytes of the body
	told    bool   // whether it is a body is known
	body    []byte // of an answer that is one of JSON, whatever its label says
	scanner *openai.Scanner
	events  *openai.Collector
}

func newAnswer(keepText bool) *answer {
	a := &answer{}
	a.scanner = openai.NewScanner(nil, func() time.Duration { return time.Since(a.start) }, 0)
	limit := 0
	if keepText {
		limit = maxText
	}
	a.events = openai.NewCollector(limit)
	return a
}

// Read reads the body of the answer. A stream is told by its content: servers and gateways
// label streams as JSON, and errors as streams.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.from.body.Read(p)
	if !a.told && n > 0 {
		if text := bytes.TrimLeft(p[:n], " \t\r\n"); len(text) > 0 {
			a.told = true
			if text[0] == '{' || text[0] == '[' {
				a.body = []byte{}
			}
		}
	}
	if a.body != nil && len(a.body) < a.bound.Event {
		a.body = append(a.body, p[:n]...)
	}
	if a.came += int64(n); a.came > a.bound.Bytes {
		err = openai.ErrOverlong
	}
	return n, err
}

// ReadInstant is when the last Read was, and how long its bytes had waited; negative where
// that is not known.
func (a *answer) ReadInstant() (at, delay time.Duration) {
	delay = -1
	if d, ok := a.from.body.(interface{ ReadDelay() time.Duration }); ok {
		delay = d.ReadDelay()
	}
	return a.from.readAt().Sub(a.start), delay
}

// A sender sends a request, or has sent it already, and returns the head of the answer.
// It calls sent with the instant of the sending as soon as that is known.
type sender func(ctx context.Context, t *try, sent func(at int64)) (*reply, error)

// Fire implements [result.Endpoint]. s.Call must come from Prepare of the same HTTP.
func (h *HTTP) Fire(ctx context.Context, s result.Shot, r *result.Result) {
	h.fire(ctx, s, r, h.senderOf(&s))
}

// senderOf returns the sender that sends a request from its beginning.
func (h *HTTP) senderOf(s *result.Shot) sender {
	c := s.Call.(*httpCall)
	return func(ctx context.Context, t *try, sent func(at int64)) (*reply, error) {
		return h.targets[c.target].exchanger.exchange(ctx, c, t, func() { sent(int64(time.Since(s.Start))) })
	}
}

// fire sends a request and reads its answer into r. The first attempt uses the given
// sender; further ones are made as the options allow, each from the beginning.
func (h *HTTP) fire(ctx context.Context, s result.Shot, r *result.Result, send sender) {
	ctx, cancel := context.WithTimeout(ctx, h.opt.Timeout)
	defer cancel()
	// The one timer that hangs up: for a row that was cancelled, and for a
	// stream that does not end.
	hangUp := time.AfterFunc(math.MaxInt64, cancel)
	defer hangUp.Stop()
	var quiet *silence // nil where there is nothing to limit
	if h.opt.FirstTokenTimeout > 0 || h.opt.IdleTimeout > 0 {
		limits := &silence{first: h.opt.FirstTokenTimeout, idle: h.opt.IdleTimeout}
		limits.timer = time.AfterFunc(math.MaxInt64, func() {
			limits.late.Store(true)
			cancel()
		})
		quiet = limits
	}
	defer quiet.stop()
	c := s.Call.(*httpCall)
	r.API, r.Endpoint = c.api, trace.Ptr(int32(c.target))
	t := try{}
	for {
		r.Attempts++
		h.attempt(ctx, &s, &t, send, hangUp, quiet, r)
		if quiet != nil && quiet.late.Load() && r.Error == openai.KindCancelled {
			r.Error = openai.KindTimeout // the cancellation was one of these limits
		}
		wait, ok := h.again(&t, r)
		if !ok || !t.pause(ctx, wait, &s, r) {
			return
		}
		h.oddOf(c).waited(wait, r)
		if h.opt.RetryOther {
			h.move(c)
			r.Endpoint = trace.Ptr(int32(c.target))
		}
		send = h.senderOf(&s)
	}
}

// attempt sends the request once and reads the answer.
func (h *HTTP) attempt(ctx context.Context, s *result.Shot, t *try, send sender, hangUp *time.Timer, quiet *silence,
	r *result.Result) {
	clock := func() int64 { return int64(time.Since(s.Start)) }
	c := s.Call.(*httpCall)
	arm := s.Cut > 0 && !t.armed
	*t = try{start: clock(), armed: t.armed}
	var sent atomic.Pointer[int64]
	resp, err := send(ctx, t, func(at int64) {
		quiet.sent()
		sent.Store(&at)
		if arm {
			hangUp.Reset(s.Cut - time.Duration(clock()-at))
		}
	})
	if err != nil || resp.status == http.StatusOK {
		h.release(c)
	} else {
		defer h.release(c) // what the server says is held against it
	}
	if at := sent.Load(); at != nil {
		t.armed = true
		if r.SentNS == nil {
			r.SentNS = at
		}
	}
	if err != nil {
		r.DoneNS = trace.Ptr(clock())
		r.Error = openai.ClassifyError(err)
		if strings.HasSuffix(err.Error(), "server closed idle connection") {
			// An error of net/http with neither type nor name: the server closed a pooled
			// connection as the request was given to it.
			r.Error = openai.KindReset
		}
		return
	}
	defer resp.body.Close()
	r.HeadersNS = trace.Ptr(int64(resp.readAt().Sub(s.Start)))
	if e, ok := resp.body.(interface{ ReadEach() }); ok && quiet != nil {
		e.ReadEach() // the limits count from each event
	}
	r.HTTPStatus = trace.Ptr(int32(resp.status))
	r.Served = h.served.note(resp.header)
	h.oddOf(c).answer(resp)
	if ns, ok := retryAfter(resp.header, time.Now()); ok {
		r.RetryAfterNS = &ns
	}
	if coding := resp.header.Get("Content-Encoding"); resp.status == http.StatusOK && coding != "" &&
		coding != "identity" {
		r.DoneNS = trace.Ptr(clock())
		r.Error = openai.KindCompressed
		return
	}
	if resp.status != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.body, 64<<10))
		r.DoneNS = trace.Ptr(clock())
		e := openai.HTTPError(resp.status, body)
		r.Error = e.Kind
		h.heed(c, e)
		return
	}
	h.readAnswer(resp, s, c, hangUp, quiet, r)
}

// readAnswer reads what a server that accepts a request sends.
func (h *HTTP) readAnswer(resp *reply, s *result.Shot, c *httpCall, hangUp *time.Timer, quiet *silence,
	r *result.Result) {
	var a *answer
	if c.text != nil {
		a = newAnswer(true)
	} else {
		a = h.readers.Get().(*answer)
	}

	a.start, a.bound = s.Start, c.bound
	a.scanner.Within(c.bound.Event, h.room)
	o := a.read(resp, c.asked, quiet, func() { hangUp.Reset(drainTime) })
	h.note(c, &o, r)
	if o.Err != nil {
		h.heedStream(c, o.Err)
	}

	switch {
	case c.text != nil:
		hash := sha256.New()
		for _, part := range [][]byte{o.Text.Reasoning, o.Text.Content, o.Text.Tools} {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
			hash.Write(n[:])
			hash.Write(part)
		}
		*c.text = textHash{whole: !o.Text.Truncated}
		hash.Sum(c.text.sum[:0])
		a.scanner.Reset(nil)
		return // the answer is not like the others
	case s.Reply != nil && !o.Text.Truncated:
		s.Reply.Set(o.Text.Content, o.Text.IDs, o.Text.Ends)
	}
	a.from, a.body = nil, nil
	a.scanner.Reset(nil)
	h.readers.Put(a)
}

// read folds the answer to a request for so many tokens into an Outcome, valid until the next.
// done is called when the stream says that it is over.
func (a *answer) read(resp *reply, asked int, quiet *silence, done func()) openai.Outcome {
	a.events.Reset()
	a.events.Expect(asked)
	a.events.Within(a.bound)
	a.from, a.told, a.body, a.came = resp, false, nil, 0
	a.scanner.Reset(a)
	over, came := false, false
	for {
		ev, err := a.scanner.Scan()
		switch {
		case err == nil || came:
		case a.body != nil:
			a.events.AddBody(a.body, ev.At)
		case err == io.EOF && !strings.HasPrefix(resp.header.Get("Content-Type"), "text/event-stream"):
			a.events.AddBody(nil, ev.At) // such as a page of HTML
		}
		if err != nil {
			return a.events.Finish(ev.At, err)
		}
		came = true
		switch ended := a.events.Add(ev); {
		case ended && !over:
			over = true
			quiet.stop()
			done()
		case !over:
			quiet.event(ev, a.events)
		}
		if a.events.Beyond() {
			return a.events.Finish(ev.At, openai.ErrOverlong)
		}
	}
}

// told is a time of a request that its server says; nil where the whole request took less.
func told(said *time.Duration, r *result.Result) *int64 {
	if said == nil || r.SentNS == nil || r.DoneNS == nil || int64(*said) > *r.DoneNS-*r.SentNS {
		return nil
	}
	return (*int64)(said)
}

// note writes the outcome of a call into a Result.
func (h *HTTP) note(c *httpCall, o *openai.Outcome, r *result.Result) {
	r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS = instant(o.FirstEvent), instant(o.FirstToken), instant(o.LastToken)
	r.DoneNS = instant(o.Done)
	r.FirstContentNS = instant(o.FirstContent)
	r.QueueNS, r.PrefillNS = told(o.Queue, r), told(o.Prefill, r)
	r.Events = clamp(o.TokenEvents)
	r.GapsNS = make([]int64, len(o.Gaps))
	for i, g := range o.Gaps {
		r.GapsNS[i] = int64(g)
	}
	for _, n := range o.EventTokens {
		if n != 1 {
			r.EventTokens = append([]int32(nil), o.EventTokens...)
			break
		}
	}
	if len(o.ReadDelays) > 0 {
		r.ReadDelaysUS = append([]int32(nil), o.ReadDelays...)
	}
	if u := o.Usage; u != nil {
		if u.PromptTokens > 0 {
			r.Input = trace.Ptr(clamp(u.PromptTokens))
		}
		if u.PromptTokensDetails != nil {
			r.Cached = trace.Ptr(clamp(u.PromptTokensDetails.CachedTokens))
		}
	}
	h.noteOutput(o, r)
	found := o.Found | claimOf(c, o, r, h.count(o)).Judge()
	h.oddOf(c).outcome(o, found)
	r.TextBytes = trace.Ptr(o.Bytes)
	r.Refute(found, &o.Counts)
	r.FinishReason = trace.ClosedFinish(o.FinishReason)
	if o.Err != nil {
		r.Error = o.Err.Kind
	}
}

// noteOutput takes the server's count of the output, or our own. It stays null when neither can
// be had.
func (h *HTTP) noteOutput(o *openai.Outcome, r *result.Result) {
	switch {
	case o.Usage != nil && (o.Usage.CompletionTokens > 0 || o.TokenEvents == 0):
		r.Output, r.OutputFrom = trace.Ptr(clamp(o.Usage.CompletionTokens)), result.FromUsage
	case o.Found.Has(tokenusage.NoCount): // the server counts, and wrongly
	case h.opt.Count != nil && o.TokenEvents > 0 && !o.Text.Truncated:
		r.Output, r.OutputFrom = trace.Ptr(clamp(int(h.count(o)()))), result.FromTokenizer
	}
}

// count counts the tokens of an answer's text; nil where not all of it is there, or nobody
// counts.
func (h *HTTP) count(o *openai.Outcome) func() int64 {
	if h.opt.Count == nil || o.Text.Truncated {
		return nil
	}
	return func() int64 {
		n := 0
		for _, text := range [][]byte{o.Text.Reasoning, o.Text.Content, o.Text.Tools} {
			if len(text) > 0 {
				n += h.opt.Count(string(text))
			}
		}
		return int64(n)
	}
}

// claimOf is what the server counts of an answer, beside what the client knows of it.
func claimOf(c *httpCall, o *openai.Outcome, r *result.Result, count func() int64) *tokenusage.Claim {
	claim := &tokenusage.Claim{
		RequestBytes: int64(c.bytes), PromptTokens: int64(r.WantInput),
		Asked: int64(c.asked), Choices: int64(o.Choices), Events: int64(o.TokenEvents), Embedded: o.Embedded,
		Text: &tokenusage.Text{Bytes: o.Bytes, Opaque: o.Opaque, Count: count},
	}
	if r.SentNS != nil && r.DoneNS != nil {
		claim.Took = time.Duration(max(*r.DoneNS, int64(o.LastToken)) - *r.SentNS)
	}
	if c.echoes {
		claim.Text.Opaque, claim.Text.Count = true, nil
	}
	if u := o.Usage; u != nil {
		claim.Input, claim.Output = int64(u.PromptTokens), int64(u.CompletionTokens)
		if d := u.PromptTokensDetails; d != nil {
			claim.Cached = int64(d.CachedTokens)
		}
		if d := u.CompletionTokensDetails; d != nil {
			claim.Reasoning = int64(d.ReasoningTokens)
		}
	}
	return claim
}

func instant(d time.Duration) *int64 {
	if d == openai.NoInstant {
		return nil
	}
	return trace.Ptr(int64(d))
}

func clamp(n int) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// Launch implements [result.Endpoint].
func (h *HTTP) Launch(ctx context.Context, s result.Shot, r *result.Result) (read func()) {
	c := s.Call.(*httpCall)
	w := h.targets[c.target].wire
	if w == nil {
		return nil
	}
	var at int64
	await := w.start(c, func() { at = int64(time.Since(s.Start)) })
	if await == nil {
		return nil
	}
	return func() {
		h.fire(ctx, s, r, func(ctx context.Context, t *try, sent func(at int64)) (*reply, error) {
			sent(at)
			return await(ctx, t)
		})
	}
}
