package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"
)

// A Digest is the SHA-256 over the values of rows in their order, independent
// of how a file encodes or compresses them. It is what reproducibility
// promises: the same seed gives the same digest on every machine.
//
// Each row is written field by field in schema order: integers as varints,
// strings and lists after their length, optional fields after a byte that is
// 1 when they are set. A column that is added later must be appended, and
// written only when set, so that older digests stay true. For the same reason an output
// length that is not known, which is null since trace/2, is written as -1.
type Digest struct {
	h   hash.Hash
	buf []byte
}

// NewDigest begins a digest over rows of a trace.
func NewDigest() *Digest {
	d := &Digest{h: sha256.New()}
	d.h.Write([]byte(schema1 + "\n")) // rows that both schemas can hold have the same digest in both
	return d
}

// Add appends rows to the digest.
func (d *Digest) Add(rows []Request) {
	for i := range rows {
		d.buf = appendCanonical(d.buf, &rows[i])
		d.hash(digestBytes)
	}
	d.hash(1)
}

// AddPlain appends rows to the digest.
func (d *Digest) AddPlain(p *PlainRows) {
	who, what, end := appendWho(nil, &p.Like), appendWhat(nil, &p.Like), appendEnd(nil, &p.Like)
	for i := range p.Len() {
		b := append(appendWhen(d.buf, p.ArrivalNS[i], p.Session[i], p.Turn[i]), who...)
		b = append(appendLengths(b, p.Category[i], p.InputTokens[i], p.OutputTokens[i]), what...)
		d.buf = append(appendIDs(b, p.Blocks[i]), end...)
		d.hash(digestBytes)
	}
	d.hash(1)
}

// digestBytes are how many bytes are hashed at once, at least.
const digestBytes = 4 << 10

// hash hashes what there is, if that is so much.
func (d *Digest) hash(least int) {
	if len(d.buf) >= least {
		d.h.Write(d.buf)
		d.buf = d.buf[:0]
	}
}

// Sum returns the digest so far, as "sha256:" and hex.
func (d *Digest) Sum() string { return "sha256:" + hex.EncodeToString(d.h.Sum(nil)) }

func appendCanonical(b []byte, r *Request) []byte {
	b = appendWho(appendWhen(b, r.ArrivalNS, r.Session, r.Turn), r)
	b = appendWhat(appendLengths(b, r.Category, r.InputTokens, r.OutputTokens), r)
	return appendEnd(appendIDs(b, r.Blocks), r)
}

func appendWhen(b []byte, arrival int64, session *int64, turn *int32) []byte {
	return appendOpt(appendOpt(binary.AppendVarint(b, arrival), session), turn)
}

func appendWho(b []byte, r *Request) []byte {
	b = binary.AppendUvarint(b, uint64(len(r.Parents)))
	for _, p := range r.Parents {
		b = binary.AppendVarint(b, p)
	}
	b = appendOpt(b, r.ThinkNS)
	b = appendOpt(b, r.ToolNS)
	b = appendOpt(b, r.User)
	for _, s := range []string{r.Model, r.Adapter, r.Kind} {
		b = appendString(b, s)
	}
	return appendOptString(appendOptString(b, r.Class), r.Replica)
}

func appendLengths(b []byte, category string, input int32, output *int32) []byte {
	b = binary.AppendVarint(appendString(b, category), int64(input))
	if output == nil {
		return binary.AppendVarint(b, -1)
	}
	return binary.AppendVarint(b, int64(*output))
}

func appendWhat(b []byte, r *Request) []byte {
	for _, p := range []*int32{r.ReasoningTokens, r.CachedTokens, r.ImageTokens, r.Images, r.MaxTokens} {
		b = appendOpt(b, p)
	}
	if r.Temperature != nil {
		b = binary.BigEndian.AppendUint32(append(b, 1), math.Float32bits(*r.Temperature))
	} else {
		b = append(b, 0)
	}
	switch {
	case r.Stream == nil:
		return append(b, 0)
	case *r.Stream:
		return append(b, 1, 1)
	}
	return append(b, 1, 0)
}

func appendEnd(b []byte, r *Request) []byte {
	if r.OutputBlocks != nil {
		b = appendIDs(append(b, 1), r.OutputBlocks)
	} else {
		b = append(b, 0)
	}
	b = appendString(b, r.Status)
	b = appendString(b, r.FinishReason)
	b = appendOpt(b, r.TTFTNS)
	b = appendOpt(b, r.E2ENS)
	if r.LengthSource != "" || r.ReuseSource != "" || r.Thread != nil {
		b = appendString(appendString(b, r.LengthSource), r.ReuseSource)
	}
	if r.Thread != nil {
		b = appendOpt(b, r.Thread)
	}
	return b
}

func appendOpt[T int32 | int64](b []byte, p *T) []byte {
	if p == nil {
		return append(b, 0)
	}
	return binary.AppendVarint(append(b, 1), int64(*p))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendOptString(b []byte, p *string) []byte {
	if p == nil {
		return append(b, 0)
	}
	return appendString(append(b, 1), *p)
}

func appendIDs(b []byte, ids []uint64) []byte {
	b = slices.Grow(binary.AppendUvarint(b, uint64(len(ids))), binary.MaxVarintLen64*len(ids))
	n, all := len(b), b[:cap(b)]
	for _, id := range ids { // most of a trace's bytes are written here
		for ; id >= 0x80; n++ {
			all[n] = byte(id) | 0x80
			id >>= 7
		}
		all[n] = byte(id)
		n++
	}
	return all[:n]
}
