package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JoinMeta is the metadata of what is put together of several files, made of different
// sources alike, whose names errors have. Files that hold the same rows, by their digest, are
// refused, and files of which one is cut into other blocks, was counted by another tokenizer or
// template, or has its prompts from elsewhere. Of what says where rows come from, all is kept; what holds for one
// source alone, such as its card, is left out unless all say the same.
func JoinMeta(names []string, metas []Meta) (Meta, error) {
	if len(names) == 0 || len(names) != len(metas) {
		return Meta{}, errors.New("there is nothing to join")
	}
	out := metas[0]
	seen := map[string]string{}
	for i := range metas {
		m := &metas[i]
		for digest := range strings.SplitSeq(m.Digest, ",") {
			if before, twice := seen[digest]; twice && digest != "" {
				return Meta{}, fmt.Errorf("%s and %s hold the same rows (digest %.15s…): leave one out",
					before, names[i], digest)
			}
			seen[digest] = names[i]
		}
		if why := m.apart(&metas[0]); why != "" {
			return Meta{}, fmt.Errorf("%s %s, as %s has: they do not fit together", names[i], why, names[0])
		}
		if m.Card != "" && (m.Tier == "partner" || m.Tier == "public") {
			return Meta{}, fmt.Errorf("%s is of tier %s, and its privacy card holds for it alone: join the internal "+
				"traces, and release the result", names[i], m.Tier)
		}
		out.join(m)
	}
	out.Digest = ""
	return out, nil
}

// apart says in what two files differ that cannot be put together; empty for nothing.
func (m *Meta) apart(other *Meta) string {
	for _, of := range []struct{ what, ours, theirs string }{
		{"block size", fmt.Sprint(m.BlockSize), fmt.Sprint(other.BlockSize)},
		{"block convention", m.Convention, other.Convention},
		{"tokenizer", m.Tokenizer, other.Tokenizer},
		{"chat template", m.Template, other.Template},
		{"prompt text", m.Text, other.Text},
		{"corpus", m.Corpus, other.Corpus},
		{"rule for partial blocks (shared_tails)", m.SharedTails, other.SharedTails},
	} {
		if of.ours != of.theirs {
			return fmt.Sprintf("has the %s %s, not %s", of.what, cmp.Or(of.ours, "none"), cmp.Or(of.theirs, "none"))
		}
	}
	switch a, b := m.Capture, other.Capture; {
	case a.Declared() != b.Declared():
		if a.Declared() {
			return "declares a capture window, which tells where its times belong, and not none"
		}
		return "declares no capture window, which tells where its times belong, and not one"
	case a.Relative != b.Relative:
		return "has a capture window of another kind of clock (dates, or durations without dates)"
	}
	return ""
}

// join adds what one more file says.
func (m *Meta) join(other *Meta) {
	union := func(to *string, from string) {
		for word := range strings.SplitSeq(from, ",") {
			if word != "" && !slices.Contains(strings.Split(*to, ","), word) {
				*to = strings.TrimPrefix(*to+","+word, ",")
			}
		}
	}
	union(&m.SourceFormat, other.SourceFormat)
	union(&m.Captures, other.Captures)
	if m.Keys != other.Keys { // an empty one is an ephemeral key
		m.Keys = cmp.Or(m.Keys, "ephemeral") + "," + cmp.Or(other.Keys, "ephemeral")
	}
	if m.Categories != other.Categories { // each row keeps what it has
		m.Categories = cmp.Or(m.Categories, EarlierRule)
		union(&m.Categories, cmp.Or(other.Categories, EarlierRule))
	}
	m.Tier = Stricter(m.Tier, other.Tier)
	if m.Sessions != other.Sessions && m.Sessions != "" && other.Sessions != "" {
		m.Sessions = "inferred" // of some at least
	}
	m.Sessions = cmp.Or(m.Sessions, other.Sessions)
	if m.Timing != other.Timing {
		m.Timing = strings.Trim(m.Timing+", "+other.Timing, ", ")
	}
	if m.Capture.Declared() {
		if other.Capture.Begin.Before(m.Capture.Begin) {
			m.Capture.Begin = other.Capture.Begin
		}
		if other.Capture.End.After(m.Capture.End) {
			m.Capture.End = other.Capture.End
		}
	}
	if m.CardHash != other.CardHash {
		m.Card, m.CardHash = "", ""
	}
	for _, p := range []struct {
		to   *string
		from string
	}{{&m.TimeUnit, other.TimeUnit}, {&m.Unit, other.Unit}, {&m.Seed, other.Seed}, {&m.Breakers, other.Breakers},
		{&m.Source, other.Source}, {&m.Raw, other.Raw}, {&m.SessionDoubt, other.SessionDoubt}} {
		if *p.to != p.from {
			*p.to = ""
		}
	}
}

// after is how long a window begins after another.
func (c Capture) after(other Capture) time.Duration {
	if !c.Declared() {
		return 0
	}
	return c.Begin.Sub(other.Begin)
}
