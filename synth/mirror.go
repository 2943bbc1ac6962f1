package synth

import (
	"fmt"
	"strconv"

	"reprise/trace"
	"reprise/trace/sample"
)

// The streams of a seed; package prompt goes on from 4. The numbers are part of what a
// seed means.
const (
	forBlocks = iota + 1
	forSessions
	forUsers
)

// A Mirror yields the rows of a trace under fresh ids. Blocks, sessions and
// users are each renamed by a bijection of the dense ids onto themselves that
// the seed selects; times, lengths, parents, categories and everything else
// stay. So every statistic of reuse stays as well, while the order of the ids
// tells nothing. It holds no table: memory does not grow with the trace.
type Mirror struct {
	seed                    uint64
	sessions, users, blocks sample.Permutation
}

// NewMirror makes the mirror that seed selects for a trace with the ids that
// [Count] found. The same seed and ids give the same rows on every machine.
func NewMirror(seed uint64, n IDs) *Mirror {
	return &Mirror{
		seed:     seed,
		sessions: sample.NewPermutation(sample.Key(seed, forSessions), n.Sessions),
		users:    sample.NewPermutation(sample.Key(seed, forUsers), n.Users),
		blocks:   sample.NewPermutation(sample.Key(seed, forBlocks), n.Blocks),
	}
}

// Reader yields the mirrored rows of src. Block lists are renamed in place. An
// id beyond those counted is an error that names the row, counted from 0.
func (m *Mirror) Reader(src trace.Reader[trace.Request]) trace.Reader[trace.Request] {
	return &mirrored{m: m, src: src}
}

// Meta describes the mirrored trace: as the source, with its tier and its
// privacy card, since what the rows tell about the people behind them is the same;
// with the seed; and without the digest, which belongs to other rows.
func (m *Mirror) Meta(src trace.Meta) trace.Meta {
	src.Seed = strconv.FormatUint(m.seed, 10)
	src.Digest = ""
	src.Breakers, src.Raw, src.Source = "", "", "" // of texts that a workload has not got, and of other rows
	return src
}

type mirrored struct {
	m   *Mirror
	src trace.Reader[trace.Request]
	row int64
}

// Read implements [trace.Reader].
func (r *mirrored) Read(rows []trace.Request) (int, error) {
	n, err := r.src.Read(rows)
	for i := range rows[:n] {
		if !r.m.rename(&rows[i]) {
			return i, fmt.Errorf("row %d: it has an id beyond the counted ones; mirror the same rows that were "+
				"counted",
				r.row)
		}
		r.row++
	}
	return n, err
}

// rename renames the ids of a row, and reports whether all of them were counted.
func (m *Mirror) rename(r *trace.Request) bool {
	var sessionOK, userOK bool
	r.Session, sessionOK = renamed(&m.sessions, r.Session)
	r.User, userOK = renamed(&m.users, r.User)
	ok := sessionOK && userOK
	for _, ids := range [...][]uint64{r.Blocks, r.OutputBlocks} {
		for i, id := range ids {
			if id >= m.blocks.Len() {
				ok = false
				break
			}
			ids[i] = m.blocks.At(id)
		}
	}
	return ok
}

// renamed returns the image of an optional id. It does not write through the
// pointer, which the source may share among rows.
func renamed(p *sample.Permutation, id *int64) (*int64, bool) {
	if id == nil {
		return nil, true
	}
	if *id < 0 || uint64(*id) >= p.Len() {
		return id, false
	}
	return trace.Ptr(int64(p.At(uint64(*id)))), true
}
