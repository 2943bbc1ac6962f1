package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/token"
)

// Where text is of no use for blocks, an entry may name what its prompt begins with all
// the same: tools and a system prompt that are still there while messages are redacted, the
// hash of a system prompt, a key such as prompt_cache_key. A hash of that under the key of
// the blocks is the cluster of its row, and prompts of one cluster begin alike. Until a row
// is annotated, its category holds the cluster: a hash of the cache's salt, the hash, and how
// many tokens these prompts share at least, with a space between them.

// nameTrunk finds the cluster of a row without blocks.
func (e *encoder) nameTrunk(en *trace.Entry, x *encoded) {
	if len(x.blocks) > 0 || len(x.source) > 0 || len(en.Messages) == 0 && en.Tools.Len() == 0 &&
		en.PrefixKey.Len() == 0 && x.salt == "" {
		return
	}
	keyed := func(kind string, fields ...string) string {
		sum := hmac.New(sha256.New, e.key[:])
		fmt.Fprintf(sum, "reprise: %s %q", kind, fields)
		return fmt.Sprintf("%x", sum.Sum(nil)[:16])
	}
	head := token.Chat{Tools: en.Tools.Reveal(), Model: x.row.Model, Time: en.Time}
	names, known := []string{head.Tools, en.PrefixKey.Reveal()}, true // the system prompt is there, if there is one
	for i := range en.Messages {
		m := &en.Messages[i]
		if m.Role != trace.System {
			known = known && i > 0
			break
		}
		text := m.Content.Reveal()
		if m.Redacted() {
			known = false
			if text, _ = hashOf(m); i == 0 && len(en.Messages) > 1 && m.Content == en.Messages[1].Content {
				text = "" // a hash that all messages have is a marker
			}
		}
		names = append(names, text)
		head.Messages = append(head.Messages, token.Message{Role: "system", Content: text})
	}
	if known && len(head.Messages) > 0 {
		names[1] = "" // a key tells no more than the prompt itself
	}
	var salt, cluster string
	if x.salt != "" {
		salt = keyed("salt", x.salt)
	}
	if strings.Join(names, "") != "" {
		cluster = keyed("trunk", names...)
	}
	if salt+cluster == "" {
		return
	}
	if !known {
		head.Messages = nil
	}
	x.cluster = fmt.Sprintf("%s %s %d", salt, cluster, e.headTokens(cluster+x.row.Model, head))
}

// maxHeads are how many counts an encoder remembers.
const maxHeads = 1 << 10

// headTokens counts what all prompts begin with that have these tools and this system
// prompt: what two of them have in common whose users say something else. Without tools it
// is 0: a system prompt alone may be a line, and tells no more than which prompts begin alike.
func (e *encoder) headTokens(name string, head token.Chat) (n int) {
	if e.hasher == nil || head.Tools == "" {
		return 0
	}
	if n, ok := e.heads[name]; ok {
		return n
	}
	var prompts [2][]uint32
	for i, said := range []string{"a", "b"} {
		c := head
		c.Messages = append(slices.Clone(head.Messages), token.Message{Role: "user", Content: said})
		pieces, err := e.render.Render(&c)
		if err != nil {
			return 0 // the template has no such chats
		}
		prompts[i] = token.AppendPieces(nil, e.p.Tokenizer, pieces, true)
	}
	for n < min(len(prompts[0]), len(prompts[1])) && prompts[0][n] == prompts[1][n] {
		n++
	}
	if r := e.source.fits[head.Model].ratio; r != 0 {
		n = int(float64(n) * float64(r))
	}
	if e.heads == nil || len(e.heads) >= maxHeads {
		e.heads = map[string]int{}
	}
	e.heads[name] = n
	return n
}

// A trunkDomain is a cache domain of prompts without blocks and, where entries name what
// they begin with, a cluster of these; empty for all others. of is whose prompts these are, where
// nobody's tell of another's.
type trunkDomain struct {
	of                            owner
	model, adapter, salt, cluster string
}

// An owner is a user or, where a row names none, a session; or everybody.
type owner struct {
	kind uint8
	id   int64
}

const (
	everybody uint8 = iota
	oneUser
	oneSession
	oneRequest // that names neither, and shares with nobody
)

// ownerOf is whose the prompts are that may tell of this one's: with apart, its user's alone.
func ownerOf(r *trace.Request, apart bool) owner {
	switch {
	case !apart:
		return owner{}
	case r.User != nil:
		return owner{oneUser, *r.User}
	case r.Session != nil:
		return owner{oneSession, *r.Session}
	}
	return owner{kind: oneRequest}
}

// domainOf is the domain of a row that is not annotated, and how many tokens the prompts
// of its cluster share at least.
func domainOf(r *trace.Request, apart bool) (d trunkDomain, least int) {
	d.of, d.model, d.adapter = ownerOf(r, apart), r.Model, r.Adapter
	if words := strings.Split(r.Category, " "); len(words) == 3 {
		d.salt, d.cluster = words[0], words[1]
		least, _ = strconv.Atoi(words[2])
	}
	return d, least
}

// A trunkSurvey finds the trunks: it takes all rows before any is filled.
type trunkSurvey struct {
	apart bool                        // each user's rows tell of that user's alone
	first map[trunkDomain]map[int]int // first turns by cached tokens; 0 where none were counted
	least map[trunkDomain]int         // tokens that prompts share; of clusters
	seen  map[firstTurn]bool
	told  map[owner]*told
}

// told counts the rows of an owner that have no blocks.
type told struct {
	without int64
	counted int64 // of these, that tell of a prefix: by cached tokens or what they begin with
	found   int64 // above 0
}

// A firstTurn is that of a session or, where its agents are told apart, of an agent in it.
type firstTurn struct {
	session int64
	cluster string
}

func (s *trunkSurvey) note(r *trace.Request) {
	if r.Status == trace.StatusFailed || len(r.Blocks) > 0 {
		return
	}
	domain, least := domainOf(r, s.apart)
	if domain.of.kind == oneRequest {
		return
	}
	t := s.told[domain.of]
	if t == nil {
		if t = new(told); s.told == nil {
			s.told = map[owner]*told{}
		}
		s.told[domain.of] = t
	}
	t.without++
	cached := 0
	if r.CachedTokens != nil {
		cached = int(*r.CachedTokens)
	}
	if r.CachedTokens != nil || least > 0 {
		t.counted++
	} else if domain.cluster == "" {
		return
	}
	if cached > 0 || least > 0 {
		t.found++
	}
	if r.Session == nil && domain.cluster == "" {
		return
	}
	if s.first == nil {
		s.first, s.least, s.seen = map[trunkDomain]map[int]int{}, map[trunkDomain]int{}, map[firstTurn]bool{}
	}
	if r.Session != nil {
		turn := firstTurn{*r.Session, domain.cluster}
		if s.seen[turn] {
			return
		}
		s.seen[turn] = true
	}
	s.least[domain] = max(s.least[domain], least)
	if s.first[domain] == nil {
		s.first[domain] = map[int]int{}
	}
	s.first[domain][cached]++
}

// tells reports whether the rows of some owner tell enough.
func (s *trunkSurvey) tells() bool {
	for _, t := range s.told {
		if t.enough() {
			return true
		}
	}
	return false
}

// enough reports whether half of the rows without blocks tell of a prefix, and there was one.
func (t *told) enough() bool { return t != nil && t.found > 0 && 2*t.counted >= t.without }

// newInferrer makes an inferrer whose blocks are numbered from next. It stops before limit.
//
// A cluster with a single first turn tells of nothing that is shared: its system
// prompt may hold the time, or its key may be one for each session. Its prompts are among
// those that name nothing.
func (s *trunkSurvey) newInferrer(size int, next, limit uint64) *inferrer {
	f := &inferrer{size: size, next: next, limit: limit, apart: s.apart, told: s.told,
		domains: map[trunkDomain]*inferredDomain{},
		young:   map[int64][]*inferredChain{}, old: map[int64][]*inferredChain{}}
	for domain, counts := range s.first {
		for cached, n := range counts {
			if domain.cluster == "" || len(counts) > 1 || n > 1 {
				break
			}
			delete(s.first, domain)
			if domain.cluster = ""; s.first[domain] == nil {
				s.first[domain] = map[int]int{}
			}
			s.first[domain][cached]++
		}
	}
	for domain, counts := range s.first {
		d, named := &inferredDomain{}, domain.cluster != ""
		all, with := 0, 0
		for _, cached := range slices.Sorted(maps.Keys(counts)) {
			n := counts[cached]
			if cached > 0 && (n >= trunkSessions || named && len(d.trunks) == 0) {
				d.trunks = append(d.trunks, cached)
			}
			if all += n; len(d.trunks) > 0 {
				with += n
			}
		}
		d.common, d.named = 2*with >= all || named, named
		if least := s.least[domain]; named && least > 0 && (len(d.trunks) == 0 || least > d.trunks[0]) {
			deeper := slices.DeleteFunc(d.trunks, func(n int) bool { return n <= least })
			d.trunks = slices.Insert(deeper, 0, least)
		}
		f.domains[domain] = d
	}
	return f
}
