package client

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reprise/replay/openai"
	"reprise/replay/result"
)

// maxWords bounds how many errors are kept in the words of servers.
const maxWords = 16

// serverWords keeps what servers say about errors: the first time of each class and status.
type serverWords struct {
	mu   sync.Mutex
	seen map[result.Said]bool // without what was said
	list []result.Said
}

// first says whether nothing was kept of a class and status.
func (w *serverWords) first(of result.Said) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[of] || len(w.seen) >= maxWords {
		return false
	}
	if w.seen == nil {
		w.seen = map[result.Said]bool{}
	}
	w.seen[of] = true
	return true
}

func (w *serverWords) keep(said result.Said) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, said)
}

// all are the words so far.
func (w *serverWords) all() []result.Said {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// heed keeps what a server says about an error of a status that is not 200. The body of the
// request is still there, so that what the server quotes of the prompt can be left out.
func (h *HTTP) heed(c *httpCall, e *openai.StreamError) {
	if c.said != nil {
		*c.said = h.withoutSecrets(e.Said)
		return
	}
	about := result.Said{Class: e.Kind, Status: int32(e.HTTPStatus)}
	if e.Said == "" || !h.words.first(about) {
		return
	}
	about.Words = withoutPrompt(h.withoutSecrets(e.Said), promptOf((*c.body)[c.at:]))
	h.words.keep(about)
}

// quoting is where a message may begin to quote.
var quoting = regexp.MustCompile("[\"'`:{(\\[<]")

// heedStream keeps what a server says about an error within an answer. The request is gone by
// then: of the message stays what stands before anything that may be a quotation.
func (h *HTTP) heedStream(c *httpCall, e *openai.StreamError) {
	said := e.Said
	if at := quoting.FindStringIndex(said); at != nil {
		said = strings.TrimSpace(said[:at[0]])
	}
	if said = h.withoutSecrets(said); c.said != nil {
		*c.said = said
		return
	}
	const most = 100
	if about := (result.Said{Class: e.Kind}); said != "" && len(said) <= most && h.words.first(about) {
		about.Words = said
		h.words.keep(about)
	}
}

// promptOf are the texts in what a request asks, each in one line.
func promptOf(body []byte) (texts []string) {
	var asked struct {
		Messages, Prompt, Input, System, Instructions, Tools any
	}
	_ = json.Unmarshal(body, &asked)
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case string:
			if s := strings.Join(strings.Fields(v), " "); len(s) >= shortQuote {
				texts = append(texts, s)
			}
		case []any:
			for _, one := range v {
				add(one)
			}
		case map[string]any:
			for name, one := range v {
				if name != "role" && name != "type" {
					add(one)
				}
			}
		}
	}
	for _, v := range []any{asked.Messages, asked.Prompt, asked.Input, asked.System, asked.Instructions, asked.Tools} {
		add(v)
	}
	return texts
}

const (
	shortQuote = 4  // bytes of a text that is quoted whole
	longQuote  = 12 // bytes of a part of one
)

// numbers are token ids.
var numbers = regexp.MustCompile(`\d+(,\s*\d+){3,}`)

// withoutPrompt takes out of a message what it quotes of the prompt.
func withoutPrompt(said string, prompt []string) string {
	quoted := make([]bool, len(said))
	mark := func(from, to int) {
		for i := from; i < to; i++ {
			quoted[i] = true
		}
	}
	for _, text := range prompt {
		if i := strings.Index(said, text); i >= 0 {
			mark(i, i+len(text))
		}
		for i := 0; i+longQuote <= len(said); i++ {
			part := said[i : i+longQuote]
			if part[0] != ' ' && part[longQuote-1] != ' ' && strings.Contains(text, part) {
				mark(i, i+longQuote)
			}
		}
	}
	for _, at := range numbers.FindAllStringIndex(said, -1) {
		mark(at[0], at[1])
	}
	var out strings.Builder
	for i := 0; i < len(said); i++ {
		switch {
		case !quoted[i]:
			out.WriteByte(said[i])
		case i == 0 || !quoted[i-1]:
			out.WriteString("…")
		}
	}
	return strings.ToValidUTF8(out.String(), "")
}
