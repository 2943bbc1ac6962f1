package token

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"reprise/trace/objectstore"
)

// openFile reads a tokenizer.json anew, as [OpenAny] describes.
func openFile(path string) (*Encoding, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errors.New("larger than 256 MiB")
	}
	var e *Encoding
	if err == nil {
		e, err = parseFile(data)
	}
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: %w", path, err)
	}
	return e, nil
}

// parseFile makes an encoding of the text of a tokenizer.json.
func parseFile(data []byte) (*Encoding, error) {
	doc := new(document)
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, jsonError(err, "", data)
	}
	m := doc.Model
	switch {
	case m == nil:
		return nil, errors.New("model: missing")
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil): // GPT-2's own file does not say
		return nil, fmt.Errorf("model.type: %.40q is not supported, only BPE is", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, errors.New("model.dropout: not supported, since it is random")
	case m.Vocab == nil:
		return nil, errors.New("model.vocab: missing")
	case m.Merges == nil:
		return nil, errors.New("model.merges: missing")
	case m.Prefix != "":
		return nil, errors.New("model.continuing_subword_prefix: not supported")
	case m.Suffix != "":
		return nil, errors.New("model.end_of_word_suffix: not supported")
	}
	p, err := doc.plan()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	return doc.encoding(fileName+":"+hex.EncodeToString(sum[:8]), p)
}

// encoding makes the encoding that a document describes.
func (d *document) encoding(name string, p plan) (*Encoding, error) {
	spelling, inModel, ids, err := d.tokens()
	if err != nil {
		return nil, err
	}
	v := tokenText(spelling, p.byteLevel)
	v.pairs, v.chars = newPairs(0), !p.byteLevel
	v.clear()
	j := new(joints)
	j[utf8.RuneSelf][utf8.RuneSelf] = true
	if err = v.insertCharacters(ids); err == nil {
		err = d.Model.readMerges(v, ids, j)
	}
	if err != nil {
		return nil, err
	}
	v.indexPieces(spelling[:inModel], d.Model.IgnoreMerges)
	e := newEncoding(name, v, nil)
	e.nfc, e.spaces, e.lead = p.nfc, p.spaces, p.lead
	if p.cutSpaces { // every space begins a piece, as with a splitting Metaspace
		for i := range j {
			j[i][' '] = false
		}
	}
	switch {
	case !p.byteLevel:
		e.split = j.split
	case len(p.steps) == 1 && p.steps[0].split != nil:
		e.split = p.steps[0].split
	default:
		e.steps = p.steps
	}
	if e.before, err = d.matcher(e, false); err != nil {
		return nil, err
	}
	if e.after, err = d.matcher(e, true); err != nil {
		return nil, err
	}
	e.specials, e.marks = d.specials()
	e.words = sync.OnceValue(func() *Words { return findWords(e, j) })
	return e, nil
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
			// A token with a character outside of the alphabet stands for itself, as special tokens do.
			start := len(text)
			for _, r := range s {
				b, ok := level[r]
				if !ok {
					text = append(text[:start], s...)
					break
				}
				text = append(text, b)
			}
		case isByte:
			text = append(text, b)
		default:
			text = append(text, strings.ReplaceAll(s, "▁", " ")...)
		}
		off = append(off, uint32(len(text)))
	}
	return newVocab(string(text), off)
}

// insertCharacters inserts the tokens of the single bytes and, where pieces start as characters, those of the
// characters. It fails if some text could not be encoded. Bytes that occur in no UTF-8 may lack a token.
func (v *vocab) insertCharacters(ids map[string]uint32) error {
	if v.chars {
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
			case n != len(s) || r == ' ': // the model is given "▁" for every space
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
	} else {
		for r, b := range level {
			if id, ok := ids[string(r)]; ok {
				v.single[b] = id
			}
		}
	}
	for b, id := range v.single {
		if id == none && b != 0xc0 && b != 0xc1 && b < 0xf5 {
			return fmt.Errorf("model.vocab: no token stands for the byte 0x%02x alone", b)
		}
	}
	return nil
}

// readMerges fills the table of pairs from the list of merges, and notes the joints that they make.
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
			a, b := v.token(left), v.token(right)
			j[jointOf(a[len(a)-1])][jointOf(b[0])] = true
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

// indexPieces inserts the pieces that are one token: all of them where the file ignores the merges of such pieces, else
// those that the merges make. To merge a whole vocabulary takes a tenth of a second.
func (v *vocab) indexPieces(spelling []string, ignoreMerges bool) {
	st := new(state)
	var ids []uint32
	for i, s := range spelling {
		id := uint32(i)
		t := v.token(id)
		// A piece in the byte-level alphabet is spelled in it throughout; a token that only has the same bytes is
		// another.
		if t == "" || !v.chars &&
			strings.ContainsFunc(s, func(r rune) bool { b, ok := level[r]; return !ok || v.single[b] == none }) {
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

// level maps the byte-level alphabet of GPT-2 to bytes: those that print stand for themselves, the others are the
// characters from U+0100 on, in order.
var level = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range rune(256) {
		if b >= '!' && b <= '~' || b >= '¡' && b <= '¬' || b >= '®' && b <= 'ÿ' {
			m[b] = byte(b)
			continue
		}
		m[next] = byte(b)
		next++
	}
	return m
}()

// byteToken reads the spelling <0xNN> of a byte in a vocabulary with byte_fallback.
func byteToken(s string) (byte, bool) {
	const hex = "0123456789ABCDEF"
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	high, low := strings.IndexByte(hex, s[3]), strings.IndexByte(hex, s[4])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

// matcher gives the finder of the added tokens that are searched for before or after normalising, or nil if none of
// them can be found.
func (d *document) matcher(e *Encoding, normalized bool) (*matcher, error) {
	m, found := newMatcher(), false
	for i, t := range d.Added {
		s := t.Content
		if normalized {
			if s = e.normalise(s); e.lead == leadAlways {
				s = " " + s
			}
		}
		if t.Normalized != normalized || t.Content == "" || s == "" {
			continue
		}
		if !t.Special {
			found = true
			if t.SingleWord || t.LStrip || t.RStrip {
				return nil, fmt.Errorf("added_tokens[%d]: single_word, lstrip and rstrip are not supported", i)
			}
		}
		m.insert(s, *t.ID, t.Special)
	}
	if !found {
		return nil, nil
	}
	return m, nil
}

// specials collects the added tokens of a document by their spelling, and makes the finder of the special ones.
func (d *document) specials() (map[string]special, *matcher) {
	all, m := make(map[string]special, len(d.Added)), newMatcher()
	for _, t := range d.Added {
		if t.Content == "" {
			continue
		}
		all[t.Content] = special{*t.ID, t.LStrip, t.RStrip}
		if t.Special {
			m.insert(t.Content, *t.ID, false)
		}
	}
	return all, m
}
