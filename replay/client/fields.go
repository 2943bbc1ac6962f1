package client

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"reprise/replay/openai"
	"reprise/replay/result"
)

// A dialect is which fields an API's requests have at these servers, as probes found out.
type dialect struct {
	noOptions   bool // without stream_options
	noRunning   bool // without its continuous_usage_stats
	unforced    bool // without min_tokens and ignore_eos
	completions bool // max_completion_tokens in place of max_tokens
	longer      bool // probes ask for 16 tokens
}

// An adaptation is what is done about a field that a server refuses.
type adaptation struct {
	says    string   // what is done, for people
	names   []string // what a server calls the fields that it refuses
	suits   func(h *HTTP, api string) bool
	applied func(d *dialect) *bool
}

// adaptations are tried in this order where a refusal names none of them.
var adaptations = []adaptation{
	{
		"requests before the run ask for 16 tokens in place of 1",
		[]string{"minimum value", "must be at least", "must be greater than", "Expected a value >"},
		func(_ *HTTP, api string) bool { return api != result.APIEmbeddings },
		func(d *dialect) *bool { return &d.longer },
	},
	{
		"max_completion_tokens is sent in place of max_tokens", []string{"max_completion_tokens", "max_tokens"},
		func(_ *HTTP, api string) bool { return api == result.APIChat },
		func(d *dialect) *bool { return &d.completions },
	},
	{
		"min_tokens and ignore_eos are left out, so answers end where the model ends them",
		[]string{"min_tokens", "ignore_eos"},
		func(h *HTTP, api string) bool { return h.opt.ForceOutput && api != result.APIEmbeddings },
		func(d *dialect) *bool { return &d.unforced },
	},
	{
		"continuous_usage_stats is left out, so tokens are counted at the end of an answer alone",
		[]string{"continuous_usage_stats"},
		func(h *HTTP, api string) bool {
			return h.opt.ContinuousUsage && (api == result.APIChat || api == result.APICompletions)
		},
		func(d *dialect) *bool { return &d.noRunning },
	},
	{
		"stream_options is left out, so the server may count no tokens", []string{"stream_options", "include_usage"},
		func(_ *HTTP, api string) bool { return api == result.APIChat || api == result.APICompletions },
		func(d *dialect) *bool { return &d.noOptions },
	},
}

// dialectOf is that of an API, to be changed.
func (h *HTTP) dialectOf(api string) *dialect {
	d := h.dialects[api]
	if d == nil {
		d = new(dialect)
		h.dialects[api] = d
	}
	return d
}

// refusesFields says whether a server may refuse a field: by its status, or by one of failure with words that
// name a field.
func refusesFields(r *result.Result, said string) bool {
	if r.HTTPStatus == nil {
		return false
	}
	switch *r.HTTPStatus {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return true
	case http.StatusInternalServerError, http.StatusNotImplemented:
		return slices.ContainsFunc(adaptations, func(a adaptation) bool { return a.isNamed(said) })
	}
	return false
}

// isNamed says whether a server's words are about a field.
func (a *adaptation) isNamed(said string) bool {
	return slices.ContainsFunc(a.names, func(name string) bool { return strings.Contains(said, name) })
}

// fewest is how many tokens a probe asks for.
func (h *HTTP) fewest(api string) int {
	if d := h.dialects[api]; d != nil && d.longer {
		return 16
	}
	return 1
}

// probe sends a request as those of the run are sent. Where the server refuses a field that a
// replay can do without, or spells in another way, it is sent again without that, and so is
// every request from then on to this API, see [HTTP.Adapted]. said is what the server says
// about a refusal that stays.
func (h *HTTP) probe(target int, api string,
	send func() (result.Result, string, error)) (r result.Result, said string, err error) {
	r, said, err = send()
	if t := &h.targets[target]; err == nil && notThere(&r) && !t.given && h.setRoot(t, t.otherRoot()) {
		again, words, err := send()
		switch {
		case err == nil && (answered(&again) || refusesFields(&again, words)):
			r, said = again, words
		case !h.setRoot(t, t.first) || err != nil:
			return again, words, err
		}
	}
	if err != nil || answered(&r) || !refusesFields(&r, said) {
		return r, said, err
	}
	before := *h.dialectOf(api)
	// What the server names first, one after the other; then each other alone, then all.
	var others []adaptation
	for range adaptations {
		i := slices.IndexFunc(adaptations, func(a adaptation) bool {
			return a.suits(h, api) && !*a.applied(h.dialectOf(api)) && a.isNamed(said)
		})
		if i < 0 {
			break
		}
		*adaptations[i].applied(h.dialectOf(api)) = true
		again, words, err := send()
		switch {
		case err != nil:
			return again, words, err
		case answered(&again):
			return again, "", nil
		case !refusesFields(&again, words) || words == said:
			*h.dialectOf(api) = before // it did not help
			return r, said, nil
		}
		r, said = again, words
	}
	named := *h.dialectOf(api)
	for _, a := range adaptations[1:] { // few servers refuse one token, and say so
		if a.suits(h, api) && !*a.applied(&named) {
			others = append(others, a)
		}
	}
	for i := range len(others) + 1 {
		if i == len(others) && i < 2 {
			break // all of them are the one that was tried
		}
		*h.dialectOf(api) = named
		for j, a := range others {
			*a.applied(h.dialectOf(api)) = i == j || i == len(others)
		}
		again, words, err := send()
		switch {
		case err != nil:
			return again, words, err
		case answered(&again):
			return again, "", nil
		}
	}
	*h.dialectOf(api) = before
	return r, said, nil
}

// notThere says that a path was not found.
func notThere(r *result.Result) bool {
	return r.HTTPStatus != nil && (*r.HTTPStatus == http.StatusNotFound || *r.HTTPStatus == http.StatusMethodNotAllowed)
}

// setRoot changes where a server's APIs are. It is false where requests cannot be written for
// that address.
func (h *HTTP) setRoot(t *target, root *url.URL) bool {
	t.setRoot(root)
	return t.wire == nil || t.wire.writeHeads() == nil
}

// Adapted says how requests differ from what was asked for, since the servers refuse it: a
// sentence for each field and API, or none.
func (h *HTTP) Adapted() (says []string) {
	for _, api := range []string{result.APIChat, result.APICompletions, result.APIResponses, result.APIMessages,
		result.APIEmbeddings} {
		d := h.dialects[api]
		for _, a := range adaptations {
			if d != nil && *a.applied(d) {
				says = append(says, api+": the server refuses fields; "+a.says)
			}
		}
	}
	for i := range h.targets {
		if t := &h.targets[i]; t.root.Path != t.first.Path {
			says = append(says, "the APIs of "+t.name+" are below "+t.shown(""))
		}
	}
	return says
}

// adapt writes a request in the dialect of its API.
func (h *HTTP) adapt(api string, req *openai.Request) {
	d := h.dialects[api]
	if d == nil {
		return
	}
	if d.noOptions {
		req.IncludeUsage, req.ContinuousUsage = false, false
	}
	req.ContinuousUsage = req.ContinuousUsage && !d.noRunning
	if d.unforced {
		req.MinTokens, req.IgnoreEOS = nil, false
	}
	if req.CompletionTokens = d.completions; d.completions {
		req.Extra = req.Extra.Renamed("max_tokens", "max_completion_tokens") // of a recorded body
	}
}
