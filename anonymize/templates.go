package anonymize

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"reprise/trace"
)

// templatesSchema names the layout of a file of [Templates].
const templatesSchema = "templates/1"

// Templates are system prompts, whole, that many users have: the text that
// operators wrote, and not their users, if the rule holds what it is to hold.
// What is recognised as personal or secret is scrubbed from them; see scrub.go.
type Templates struct {
	k, dropped int
	unit       string
	list       []template
}

type template struct {
	Messages []string       `json:"system_messages"`
	Requests int64          `json:"requests"`
	Scrubbed map[string]int `json:"scrubbed,omitempty"` // items found, by kind
}

// reviewNotice stands at the head of every file of templates.
const reviewNotice = "A PERSON MUST READ EVERY TEXT BELOW BEFORE ANYBODY ELSE GETS THIS FILE. " +
	"Patterns find addresses, numbers and keys; they find no names, no customers and no secrets told in words."

// Len is how many there are.
func (t *Templates) Len() int { return len(t.list) }

// Unit is who was counted: the user, or the session where the source has no users;
// empty where it has neither, and then nothing is kept.
func (t *Templates) Unit() string { return t.unit }

// WriteJSON writes them for people, the most used first.
func (t *Templates) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Schema    string     `json:"schema"`
		Notice    string     `json:"notice"`
		K         int        `json:"k_template"`
		Unit      string     `json:"counted_as_user"`
		Dropped   int        `json:"candidates_dropped"` // for want of memory: some may have been templates
		Templates []template `json:"templates"`
	}{templatesSchema, reviewNotice, t.k, t.unit, t.dropped, append([]template{}, t.list...)})
}

// Candidates that are held: more are dropped, those of one user first.
const (
	maxCandidates     = 1 << 16
	maxCandidateBytes = 64 << 20
	maxTemplateBytes  = 64 << 10 // of one
)

// A templateCounter counts who has which system prompt. It may count too few users
// of one that it dropped and met again, never too many.
type templateCounter struct {
	k              int
	seen           map[string]*candidate // by the encoded messages
	bytes, dropped int
	users          bool // some request names its user
	sessions       bool
	limit          struct{ candidates, bytes int }
}

type candidate struct {
	messages        []string
	sealed          []byte // the messages, of a shard; nil elsewhere
	size            int    // bytes that it counts
	requests        int64
	users, sessions map[string]struct{} // up to k of each
}

func newTemplateCounter(k int) *templateCounter {
	c := &templateCounter{k: k, seen: map[string]*candidate{}}
	c.limit.candidates, c.limit.bytes = maxCandidates, maxCandidateBytes
	return c
}

// systemPrompt are the system messages that a chat begins with.
func systemPrompt(messages []trace.Message) []trace.Text {
	var out []trace.Text
	for i := range messages {
		if messages[i].Role != trace.System {
			break
		}
		out = append(out, messages[i].Content)
	}
	return out
}

// add counts a request. One that names no user, where others do, counts for none.
func (c *templateCounter) add(system []trace.Text, user, session string) {
	c.users, c.sessions = c.users || user != "", c.sessions || session != ""
	var key []byte
	for _, m := range system {
		key = appendField(key, m.Reveal())
	}
	if len(key) == 0 || len(key) > maxTemplateBytes {
		return
	}
	x := c.room(string(key), len(key))
	if x == nil {
		return
	}
	if x.messages == nil {
		for _, m := range system {
			x.messages = append(x.messages, strings.Clone(m.Reveal()))
		}
	}
	x.requests++
	x.note(x.users, c.k, user)
	x.note(x.sessions, c.k, session)
}

// room is the candidate with this key, a new one of so many bytes where there is none yet;
// nil where that found no room.
func (c *templateCounter) room(key string, size int) *candidate {
	if x := c.seen[key]; x != nil {
		return x
	}
	if len(c.seen) >= c.limit.candidates || c.bytes+size > c.limit.bytes {
		maps.DeleteFunc(c.seen, func(key string, x *candidate) bool { // what one user or none has had so far
			few := len(x.units(c.users)) < 2
			if few {
				c.bytes -= x.size
				c.dropped++
			}
			return few
		})
	}
	if len(c.seen) >= c.limit.candidates || c.bytes+size > c.limit.bytes {
		c.dropped++
		return nil
	}
	x := &candidate{size: size, users: map[string]struct{}{}, sessions: map[string]struct{}{}}
	c.seen[key] = x
	c.bytes += size
	return x
}

// note adds users or sessions to those that have it, up to k.
func (x *candidate) note(of map[string]struct{}, k int, ids ...string) {
	for _, id := range ids {
		if id != "" && len(of) < k {
			of[strings.Clone(id)] = struct{}{}
		}
	}
}

func (x *candidate) units(users bool) map[string]struct{} {
	if users {
		return x.users
	}
	return x.sessions
}

// report scrubs what enough users have. Texts that become one by it are listed
// once.
func (c *templateCounter) report() *Templates {
	out := &Templates{k: c.k, dropped: c.dropped}
	switch {
	case c.users:
		out.unit = UnitUser
	case c.sessions:
		out.unit = UnitSession
	default:
		return out
	}
	merged := map[string]*template{}
	for _, x := range c.seen {
		if len(x.units(c.users)) < c.k {
			continue
		}
		var messages []string
		found := map[string]int{}
		for _, text := range x.messages {
			clean, items := scrub(text)
			messages = append(messages, clean)
			for kind, n := range items {
				found[kind] += n
			}
		}
		key := strings.Join(messages, "\x00")
		t := merged[key]
		if t == nil {
			t = &template{Messages: messages, Scrubbed: map[string]int{}}
			merged[key] = t
		}
		t.Requests += x.requests
		for kind, n := range found {
			t.Scrubbed[kind] += n
		}
	}
	for _, t := range merged {
		out.list = append(out.list, *t)
	}
	slices.SortFunc(out.list, func(a, b template) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), slices.Compare(a.Messages, b.Messages))
	})
	return out
}
