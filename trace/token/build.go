package token

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// Bounds on what no published file comes near to.
const (
	maxSpelling = 1 << 16 // bytes of a token
	maxContent  = 1 << 10 // bytes of an added token
	maxContents = 1 << 22 // bytes of all added tokens
)

// encoding makes the encoding that a document describes.
func (d *document) encoding(name string, p plan) (*Encoding, error) {
	spelling, ids, err := d.Model.tokens()
	if err != nil {
		return nil, err
	}
	inModel := len(spelling)
	if spelling, err = d.addSpellings(spelling, ids); err != nil {
		return nil, err
	}
	v := tokenText(spelling, p.byteLevel)
	v.pairs, v.chars = newPairs(0), !p.byteLevel
	v.clear()
	j := newJoints()
	if p.byteLevel {
		err = v.bytes(ids)
	} else {
		err = v.characters(ids)
	}
	if err == nil {
		err = d.Model.readMerges(v, ids, j)
	}
	if err != nil {
		return nil, err
	}
	v.indexPieces(spelling[:inModel], d.Model.IgnoreMerges)
	return d.assemble(newEncoding(name, v, nil), p, j)
}

// assemble sets what stands around the vocabulary.
func (d *document) assemble(e *Encoding, p plan, j *joints) (*Encoding, error) {
	e.nfc, e.spaces, e.lead = p.nfc, p.spaces, p.lead
	if p.cutSpaces {
		j.cutBeforeSpaces()
	}
	switch {
	case !p.byteLevel:
		e.split = j.split
	case len(p.steps) == 1 && p.steps[0].split != nil:
		e.split = p.steps[0].split
	default:
		e.steps = p.steps
	}
	var err error
	if e.before, err = d.matcher(false, func(s string) string { return s }); err != nil {
		return nil, err
	}
	if e.after, err = d.matcher(true, e.normalised); err != nil {
		return nil, err
	}
	e.specials, e.marks = d.specials()
	e.words = sync.OnceValue(func() *Words { return fileWords(e, j) })
	return e, nil
}

// normalised is what the normaliser makes of the spelling of an added token.
func (e *Encoding) normalised(s string) string {
	if e.nfc {
		s = nfc(s)
	}
	if e.spaces {
		s = strings.ReplaceAll(s, "▁", " ")
	}
	if e.lead == leadAlways {
		s = " " + s
	}
	return s
}

// addSpellings enters the added tokens that the model lacks, by the ids that the file gives. (The library numbers them anew,
// and warns where the file says otherwise.)
func (d *document) addSpellings(spelling []string, ids map[string]uint32) ([]string, error) {
	total := 0
	for i, t := range d.Added {
		total += len(t.Content)
		switch {
		case t.ID == nil || *t.ID >= maxTokens:
			return nil, fmt.Errorf("added_tokens[%d].id: missing, or above %d", i, maxTokens-1)
		case len(t.Content) > maxContent || total > maxContents:
			return nil, fmt.Errorf("added_tokens[%d].content: too long", i)
		case t.Content == "":
			continue
		}
		spelling = grown(spelling, *t.ID)
		if id, ok := ids[t.Content]; ok && id != *t.ID || spelling[*t.ID] != "" && spelling[*t.ID] != t.Content {
			return nil, fmt.Errorf("added_tokens[%d].id: %d contradicts the vocabulary or another added token", i, *t.ID)
		}
		spelling[*t.ID] = t.Content
	}
	return spelling, nil
}

// matcher gives the finder of the added tokens that are looked for before or after normalising, or nil if none of them is to
// be found.
func (d *document) matcher(normalized bool, spell func(string) string) (*matcher, error) {
	m, found := newMatcher(), false
	for i, t := range d.Added {
		s := spell(t.Content)
		if t.Normalized != normalized || t.Content == "" || s == "" {
			continue
		}
		if !t.Special {
			found = true
			if t.SingleWord || t.LStrip || t.RStrip {
				return nil, fmt.Errorf("added_tokens[%d]: single_word, lstrip and rstrip are not supported", i)
			}
		}
		m.add(s, *t.ID, t.Special)
	}
	if !found {
		return nil, nil
	}
	return m, nil
}

// tokenText lays the bytes of all tokens end to end.
func tokenText(spelling []string, byteLevel bool) *vocab {
	total := 0
	for _, s := range spelling {
		total += len(s)
	}
	text, off := make([]byte, 0, total), make([]uint32, 1, len(spelling)+1)
	for _, s := range spelling {
		b, isByte := byteToken(s)
		switch {
		case byteLevel:
			text = appendLevel(text, s)
		case isByte:
			text = append(text, b)
		default:
			text = append(text, strings.ReplaceAll(s, "▁", " ")...)
		}
		off = append(off, uint32(len(text)))
	}
	return newVocab(string(text), off)
}

// bytes enters the tokens of the single bytes, each spelled as one character of the byte-level alphabet.
func (v *vocab) bytes(ids map[string]uint32) error {
	for r, b := range level {
		if id, ok := ids[string(r)]; ok {
			v.single[b] = id
		}
	}
	return v.complete()
}

// complete is an error if some text cannot be encoded. Bytes that are in no UTF-8 may lack a token.
func (v *vocab) complete() error {
	for b, id := range v.single {
		if id == none && b != 0xc0 && b != 0xc1 && b < 0xf5 {
			return fmt.Errorf("model.vocab: no token stands for the byte 0x%02x alone", b)
		}
	}
	return nil
}

// characters enters the tokens of single characters, and those of the bytes.
func (v *vocab) characters(ids map[string]uint32) error {
	if _, ok := ids["▁"]; !ok {
		return errors.New(`model.vocab: no token stands for "▁" alone`)
	}
	for b := range v.single {
		if id, ok := ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			v.single[b] = id
		}
	}
	for s, id := range ids {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case n != len(s) || r == ' ': // no space is left when the model is asked
		case r == '▁':
			v.single[' '] = id
			v.insert(" ", id)
		default:
			if n == 1 {
				v.single[r] = id
			}
			v.insert(s, id)
		}
	}
	return v.complete()
}

// readMerges enters the merges into the table of pairs and takes note of the joints that they make.
func (m *model) readMerges(v *vocab, ids map[string]uint32, j *joints) error {
	merges, err := m.merges()
	if err != nil {
		return err
	}
	v.pairs = newPairs(len(merges))
	var both []byte
	for i, pair := range merges {
		if len(pair) != 2 || pair[0] == "" || pair[1] == "" {
			return fmt.Errorf("model.merges[%d]: want two tokens", i)
		}
		both = append(append(both[:0], pair[0]...), pair[1]...)
		left, ok1 := ids[pair[0]]
		right, ok2 := ids[pair[1]]
		made, ok3 := ids[string(both)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("model.merges[%d]: one of the tokens, or their union, is not in the vocabulary", i)
		}
		if v.chars {
			if _, isByte := byteToken(pair[0]); isByte {
				return fmt.Errorf("model.merges[%d]: merges of bytes are not supported", i)
			}
			if _, isByte := byteToken(pair[1]); isByte {
				return fmt.Errorf("model.merges[%d]: merges of bytes are not supported", i)
			}
			j.add(v.token(left), v.token(right))
		}
		v.pairs.add(left, right, made)
	}
	for i := range v.double {
		if a, b := v.single[i>>8], v.single[i&0xff]; a != none && b != none {
			v.double[i] = v.pairs.rank(a, b)
		}
	}
	return nil
}

// indexPieces enters the pieces that are one token: all where the merges are ignored for them, else those that the merges
// put together. A whole vocabulary is merged in a tenth of a second, and no look-up need ask again.
func (v *vocab) indexPieces(spelling []string, ignoreMerges bool) {
	st := new(state)
	var ids []uint32
	for i, s := range spelling {
		id := uint32(i)
		t := v.token(id)
		if t == "" || !v.chars && !v.spelled(s) {
			continue
		}
		if !ignoreMerges {
			if ids = st.merge(ids[:0], v, t); len(ids) != 1 || ids[0] != id {
				continue
			}
		}
		v.insert(t, id)
	}
}

// spelled reports whether a piece may be spelled as s in the byte-level alphabet, and not only come out as the same bytes.
func (v *vocab) spelled(s string) bool {
	for _, r := range s {
		if b, ok := level[r]; !ok || v.single[b] == none {
			return false
		}
	}
	return true
}
