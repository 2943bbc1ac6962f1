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

// quotedWord may be a word of the prompt, such as a name.
var quotedWord = regexp.MustCompile(`[\p{L}\p{N}]{4,}`)

// wordsOfErrors are words with which servers say what is wrong. A prompt may have them too, and they
// tell nothing of it.
var wordsOfErrors = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(`
		above abort aborted accept accepted access account after allowed already also answer argument arguments
		array assistant audio auth authentication available backend because before been below between body boolean
		busy cannot cancelled chat choices client closed code completion completions complete configured connection
		contain contains content context could default decode deployment detail died disabled does down either
		embedding embeddings empty enabled encoding endpoint engine error errors exceed exceeded exceeds exist exists
		expected extra failed failure field fields finish first forbidden format found from function given
		greater have header image images inference input instead integer internal invalid json keyword
		least length less limit limits list loaded loading longer make many mapping maximum memory message messages
		method minimum missing model models more most must name need needs null number object only open operation
		option options output overloaded over parameter parameters parse please pool position positive prompt
		prompts provide provided queue rate read reached reduce refused request requests required resource response
		retry role room schema seconds sequence server service session should show size slots small smaller some
		stop stream string such support supported system take template temperature text than that their there these
		this time timed timeout token tokenizer tokens tool tools total true type unable unavailable unauthorized
		unexpected unknown unrecognized unsupported usage used user valid validation value values version wait
		were when which while will with within without wrong your`) {
		all[word] = true
	}
	return all
}()

// withoutPrompt takes out of a message what it quotes of the prompt: whole texts, parts of 12 bytes
// and more, and every word that is none of those in which errors are told.
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
	for _, at := range quotedWord.FindAllStringIndex(said, -1) {
		word := said[at[0]:at[1]]
		inPrompt := func(text string) bool { return strings.Contains(text, word) }
		if !wordsOfErrors[strings.ToLower(word)] && slices.ContainsFunc(prompt, inPrompt) {
			mark(at[0], at[1])
		}
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
