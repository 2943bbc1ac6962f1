package synth

import (
	"errors"
	"fmt"
	"strconv"

	"reprise/trace"
)

// IDs says how many sessions, users and blocks a trace names: one more than
// the greatest id of each, since a trace numbers them densely from 0.
type IDs struct{ Sessions, Users, Blocks uint64 }

// maxIDs bounds each of [IDs], far above any trace, so that a broken file is
// noticed before its numbers spread.
const maxIDs = 1 << 40

// Count reads src to its end. A negative id, or one of 2^40 and above, is an
// error that names the row, counted from 0.
func Count(src trace.Reader[trace.Request]) (IDs, error) {
	var n IDs
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		ok := atLeast(&n.Sessions, r.Session) && atLeast(&n.Users, r.User)
		for _, ids := range [...][]uint64{r.Blocks, r.OutputBlocks} {
			for _, id := range ids {
				ok = ok && id < maxIDs
				n.Blocks = max(n.Blocks, id+1)
			}
		}
		if !ok {
			return fmt.Errorf("row %d: a session, user or block id is not between 0 and 2^40", row)
		}
		return nil
	})
	return n, err
}

// atLeast raises n above an optional id and reports whether the id is valid.
func atLeast(n *uint64, id *int64) bool {
	if id == nil {
		return true
	}
	if *id < 0 || *id >= maxIDs {
		return false
	}
	*n = max(*n, uint64(*id)+1)
	return true
}

// A Mirror yields the rows of a trace under fresh ids. Blocks, sessions and
// users are each renamed by a bijection of the dense ids onto themselves that
// the seed selects; times, lengths, parents, categories and everything else
// stay. So every statistic of reuse stays as well, while the order of the ids
// tells nothing. It holds no table: memory does not grow with the trace.
type Mirror struct {
	seed                    uint64
	sessions, users, blocks permutation
}

// NewMirror makes the mirror that seed selects for a trace with the ids that
// [Count] found. The same seed and ids give the same rows on every machine.
func NewMirror(seed uint64, n IDs) *Mirror {
	return &Mirror{
		seed:     seed,
		sessions: newPermutation(forSessions.key(seed), n.Sessions),
		users:    newPermutation(forUsers.key(seed), n.Users),
		blocks:   newPermutation(forBlocks.key(seed), n.Blocks),
	}
}

// Reader yields the mirrored rows of src. Block lists are renamed in place. An
// id beyond those counted is an error that names the row, counted from 0.
func (m *Mirror) Reader(src trace.Reader[trace.Request]) trace.Reader[trace.Request] {
	return &mirrored{m: m, src: src}
}

// Meta describes the mirrored trace: as the source, with its tier and its
// privacy card, since what the rows tell of the people behind them is the same;
// with the seed; and without the digest, which is of other rows.
func (m *Mirror) Meta(src trace.Meta) trace.Meta {
	src.Seed = strconv.FormatUint(m.seed, 10)
	src.Digest = ""
	src.Breakers, src.Raw = "", "" // of texts that a workload has not got
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
		if err := r.m.rename(&rows[i]); err != nil {
			return i, fmt.Errorf("row %d: %w", r.row, err)
		}
		r.row++
	}
	return n, err
}

func (m *Mirror) rename(r *trace.Request) error {
	var sessionOK, userOK bool
	r.Session, sessionOK = m.sessions.renamed(r.Session)
	r.User, userOK = m.users.renamed(r.User)
	ok := sessionOK && userOK
	for _, ids := range [...][]uint64{r.Blocks, r.OutputBlocks} {
		for i, id := range ids {
			if id >= m.blocks.n {
				ok = false
				break
			}
			ids[i] = m.blocks.at(id)
		}
	}
	if !ok {
		return errors.New("it has an id beyond those counted; mirror the same rows that were counted")
	}
	return nil
}

// renamed returns the image of an optional id. It does not write through the
// pointer, which the source may share among rows.
func (p *permutation) renamed(id *int64) (*int64, bool) {
	if id == nil {
		return nil, true
	}
	if *id < 0 || uint64(*id) >= p.n {
		return id, false
	}
	return trace.Ptr(int64(p.at(uint64(*id)))), true
}
