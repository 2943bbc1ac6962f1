package anonymize

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"time"

	"reprise/trace"
)

// A Renaming stands between a source and the rows that are made of it: every
// identifier becomes another, one to one, tokens as well as users, sessions, models
// and ids of blocks, and all arrivals move by one distance. What [Run] writes must
// be the same as without: nothing that is renamed may show. Text, its template and
// the date that the template tells a model stay, as tokens are renamed after them.
type Renaming struct {
	Seed  uint64
	Shift time.Duration
}

// name renames an identifier; the empty one is none and stays.
func (n *Renaming) name(s string) string {
	if n == nil || s == "" {
		return s
	}
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(s), n.Seed))
	return hex.EncodeToString(sum[:16])
}

func (n *Renaming) optional(t trace.Text) *string {
	s := optional(t)
	if s == nil {
		return nil
	}
	return trace.Ptr(n.name(*s))
}

// tokens renames ids in place. An odd factor makes a permutation of all numbers of
// 32 bits.
func (n *Renaming) tokens(ids []uint32) []uint32 {
	if n != nil {
		for i, id := range ids {
			ids[i] = id*(uint32(n.Seed)<<1|0x9e3779b1) + uint32(n.Seed>>32) + 1
		}
	}
	return ids
}

// blocks gives other ids for those that a source hashed itself.
func (n *Renaming) blocks(ids []uint64) []uint64 {
	if n == nil || len(ids) == 0 {
		return ids
	}
	out := make([]uint64, len(ids))
	for i, id := range ids {
		out[i] = id*(n.Seed<<1|0x9e3779b97f4a7c15) + 1
	}
	return out
}

func (n *Renaming) shift(ns int64) int64 {
	if n == nil {
		return ns
	}
	return ns + int64(n.Shift)
}

func optional(t trace.Text) *string {
	if t == (trace.Text{}) {
		return nil
	}
	return trace.Ptr(t.Reveal())
}
