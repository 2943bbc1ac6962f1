package client

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
	tokenusage "reprise/trace/usage"
)

// oddities count while answers come.
type oddities struct {
	mu  sync.Mutex
	odd result.Odd
}

// oddOf is where it counts what is odd about the answer to a request.
func (h *HTTP) oddOf(c *httpCall) *oddities {
	if c.probe {
		return new(oddities)
	}
	return &h.odd
}

// answer looks at the headers of an answer.
func (o *oddities) answer(resp *reply) {
	if resp.status != http.StatusOK && resp.header.Get("Retry-After") != "" {
		o.mu.Lock()
		o.odd.RetryAfter++
		o.mu.Unlock()
	}
}

// waited counts a pause that was as long as a server asked for.
func (o *oddities) waited(pause time.Duration, r *result.Result) {
	if r.RetryAfterNS != nil && pause > 0 && int64(pause) >= *r.RetryAfterNS {
		o.mu.Lock()
		o.odd.Waited++
		o.mu.Unlock()
	}
}

// outcome counts what is odd about a stream that is over. The class of one that failed is
// counted elsewhere. found is what its counts show.
func (o *oddities) outcome(out *openai.Outcome, found tokenusage.Findings) {
	sound, u := out.Err == nil, out.Usage
	counted := len(out.EventTokens) > 0 || out.Choices != 1
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range []struct {
		n     *int64
		holds bool
	}{
		{&o.odd.NoDone, out.MissingDone()},
		{&o.odd.DoneAgain, out.DoneMarkers > 1},
		{&o.odd.NoFinish, sound && out.FinishReason == "" && out.Choices > 0},
		{&o.odd.KeepAlives, out.Comments > 0},
		{&o.odd.Malformed, out.Malformed > 0},
		{&o.odd.Choices, out.Choices > 1},
		{&o.odd.NoUsage, sound && u == nil},
		{&o.odd.Uncounted, sound && !counted && u != nil && u.CompletionTokens > 0 &&
			u.CompletionTokens != out.TokenEvents},
	} {
		if c.holds {
			*c.n++
		}
	}
	if sound {
		o.odd.Usage.Add(found)
	}
}

// counts returns the odd answers so far.
func (o *oddities) counts() result.Odd {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.odd
}

const (
	maxServedValues = 1024 // of one header; others are [result.OtherValue]
	maxServedValue  = 64   // bytes of one
)

// A servedBy turns header values into indexes. It is bounded, even if servers send a new value with every answer.
type servedBy struct {
	mu    sync.Mutex
	names []string
	index []map[string]int32
	list  [][]string
}

func newServedBy(names []string) *servedBy {
	s := &servedBy{}
	for _, name := range names {
		s.names = append(s.names, http.CanonicalHeaderKey(name))
		s.index = append(s.index, map[string]int32{})
		s.list = append(s.list, nil)
	}
	return s
}

// note returns an index for each recorded header, −1 where the answer has none, or an
// empty one; nil when nothing is recorded. A value that is no short token, see isToken,
// is [result.OtherValue]: no text that a server sends back, such as a prompt, is kept.
func (s *servedBy) note(header interface{ Get(name string) string }) []int32 {
	if len(s.names) == 0 {
		return nil
	}
	out := make([]int32, len(s.names))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range s.names {
		value := header.Get(name)
		if value == "" {
			out[i] = -1
			continue
		}
		if !isToken(value) {
			value = result.OtherValue
		}
		out[i] = s.find(i, value)
	}
	return out
}

// isToken says whether a header's value is the name of something: at most 64 letters,
// digits and -_.: of ASCII.
func isToken(value string) bool {
	if len(value) > maxServedValue {
		return false
	}
	return strings.IndexFunc(value, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.:", r))
	}) < 0
}

func (s *servedBy) find(i int, value string) int32 {
	if at, ok := s.index[i][value]; ok {
		return at
	}
	if len(s.list[i]) >= maxServedValues {
		if value != result.OtherValue {
			return s.find(i, result.OtherValue)
		}
	}
	at := int32(len(s.list[i]))
	s.index[i][value] = at
	s.list[i] = append(s.list[i], value)
	return at
}

// all returns the dictionaries.
func (s *servedBy) all() (out []result.Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range s.names {
		out = append(out, result.Served{Header: name, Values: append([]string{}, s.list[i]...)})
	}
	return out
}

// A textHash is a hash of the text that an answer generated. No text is kept.
type textHash struct {
	sum   [sha256.Size]byte
	whole bool // the answer was not too long to hash
}
