package client

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	"reprise/replay/client/internal/h1"
	"reprise/replay/openai"
	"reprise/replay/result"
)

// TemplateParts measures how much of a template stands before the prompt and how much
// after it, at the first server: what prompts share ends on the boundaries of the server's
// blocks only where the part before is known. [HTTP.CalibrateAPI] goes before, and has
// measured the two together. words are words of one token, and block is the server's block
// size in tokens.
//
// A server that can leave out what follows a prompt (continue_final_message, as vLLM has it)
// counts the part before; else the cached tokens of two prompts that part near the
// boundary of a block tell it. A server that reports prompt tokens alone counts a
// conversation: a reply takes as much as stands after the prompt where the template ends
// each message alike. If none of that answers, all of it is taken to stand after, which
// keeps shared blocks whole. An API whose template is as large as that of chats has theirs;
// any other is asked itself, by cached tokens.
func (h *HTTP) TemplateParts(ctx context.Context, api string, words []string, block int) result.Template {
	total := h.overheads[api]
	t := result.Template{After: total, Found: result.TemplateAssumed}
	p := templateProbe{h: h, ctx: ctx, words: words, total: total}
	switch {
	case h.opt.TemplateBefore != nil:
		t.Before, t.After, t.Found = *h.opt.TemplateBefore, total-*h.opt.TemplateBefore, result.TemplateGiven
	case total == 0 || api == result.APICompletions || api == result.APIEmbeddings: // a beginning of text
		t = result.Template{Before: total, Found: result.TemplateMeasured}
	case h.uncounted[api]:
	default:
		p.api = result.APIChat
		if api != result.APIChat { // measured in chats, where these have as large a template
			if n, _, ok := p.count("{}", p.says("user")); !ok || n-1 != total {
				p.api = api
			}
		}
		for _, method := range []struct {
			measure func() (before int, ok bool)
			found   string
		}{
			{p.byContinuing, result.TemplateMeasured},
			{func() (int, bool) { return p.byCache(block) }, result.TemplateMeasured},
			{p.byReply, result.TemplateDerived},
		} {
			if before, ok := method.measure(); ok {
				t = result.Template{Before: before, After: total - before, Found: method.found}
				break
			}
		}
	}
	if h.templates == nil {
		h.templates = map[string]result.Template{}
	}
	h.templates[api] = t
	return t
}

// A templateProbe looks for the parts of a template.
type templateProbe struct {
	h     *HTTP
	ctx   context.Context
	api   string // that is asked: not always chat, whose template can be another
	words []string
	total int // tokens of both parts
}

// count sends the messages of a chat, of a user and of roles that follow, and returns the
// server's counts. It is not ok where the server refuses them or counts nothing, and of
// several messages or with fields in other APIs than chat.
func (p *templateProbe) count(fields string, messages ...openai.Message) (input, cached int, ok bool) {
	extra, err := openai.ParseExtra([]byte(fields))
	if err != nil {
		return 0, 0, false
	}
	c := &httpCall{api: p.api, session: h1.NoSession, header: p.h.header}
	req := openai.Request{Extra: p.h.opt.Extra.With(extra)}
	if p.api == result.APIChat {
		type message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}
		var all []message
		for _, m := range messages {
			all = append(all, message{m.Role, string(m.Content)})
		}
		body, err := json.Marshal(all)
		if err != nil {
			return 0, 0, false
		}
		req.Input = append([]byte(`"messages":`), body...)
	} else if p.h.text, p.h.ends = append(p.h.text[:0], messages[0].Content...),
		p.h.ends[:0]; len(messages) > 1 || fields != "{}" {
		return 0, 0, false
	}
	r, err := p.h.sendProbe(p.ctx, c, &req)
	if err != nil || !answered(&r) || r.Input == nil {
		return 0, 0, false
	}
	if cached = -1; r.Cached != nil {
		cached = int(*r.Cached)
	}
	return int(*r.Input), cached, true
}

// says is a message of one word.
func (p *templateProbe) says(role string) openai.Message {
	return openai.Message{Role: role, Content: []byte(p.words[0])}
}

// byContinuing has the server render a prompt without what follows it. Servers that ignore
// the fields count the whole template, and some render the message as an assistant's.
func (p *templateProbe) byContinuing() (before int, ok bool) {
	upTo, _, ok := p.count(`{"add_generation_prompt":false,"continue_final_message":true}`, p.says("user"))
	if !ok || upTo < 1 || upTo > p.total {
		return 0, false
	}
	message, _, ok := p.count(`{"add_generation_prompt":false}`, p.says("user"))
	return upTo - 1, ok && upTo <= message && message <= p.total+1
}

// byReply derives the part after the prompt, the end of a message and the beginning of a
// reply, from a conversation: a reply that stands between two messages adds its beginning
// and its end.
func (p *templateProbe) byReply() (before int, ok bool) {
	user, reply := p.says("user"), p.says("assistant")
	without, _, ok := p.count("{}", user, user)
	messages := []openai.Message{user, reply, user}
	if !ok { // the roles must alternate
		without, _, ok = p.count("{}", user)
		messages = messages[:2]
	}
	if !ok {
		return 0, false
	}
	with, _, ok := p.count("{}", messages...)
	after := with - without - 1
	return p.total - after, ok && after > 0 && after <= p.total
}

// cacheBoundary is a number of tokens that is a multiple of the usual block sizes.
const cacheBoundary = 256

// mostCacheBlock is how large a block of a prefix cache may be, in tokens.
const mostCacheBlock = 16 << 10

// byCache finds by cached tokens how many words reach the boundary of a block together with
// what stands before them. It is not ok where they do not tell, as with a cache that is off
// or prompts that go to several engines.
func (p *templateProbe) byCache(block int) (before int, ok bool) {
	block = max(block, 1)
	boundary := (cacheBoundary + block - 1) / block * block
	if block > mostCacheBlock {
		return 0, false
	}
	first := make([]string, boundary+p.total+block)
	for i := range first {
		first[i] = p.words[rand.IntN(len(p.words))]
	}
	send := func(words []string) (cached int, ok bool) {
		var text []byte
		for i, w := range words {
			if i > 0 {
				text = append(text, ' ')
			}
			text = append(text, w...)
		}
		n, cached, ok := p.count("{}", openai.Message{Role: "user", Content: text})
		return cached, ok && n == len(words)+p.total && cached >= 0
	}
	// Whether so many tokens stand before at least. The first prompt is sent each time, since
	// a cache of one sequence forgets it with the next.
	atLeast := func(tokens int) (yes, ok bool) {
		if _, ok := send(first); !ok {
			return false, false
		}
		other := make([]string, len(first))
		copy(other, first[:boundary-tokens])
		for i := boundary - tokens; i < len(other); i++ {
			for other[i] = first[i]; other[i] == first[i]; {
				other[i] = p.words[rand.IntN(len(p.words))]
			}
		}
		cached, ok := send(other)
		return cached >= boundary, ok
	}
	if yes, ok := atLeast(0); !yes || !ok {
		return 0, false
	}
	if yes, ok := atLeast(p.total + 1); yes || !ok {
		return 0, false
	}
	low, high := 0, p.total+1 // before is at least low, and below high
	for high-low > 1 {
		middle := (low + high) / 2
		yes, ok := atLeast(middle)
		if !ok {
			return 0, false
		}
		if yes {
			low = middle
		} else {
			high = middle
		}
	}
	return low, true
}
