package client

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"reprise/trace/crash"
)

// oneTokenGroup is how many words are counted at a time. In groups of 32, 256 words take 28 to 46 requests at
// vocabularies of 50,000 to 130,000 tokens; smaller ones take more requests, and less time side by side. After half as
// many requests as words are wanted the least are enough, and without them mostProbes end it.
const (
	oneTokenGroup = 16
	mostProbes    = 300
)

// errJoined says that a server counts fewer tokens than words.
var errJoined = errors.New("client: the server's tokens reach across words")

// oneTokenAtOnce is how many groups are counted side by side. It also bounds what is counted in vain.
const oneTokenAtOnce = 8

// OneToken finds words that the server counts as one token each, after a space and after a digit, which is how a
// prompt may begin. It returns the numbers of about want of them, in the order of words, or fewer, but not less than
// least where the server has these: the more common a word is, the earlier it should stand, and the first is taken to
// be one token. It sends groups of words, and halves of those that take more tokens than they have words.
// [HTTP.CalibrateAPI] goes before.
func (h *HTTP) OneToken(ctx context.Context, api string, words []string, least, want int) (numbers []int, err error) {
	search := oneTokenSearch{h: h, ctx: ctx, api: api, words: words}
	h.aside = new(sync.Mutex)
	defer func() { h.aside = nil }()
	goesOn := func() bool {
		return len(numbers) < want && search.sent < want/2 || len(numbers) < least && search.sent < mostProbes
	}
	for from := 0; from < len(words) && goesOn(); {
		var all errgroup.Group
		var found [oneTokenAtOnce][]int
		for g := range found {
			to := min(from+oneTokenGroup, len(words))
			first := from
			all.Go(func() (err error) {
				defer crash.Caught()
				h.aside.Lock()
				defer h.aside.Unlock()
				found[g], err = search.group(first, to)
				return err
			})
			from = to
		}
		if err := all.Wait(); err != nil {
			return nil, err
		}
		numbers = append(numbers, slices.Concat(found[:]...)...)
	}
	return numbers, nil
}

// A oneTokenSearch counts words behind a separator each: a space, which is part of the token, or a digit, which is one.
type oneTokenSearch struct {
	h     *HTTP
	ctx   context.Context
	api   string
	words []string
	sent  int // requests
}

// group finds the words from one number up to another that are one token each behind either separator.
func (s *oneTokenSearch) group(from, to int) (group []int, err error) {
	for i := from; i < to; i++ {
		group = append(group, i)
	}
	for _, separator := range []string{" ", "1"} {
		if group, err = s.pick(separator, nil, group, unknownExcess); err != nil {
			return nil, err
		}
	}
	return group, nil
}

// excess is how many tokens more than words a group has, behind the first word of all.
func (s *oneTokenSearch) excess(separator string, group []int) (int, error) {
	text, tokens := s.words[0], 1+len(group)
	for _, i := range group {
		text += separator + s.words[i]
	}
	if separator != " " {
		tokens += len(group)
	}

	s.sent++
	n, err := s.h.Count(s.ctx, s.api, text)
	if err == nil && n < tokens {
		err = errJoined
	}
	return n - tokens, err
}

// unknownExcess is that of a group that was not counted yet.
const unknownExcess = -1

// pick appends the words of a group that are one token each.
func (s *oneTokenSearch) pick(separator string, single, group []int, excess int) (_ []int, err error) {
	if excess == unknownExcess && len(group) > 0 {
		if excess, err = s.excess(separator, group); err != nil {
			return nil, err
		}
	}
	switch {
	case excess == 0:
		return append(single, group...), nil
	case len(group) < 2:
		return single, nil
	}

	half := len(group) / 2
	first, err := s.excess(separator, group[:half])
	if err == nil && first > excess {
		err = errJoined
	}
	if err != nil {
		return nil, err
	}
	if single, err = s.pick(separator, single, group[:half], first); err != nil {
		return nil, err
	}
	return s.pick(separator, single, group[half:], excess-first)
}
