package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"reprise/replay/client"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace/token"
)

// Options say which server is checked, and against which tokenizer.
type Options struct {
	Endpoint  *client.HTTP
	Admin     *client.Admin // of the same server, with the same key
	Key       bool          // an API key is sent
	Tokenizer *token.Encoding
	Guessed   bool // nobody named the tokenizer
	// OfModel, if any, gives the tokenizer of the model that the server has, by its names, and whether it is guessed
	// still.
	OfModel func(names ...string) (tok *token.Encoding, guessed bool)
	API     string // the only one that is sent prompts; empty, or [result.APIAuto], is each that the server has

	// Patiently calls ask again while the server is full or starting; nil calls it once.
	Patiently func(ask func() error) error
}

// Schema names the layout of a [Report] as JSON.
const Schema = "check/1"

// A Report is what a check found. What is not known is null or empty.
type Report struct {
	Schema string              `json:"schema"`
	URL    string              `json:"url"`
	Model  string              `json:"model"`
	Server result.ServerModels `json:"server"` // as it states itself
	Auth   string              `json:"auth"`   // none, a key is needed, or a key is not needed
	APIs   []API               `json:"apis"`

	Cache       Cache        `json:"cache"`
	Tokenizer   Tokens       `json:"tokenizer"`
	PerEvent    *float64     `json:"tokens_per_event"` // of one answer of 16 tokens
	RoundTripMS *RoundTripMS `json:"round_trip_ms"`
	Clock       *Clock       `json:"clock"`

	// how requests differ from those that a replay sends elsewhere: the server refuses these
	Adapted  []string      `json:"adapted,omitempty"`
	Sent     client.Probed `json:"sent"`
	Refuted  []Refuted     `json:"refuted_counts,omitempty"`
	Findings []Finding     `json:"findings"`
}

// A Refuted is an answer with counts that cannot be. A count is null where the server has none.
type Refuted struct {
	Kinds  []string `json:"kinds"` // keys of [usage.Finding]
	API    string   `json:"api"`
	Input  *int64   `json:"prompt_tokens"`
	Cached *int64   `json:"cached_tokens"`
	Output *int64   `json:"output_tokens"`
	Bytes  *int64   `json:"text_bytes"`
	says   []string
}

// refuted are the answers among the probes whose counts cannot be.
func refuted(probes []result.Result) (out []Refuted) {
	for i := range probes {
		r := &probes[i]
		one := Refuted{API: r.API, Input: r.ClaimedInput, Cached: r.ClaimedCached, Output: r.ClaimedOutput,
			Bytes: r.TextBytes}
		for _, finding := range r.Contradictions().All() {
			one.Kinds, one.says = append(one.Kinds, finding.Key()), append(one.says, finding.Says())
		}
		out = append(out, one)
	}
	return out
}

// An API is one that replays can use, or that a server was asked for.
type API struct {
	Name     string           `json:"name"`
	Has      bool             `json:"has"`
	Refused  string           `json:"refused,omitempty"`  // why a request of one word failed
	Usage    *bool            `json:"usage"`              // token counts come with the answers
	Template *result.Template `json:"template,omitempty"` // tokens that are added to a prompt
}

// Cache is what is known of the prefix cache.
type Cache struct {
	Reported *bool  `json:"cached_tokens_reported"`
	On       *bool  `json:"on"`
	OnFrom   string `json:"on_from,omitempty"` // stated, or seen in the answer to a prompt that was sent twice
	Sent     int    `json:"repeated_tokens"`   // of the prompt that was sent twice, by the server where it counts
	Found    *int   `json:"found_tokens"`      // cached, the second time
}

// answerTokens is how long the one answer is that is more than a token.
const answerTokens = 16

// auth says whether the server needs the key that it is sent.
func auth(ctx context.Context, o Options) string {
	if !o.Key {
		return "none"
	}
	if open, err := o.Admin.RoundTrip(ctx, false); err == nil && open.Status == http.StatusOK {
		return "a key is not needed"
	}
	return "a key is needed"
}

// Run checks a server. An error says that it could not be asked at all, or that it has
// none of the APIs; anything else is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	h := o.Endpoint
	if o.Patiently == nil {
		o.Patiently = func(ask func() error) error { return ask() }
	}
	r := &Report{Schema: Schema, URL: h.Endpoints()[0]}

	var has map[string]bool
	err := o.Patiently(func() (err error) {
		if r.Model, err = h.Probe(ctx); err == nil {
			has, err = h.APIs(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	servers := o.Admin.Survey(ctx, r.Model)
	if len(servers) > 0 {
		r.Server = servers[0]
	}
	r.measureRoundTrips(ctx, o.Admin)
	r.Auth = auth(ctx, o)
	if o.OfModel != nil {
		o.Tokenizer, o.Guessed = o.OfModel(client.NamesOf(servers, r.Model)...)
	}
	words := o.Tokenizer.Words()
	counting := "" // the API whose counts are used
	var refused error
	for _, name := range []string{result.APICompletions, result.APIChat, result.APIResponses, result.APIMessages,
		result.APIEmbeddings} {
		api := API{Name: name, Has: has[name]}
		if api.Has && (o.API == "" || o.API == result.APIAuto || o.API == name) {
			var overhead int
			err := o.Patiently(func() (err error) {
				overhead, err = h.CalibrateAPI(ctx, name, words.Text[0], words.Bare[0])
				return err
			})
			counted := err == nil
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case errors.Is(err, context.DeadlineExceeded), errors.Is(err, openai.ErrOverlong):
				return nil, err // the other APIs would take as long
			case err != nil && !errors.Is(err, client.ErrUncounted):
				api.Refused, refused = err.Error(), cmp.Or(refused, err)
			default:
				if api.Usage = &counted; counted {
					// The parts are measured in chats, which can take a number of prompts.
					t := result.Template{After: overhead, Found: result.TemplateAssumed}
					if name != result.APIResponses && name != result.APIMessages {
						t = h.TemplateParts(ctx, name, words.Text, r.Server.BlockSize)
					}
					api.Template = &t
				}
				if counting == "" || counted && !r.counts(counting) {
					counting = name
				}
			}
		}
		r.APIs = append(r.APIs, api)
	}
	switch {
	case counting == "" && refused != nil:
		return nil, refused
	case counting == "" && o.API != "" && o.API != result.APIAuto:
		return nil, fmt.Errorf("the server has no %s API below the path of its URL", o.API)
	case counting == "":
		return nil, errNoAPI
	}
	if r.counts(counting) {
		r.compareTokenizer(ctx, h, counting, o.Tokenizer, o.Guessed)
	} else {
		r.Tokenizer = Tokens{Name: o.Tokenizer.Name(), Guessed: o.Guessed}
	}
	r.repeatPrompt(ctx, h, counting, words.Text)
	r.Sent, r.Adapted, r.Refuted = h.Probed(), h.Adapted(), refuted(h.Impossible())
	r.Findings = r.findings()
	return r, ctx.Err()
}

var errNoAPI = errors.New("the server has none of the completions, chat, responses, messages and embeddings APIs " +
	"below the path of its URL")

// counts says whether an API that was tried reports usage.
func (r *Report) counts(api string) bool {
	for _, a := range r.APIs {
		if a.Name == api {
			return a.Usage != nil && *a.Usage
		}
	}
	return false
}

// Sizes of the prompt that is sent twice, in tokens.
const (
	repeatedBlocks = 2   // that the cache can find again
	repeatedMost   = 600 // however large a block is
	repeatedAny    = 300 // where the block size is not known: more than two of 128
)

// repeatPrompt sends a prompt twice that nobody has sent before, and looks for its tokens in
// the second answer, which is of several tokens.
func (r *Report) repeatPrompt(ctx context.Context, h *client.HTTP, api string, words []string) {
	c := &r.Cache
	if c.Sent = repeatedAny; r.Server.BlockSize > 0 {
		c.Sent = min(repeatedBlocks*max(r.Server.BlockSize, 16)+2, repeatedMost)
	}
	if r.Server.PrefixCaching != nil {
		c.On, c.OnFrom = r.Server.PrefixCaching, "stated"
	}
	prompt := make([]string, c.Sent)
	for i := range prompt {
		prompt[i] = words[rand.IntN(len(words))]
	}
	text := strings.Join(prompt, " ")
	if _, err := h.TryPrompt(ctx, api, text, 1); err != nil {
		return
	}
	again, err := h.TryPrompt(ctx, api, text, answerTokens)
	if err != nil || again.Error != "" {
		return
	}
	if again.Output != nil && again.Events > 0 {
		r.PerEvent = new(float64(*again.Output) / float64(again.Events))
	}
	if again.Input != nil {
		c.Sent = int(*again.Input)
	}
	reported := again.Cached != nil
	if c.Reported = &reported; !reported {
		return
	}
	found := int(*again.Cached)
	if c.Found = &found; c.On == nil {
		on := found > 1 // a beginning of text alone is found in any cache
		c.On, c.OnFrom = &on, "seen"
	}
}
