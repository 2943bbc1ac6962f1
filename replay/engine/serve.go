package engine

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"time"

	"reprise/replay/openai"
	"reprise/trace/block"
	"reprise/trace/ending"
	"reprise/trace/sample"
)

// maxBody is the longest request body that is read: a million-token prompt as
// text is about a tenth of it.
const maxBody = 64 << 20

// A serverJob is one HTTP request on its way through the server.
type serverJob struct {
	req       *openai.Request
	chat      bool
	id        string
	prompt    []uint32
	output    int // tokens to generate
	finish    string
	cached    int
	seed      uint64 // of the words of the answer
	cutter    *block.Cutter
	behaviour *behaviour

	came, first, last time.Time     // by the clock: the request, its tokens as they were sent
	queued            time.Duration // before it ran
}

// serve takes a request through the engine. The quirks and faults in force decide its
// behaviour. read makes its job, or returns the status of a refusal; write answers.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, read func(*behaviour) (*serverJob, int, error),
	write func(context.Context, http.ResponseWriter, *serverJob, waiter) error) {
	came := time.Now()
	m, err := s.current.Load().faults.behaviourFor(r, s.count.requests.Add(1))
	if err != nil {
		refuse(w, r, m, http.StatusBadRequest, err)
		return
	}
	j, status, err := read(m)
	if err != nil {
		refuse(w, r, m, status, err)
		return
	}
	if s.fails(w, r, m) {
		return
	}
	j.came = came
	wait, end, err := s.schedule(j)
	switch {
	case err == nil:
	case errors.Is(err, ErrBusy):
		refuse(w, r, m, http.StatusTooManyRequests, err)
		return
	default:
		refuse(w, r, m, http.StatusBadRequest, err)
		return
	}
	defer end()
	s.count.prompt.Add(int64(len(j.prompt)))
	if m.compressed {
		g := compressed(w)
		defer g.out.Close()
		w = g
	}
	err = write(r.Context(), w, j, wait)
	switch {
	case err != nil:
		s.count.aborted.Add(1)
	case ending.OfFinish(j.finish) == ending.Failed, ending.OfFinish(j.finish) == ending.WasCut:
		s.count.aborted.Add(1)
	case ending.Finish(j.finish) == ending.Length:
		s.count.cutShort.Add(1)
	default:
		s.count.stopped.Add(1)
	}
	if err == nil {
		s.latencies.e2e.observe(j.last.Sub(j.came))
	}
	abort(err)
}

// recordTokens notes that the next k tokens of a job are sent now.
func (s *Server) recordTokens(j *serverJob, k int) {
	now := time.Now()
	if j.first.IsZero() {
		j.first = now
		s.latencies.queue.observe(j.queued)
		s.latencies.ttft.observe(now.Sub(j.came))
	} else {
		s.latencies.itl.observe(now.Sub(j.last))
	}
	j.last = now
	s.count.generated.Add(int64(k * j.behaviour.choices))
}

// A waiter returns when token i is due; tokens are asked for in order, and may
// be passed over.
type waiter func(ctx context.Context, i int) error

// schedule puts a request into the engine. The caller must call end. What the answer will
// be is known, and with it the blocks that it fills.
func (s *Server) schedule(j *serverJob) (wait waiter, end func(), err error) {
	answer := make([]uint32, j.output)
	for i := range answer {
		_, answer[i] = s.word(j, i)
	}
	j.cutter.Write(answer)

	core := &Job{ID: s.count.jobs.Add(1), Prompt: len(j.prompt), Output: j.output}
	for _, id := range j.cutter.AppendFull(nil) {
		core.keys = append(core.keys, binary.LittleEndian.Uint64(id[:]))
	}
	tokens, err := s.engine.submit(core)
	if err != nil {
		return nil, nil, err
	}

	stream := tokenStream{tokens: tokens}
	wait = func(ctx context.Context, i int) error {
		err := stream.wait(ctx, i)
		if err == nil { // the core settled both before it gave the first token
			j.cached, j.queued = core.Cached, (core.started - core.entered).Duration()
		}
		return err
	}
	return wait, func() { s.engine.withdraw(core) }, nil
}

// newJob makes the job of a request, or returns the status of a refusal. err is that of
// decoding the request.
func (s *Server) newJob(req *openai.Request, err error, m *behaviour) (*serverJob, int, error) {
	switch {
	case errors.Is(err, openai.ErrTooLarge):
		return nil, http.StatusRequestEntityTooLarge, err
	case err != nil && m.jsonFails:
		return nil, http.StatusInternalServerError, err
	case err != nil:
		return nil, http.StatusBadRequest, err
	case m.modelMust && req.Model != s.c.Model:
		return nil, http.StatusNotFound, errors.New("the model does not exist")
	}
	return &serverJob{req: req, behaviour: m}, 0, nil
}

// domain returns the names within which prefixes are shared: the model, and the
// cache_salt of a request that has one, as in vLLM.
func (s *Server) domain(req *openai.Request) ([]string, error) {
	given, ok := req.Extra.Get("cache_salt")
	if !ok || string(given) == "null" {
		return []string{s.c.Model}, nil
	}
	var salt string
	if json.Unmarshal(given, &salt) != nil || salt == "" {
		return nil, errors.New("cache_salt must be a string that is not empty")
	}
	return []string{s.c.Model, salt}, nil
}

// prepareJob makes the prompt of a job and decides how long its answer will be. It
// returns the status of a refusal with its error.
func (s *Server) prepareJob(j *serverJob) (*serverJob, int, error) {
	if err := s.render(j); err != nil {
		return nil, http.StatusBadRequest, err
	}
	domain, err := s.domain(j.req)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	h := s.hasher.Clone()
	j.cutter = h.Cutter(h.Root(domain...))
	j.cutter.Write(j.prompt)

	// As at temperature 0, the answer depends on the prompt and the request's seed alone.
	hash := fnv.New64a()
	var b [8]byte
	if j.req.Seed != nil {
		binary.LittleEndian.PutUint64(b[:], uint64(*j.req.Seed))
	}
	hash.Write(b[:])
	for _, t := range j.prompt[max(0, len(j.prompt)-64):] {
		binary.LittleEndian.PutUint32(b[:], t)
		hash.Write(b[:4])
	}
	j.seed = hash.Sum64()

	if err := s.setLength(j); err != nil {
		return nil, http.StatusBadRequest, err
	}

	m := j.behaviour
	j.id = fmt.Sprintf("cmpl-%d", s.count.ids.Add(1))
	if j.chat || m.chatIDs {
		j.id = "chat" + j.id
	}
	if m.id != "" {
		j.id = m.id
	}
	switch {
	case m.finish != "":
		j.finish = m.finish
	case m.tools && j.chat:
		j.finish = ending.ToolCalls
	case m.swallowed > 0:
		j.finish = ending.Stop
	}
	return j, 0, nil
}

// render turns the request into the prompt's tokens.
func (s *Server) render(j *serverJob) error {
	switch {
	case j.chat:
		for _, m := range j.req.Messages {
			j.prompt = s.template.AppendMessage(j.prompt, s.tok, m.Role, string(m.Content))
			for _, url := range m.Images {
				var err error
				if j.prompt, err = appendImage(j.prompt, url); err != nil {
					return err
				}
			}
		}
		j.prompt = s.template.AppendGeneration(j.prompt, s.tok)
	case j.req.PromptIDs != nil:
		j.prompt = j.req.PromptIDs
	default:
		j.prompt = s.tok.Append(nil, string(j.req.Prompt))
	}
	if len(j.prompt) == 0 {
		return errors.New("the prompt has no tokens")
	}
	if m := j.behaviour; m.cutPrompt {
		keep := cmp.Or(m.keepPrompt, max(1, s.c.MaxModelLen-j.limit()))
		j.prompt = j.prompt[max(0, len(j.prompt)-keep):]
	}
	return nil
}

// setLength decides the length of the answer. With ignore_eos it is exactly
// max_tokens; otherwise the "model" stops by itself at a length that depends on
// the prompt, and not before min_tokens. Without max_tokens a completion has at
// most 16 tokens and a chat 256.
func (s *Server) setLength(j *serverJob) error {
	limit := j.limit()
	if room := s.c.MaxModelLen - len(j.prompt); limit > room {
		if room < 1 || j.req.MaxTokens != nil {
			return fmt.Errorf("the model's maximum context length is %d tokens, and %d were requested (%d in the "+
				"prompt, %d for the completion)",
				s.c.MaxModelLen, len(j.prompt)+limit, len(j.prompt), limit)
		}
		limit = room
	}
	j.output, j.finish = limit+j.behaviour.more, ending.Length
	if !j.req.IgnoreEOS || j.behaviour.stops {
		stop := 1 + int(j.seed%uint64(2*limit))
		if j.req.MinTokens != nil && !j.behaviour.stops {
			stop = max(stop, *j.req.MinTokens)
		}
		if stop < limit {
			j.output, j.finish = stop, ending.Stop
		}
	}
	return nil
}

// limit is the most tokens that the request asks for.
func (j *serverJob) limit() int {
	switch {
	case j.req.MaxTokens != nil:
		return max(1, *j.req.MaxTokens) // none of the servers we know answers with no token at all
	case j.chat:
		return 256
	}
	return 16
}

// word returns the i-th token of an answer as text and id. Words of the
// round-trip-stable vocabulary make as many tokens in any later prompt.
func (s *Server) word(j *serverJob, i int) (string, uint32) {
	k := int(sample.Mix64(j.seed+uint64(i+1)*sample.Golden) % uint64(len(s.words.Text)))
	if i == 0 && j.chat { // after the template's line end; a completion goes on with its prompt
		return s.words.Text[k], s.words.Bare[k]
	}
	return " " + s.words.Text[k], s.words.Spaced[k]
}

// usage is the answer's usage object.
func (j *serverJob) usage() *openai.Usage {
	u := &openai.Usage{PromptTokens: len(j.prompt), CompletionTokens: j.output, TotalTokens: len(j.prompt) + j.output}
	if !j.behaviour.noCached {
		u.PromptTokensDetails = &openai.PromptTokensDetails{CachedTokens: j.cached}
	}
	return u
}
