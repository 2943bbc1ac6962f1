package token

import (
	"hash/fnv"
	"strings"
)

// A Piece is a part of a rendered chat. Text pieces that follow one another are encoded as one text, as a server does
// that encodes the whole prompt between its special tokens; one that is Alone is encoded by itself.
type Piece struct {
	Text    string
	Alone   bool // encoded by itself
	Special bool // one token, whatever the text around it says

	special
}

// Starts reports whether the text before the piece is encoded without regard to the piece and what follows.
func (p Piece) Starts() bool { return p.Alone || p.Special && !p.lstrip }

// absent marks the ids of special tokens that a vocabulary lacks. They are above all others.
const absent = 1 << 31

// markPiece gives the piece of a special token. A tokenizer that lacks it is not the one that the template was made
// for. The count is then an estimate: the mark still counts as one token, with an id of its own.
func markPiece(tok Tokenizer, spelling string) Piece {
	p := Piece{Text: spelling, Special: true}
	e, _ := tok.(*Encoding)
	found := false
	if e != nil {
		p.special, found = e.specials[spelling]
	}
	if !found {
		h := fnv.New32a()
		h.Write([]byte(spelling))
		p.special = special{id: absent | h.Sum32()}
	}
	return p
}

// HasSpecial reports whether the vocabulary has an added token of this spelling.
func (e *Encoding) HasSpecial(spelling string) bool {
	_, ok := e.specials[spelling]
	return ok
}

// appendSplit appends the pieces of a rendered text: its special tokens, and what is between them.
func (e *Encoding) appendSplit(dst []Piece, text string) []Piece {
	for at := 0; at < len(text); {
		start, end, _, ok := e.marks.find(text, at)
		if !ok {
			return append(dst, Piece{Text: text[at:]})
		}
		if start > at {
			dst = append(dst, Piece{Text: text[at:start]})
		}
		dst = append(dst, markPiece(e, text[start:end]))
		at = end
	}
	return dst
}

// AppendPieces appends the tokens of pieces. The first piece starts a text (see [Piece.Starts]); begin says that
// nothing stands before it.
func AppendPieces(dst []uint32, tok Tokenizer, pieces []Piece, begin bool) []uint32 {
	for i := 0; i < len(pieces); {
		p := pieces[i]
		if p.Special {
			dst = append(dst, p.id)
			i++
			begin = false
			continue
		}
		end := i + 1
		for end < len(pieces) && !pieces[end].Special && !pieces[end].Alone {
			end++
		}
		text := p.Text
		if end > i+1 {
			n := 0
			for _, p := range pieces[i:end] {
				n += len(p.Text)
			}
			var b strings.Builder
			b.Grow(n)
			for _, p := range pieces[i:end] {
				b.WriteString(p.Text)
			}
			text = b.String()
		}
		if i > 0 && pieces[i-1].rstrip {
			text = strings.TrimLeftFunc(text, isSpace)
		}
		if end < len(pieces) && pieces[end].lstrip {
			text = strings.TrimRightFunc(text, isSpace)
		}
		if e, ok := tok.(*Encoding); ok {
			dst = e.append(dst, text, begin || p.Alone)
		} else {
			dst = tok.Append(dst, text)
		}
		i, begin = end, false
	}
	return dst
}
