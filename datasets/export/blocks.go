package export

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"reprise/trace"
)

// blocksOf is how many blocks hold n tokens, the last of them perhaps in part.
func blocksOf(n int32, size int) int { return (int(n) + size - 1) / size }

// wantBlocks reports a row whose ids are not one for each full block of its
// input and one for the rest: no format can say that ids are unknown.
func wantBlocks(r *trace.Request, size int, format string) error {
	if len(r.Blocks) != blocksOf(r.InputTokens, size) {
		return fmt.Errorf("does not have a block id for each block of its input: the %s format needs them", format)
	}
	return nil
}

// A regrouping turns the ids of prefix blocks of one size into ids of blocks of
// another, one for each full block and one for the rest.
//
// An id names a block with all that is before it. So a new block that ends in
// the old block b is named by b and by its place among those that end there:
//
//	id = q·b + place, with q places for each old block
//
// Two prompts share as many of the new blocks as the old ids show them to
// share: a block of 512 becomes 32 of 16 that are shared if and only if it is,
// and where a new block ends inside an old one that is not shared, neither is
// it. A shared prefix is thus rounded down to whole blocks of both sizes, which
// loses nothing when the old size is a multiple of the new one. The rest of a
// prompt has other ids than a full block, in the new as in the old.
type regrouping struct {
	from, to int
	places   uint64 // q
	ids      []uint64
}

func regroup(from, to int) *regrouping {
	g := &regrouping{from: from, to: to}
	switch {
	case from%to == 0:
		g.places = uint64(from / to)
	case to%from == 0:
		g.places = 1
	default: // one more, for a prompt that ends where its old block does
		g.places = uint64(from/to + 2)
	}
	return g
}

var errLargeID = errors.New("has a block id too large to split into smaller blocks: number the blocks densely")

// blocks returns the new ids of a row, valid until the next call.
func (g *regrouping) blocks(r *trace.Request) ([]uint64, error) {
	g.ids = g.ids[:0]
	tokens := int(r.InputTokens)
	for i := range blocksOf(r.InputTokens, g.to) {
		old := (min((i+1)*g.to, tokens) - 1) / g.from
		id := r.Blocks[old]
		if id > math.MaxInt64/g.places-1 { // readers have 64 bits with a sign
			return nil, errLargeID
		}
		first := old * g.from / g.to // the first new block that ends in the old one
		g.ids = append(g.ids, g.places*id+uint64(i-first))
	}
	return g.ids, nil
}

// loss says what regrouping loses of any trace.
func (g *regrouping) loss() string {
	if g.from%g.to == 0 {
		return ""
	}
	return fmt.Sprintf("blocks of %d tokens became blocks of %d: shared prefixes are rounded down to both", g.from,
		g.to)
}

// appendSeconds appends nanoseconds as a decimal number of seconds, exactly and
// always with a fraction, so that readers that tell types by their spelling
// take it for a float.
func appendSeconds(b []byte, ns int64) []byte {
	b = strconv.AppendInt(b, ns/1e9, 10)
	frac := ns % 1e9
	b = append(b, '.')
	for unit := int64(1e8); ; unit /= 10 {
		b = append(b, '0'+byte(frac/unit))
		if frac %= unit; frac == 0 {
			return b
		}
	}
}

// milliseconds rounds to the nearest.
func milliseconds(ns int64) int64 { return (ns + 5e5) / 1e6 }

// appendIDs appends ids as a JSON array.
func appendIDs(b []byte, ids []uint64, comma string) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, comma...)
		}
		b = strconv.AppendUint(b, id, 10)
	}
	return append(b, ']')
}

// appendText appends text as a JSON string. It stands in for encoding/json,
// which copies, and escapes what only HTML minds. Bytes that are not UTF-8
// become U+FFFD, as there.
func appendText[T string | []byte](b []byte, text T) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))]))
			b = utf8.AppendRune(b, r)
			i += n
			continue
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return append(b, '"')
}
