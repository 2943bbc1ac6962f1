package trace

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A Member is what rows are chosen by for their sessions.
type Member struct {
	Row `parquet:"-"`

	Session      *int64  `parquet:"session,optional"`
	Turn         *int32  `parquet:"turn,optional"`
	Parents      []int64 `parquet:"parents,list"`
	InputTokens  int32   `parquet:"input_tokens,zstd"`
	OutputTokens *int32  `parquet:"output_tokens,optional,zstd"`
}

// Sampled says what a sample has of what it was taken from.
type Sampled struct {
	Sessions, OfSessions int64 // groups of rows that a session or parents connect; a row without either is one
	Rows, OfRows         int64
	Strata               int
}

var errTooManyRows = errors.New("a part of a trace of 2^32 rows or more cannot be chosen")

// Sample chooses whole sessions, a share of them from 0 to 1, and keeps their
// rows. src reads all rows of the trace; only those of p take part.
//
// Rows belong together when they name one session, or when one is the parent of
// the other, directly or through others. The groups so found are sorted into
// strata by the power of two below their tokens, input and output, and below their
// number of rows; of each stratum the share is drawn without replacement, rounded
// so that the total is right to one. The seed decides which. So the sizes of
// sessions are nearly those of the whole; what sessions share with one another
// thins out.
//
// Memory: 20 bytes for each row of p, and 8 for each session.
func (p Part) Sample(src Reader[Member], share float64, seed uint64) (Part, Sampled, error) {
	s, err := p.group(src)
	if err != nil {
		return p, Sampled{}, err
	}
	strata := s.strata()
	done := Sampled{OfRows: int64(len(s.up)), Strata: len(strata)}
	keys := make([]stratum, 0, len(strata))
	for k, st := range strata {
		keys = append(keys, k)
		done.OfSessions += st.left
	}
	slices.SortFunc(keys, func(a, b stratum) int { return int(a) - int(b) })
	total, due := int64(0), 0.
	for _, k := range keys {
		due += share * float64(strata[k].left)
		strata[k].take = min(int64(math.Round(due))-total, strata[k].left)
		total += strata[k].take
	}
	done.Sessions = total
	rows := s.draw(strata, rand.New(rand.NewPCG(seed, sampleStream)))
	done.Rows = int64(len(rows))
	return p.only(rows), done, nil
}

// Deal keeps the rows of whole groups, as Sample has them: those of the groups that mine
// chooses by their number, which is from 0 in the order of their first rows. It returns how
// many groups p has. src reads all rows of the trace.
func (p Part) Deal(src Reader[Member], mine func(group int64) bool) (Part, int64, error) {
	s, err := p.group(src)
	if err != nil {
		return p, 0, err
	}
	number, rows := int64(0), []uint32{}
	for i := range s.up {
		root := s.root(uint32(i))
		if int(root) == i {
			s.turns[i] = 0
			if mine(number) {
				s.turns[i] = 1
			}
			number++
		}
		if s.turns[root] != 0 {
			rows = append(rows, uint32(i))
		}
	}
	return p.only(rows), number, nil
}

// sampleStream tells the draws of a sample from other uses of a seed.
const sampleStream = 0x73616d706c65

// groups are the groups of a part, with what they are sorted into strata by.
type groups struct {
	Groups
	tokens []int64
	turns  []uint32 // of a root once all are added up; when it is drawn, 1 if it is taken
}

func (p Part) group(src Reader[Member]) (*groups, error) {
	n := p.Len()
	if n >= math.MaxUint32 {
		return nil, errTooManyRows
	}
	s := &groups{tokens: make([]int64, n), turns: make([]uint32, n)}
	s.grow(n)
	err := Each(Pick(src, p, nil), func(row int64, m *Member) error {
		s.tokens[row] = int64(m.InputTokens)
		if m.OutputTokens != nil {
			s.tokens[row] += int64(*m.OutputTokens)
		}
		s.Add(row, m.Session, p.Parents(m.Parents))
		return nil
	})
	return s, err
}

// A stratum is the octaves of tokens and of rows of a group.
type stratum uint16

// A quota says how many groups of a stratum are still to come, and to be taken.
type quota struct{ left, take int64 }

func (s *groups) stratum(root int) stratum {
	return stratum(bits.Len64(uint64(max(s.tokens[root], 0)))<<8 | bits.Len32(s.turns[root]))
}

// strata adds the rows of each group up and counts groups by stratum.
func (s *groups) strata() map[stratum]*quota {
	for i := range s.up {
		r := s.root(uint32(i))
		s.turns[r]++
		if int(r) != i {
			s.tokens[r] += s.tokens[i]
		}
	}
	out := map[stratum]*quota{}
	for i, up := range s.up {
		if int(up) != i {
			continue
		}
		k := s.stratum(i)
		if out[k] == nil {
			out[k] = new(quota)
		}
		out[k].left++
	}
	return out
}

// draw takes groups in the order of their first rows, each with the chance that
// fills its stratum's quota (Knuth, The Art of Computer Programming, 3.4.2,
// algorithm S), and returns their rows.
func (s *groups) draw(strata map[stratum]*quota, r *rand.Rand) []uint32 {
	rows := []uint32{}
	for i := range s.up {
		root := s.root(uint32(i))
		if int(root) == i {
			q := strata[s.stratum(i)]
			taken := r.Int64N(q.left) < q.take
			q.left--
			s.turns[i] = 0
			if taken {
				q.take--
				s.turns[i] = 1
			}
		}
		if s.turns[root] == 1 {
			rows = append(rows, uint32(i))
		}
	}
	return rows
}
