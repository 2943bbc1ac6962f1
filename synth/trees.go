package synth

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/bits"

	"reprise/trace"
	"reprise/trace/sample"
)

// A TreeSample chooses the requests that are fitted of a trace which does not fit in memory:
// one in 2^n of its prefix trees, whole. Trees are cut behind what very many requests begin with, such as system
// prompts and documents: behind the deepest block that so many carry, and of whose carriers at most half have the next
// one. So a long conversation, which loses one with each turn, is not cut. Where the source
// names sessions, these are whole, with the tree of their first request.
type TreeSample struct {
	shift    int // one in 2^shift
	carriers []uint32
	heavy    uint32 // carriers of a block behind which a tree may be cut, less one
	cut      int    // of the request before: the block behind which its tree begins
	sourced  bool
	sessions trace.Renumber
	taken    []bool // by session
	rows     uint64

	all, some treeFigures
	seen      []uint64 // bits of all blocks, by a hash; nil where their number is not asked for
}

// treeFigures are sums over requests.
type treeFigures struct {
	requests, input, output int64
	references              int64 // blocks of prompts
	distinct                float64
}

// What a fit takes, in bytes, about.
const (
	fitMemory  = 1 << 30
	perSwapped = 1600 // for each request
	perKept    = 400  // the same, without swapping
	perBlock   = 24
)

const (
	carrierBits = 22 // counts of blocks by so many bits of a hash
	seenBits    = 27 // of another; the share that is seen tells the number of blocks (linear counting)
	heavyFitted = 32 // of the carriers of a block behind which a tree is cut so many are fitted, about
)

// NewTreeSample begins a sample. Count all requests, then Choose and ask what it Takes, in the
// same order. With sessions, those that rows name are whole. It takes 16 MB, and a byte for each session.
func NewTreeSample(sessions bool) *TreeSample {
	return &TreeSample{carriers: make([]uint32, 1<<carrierBits), sourced: sessions}
}

// Count takes a request. Those that failed are not to be counted.
func (s *TreeSample) Count(r *trace.Request) { s.CountFor(r, 1) }

// CountFor takes a request that stands for so many.
func (s *TreeSample) CountFor(r *trace.Request, requests uint32) {
	s.all.add(r)
	s.all.requests += int64(requests) - 1
	for _, b := range r.Blocks {
		h := sample.Mix64(b)
		s.carriers[h>>(64-carrierBits)] += requests
		if s.seen != nil {
			s.seen[h%(1<<seenBits)/64] |= 1 << (h % 64)
		}
	}
}

// CountBefore takes requests of which is known how many have each of the first blocks.
func (s *TreeSample) CountBefore(requests int64, carriers []uint32) {
	s.all.requests += requests
	for b, n := range carriers {
		s.carriers[sample.Mix64(uint64(b))>>(64-carrierBits)] += n
	}
}

// Carriers is how many requests have a block, and a few more.
func (s *TreeSample) Carriers(b uint64) uint32 { return s.carriers[sample.Mix64(b)>>(64-carrierBits)] }

// countDistinct ends the counting with the number of distinct blocks.
func (s *TreeSample) countDistinct() {
	unseen := 1 << seenBits
	for _, w := range s.seen {
		unseen -= bits.OnesCount64(w)
	}
	s.seen = nil
	s.all.distinct = -(1 << seenBits) * math.Log(float64(max(1, unseen))/(1<<seenBits))
}

// Choose begins a pass over the requests, and takes those of one in 2^shift trees.
func (s *TreeSample) Choose(shift int) {
	s.heavy = uint32(heavyFitted) << shift
	s.shift, s.rows, s.sessions, s.taken, s.some = shift, 0, trace.Renumber{}, nil, treeFigures{}
}

// SurveyTrees reads a trace to be fitted, and returns nil if the fit takes no more than some
// 1.1 GB. Else [FitOptions] take the sample.
func SurveyTrees(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta,
	opts FitOptions) (*TreeSample, error) {
	return surveyTrees(ctx, src, meta, opts, fitMemory)
}

func surveyTrees(ctx context.Context, src trace.Reader[trace.Request], meta trace.Meta, opts FitOptions,
	most float64) (*TreeSample, error) {
	s := NewTreeSample(meta.Sessions == sessionsOfSource)
	s.seen = make([]uint64, 1<<(seenBits-6))
	err := trace.Each(src, func(row int64, r *trace.Request) error {
		if row%progressRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if opts.Progress != nil {
				opts.Progress(row)
			}
		}
		if r.Status != trace.StatusFailed {
			s.Count(r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.countDistinct()
	takes := float64(perSwapped)
	if opts.KSwap == 1 {
		takes = perKept
	}
	takes = takes*float64(s.all.requests) + perBlock*s.all.distinct
	shift := 0
	for takes > most*float64(uint64(1)<<shift) {
		shift++
	}
	if shift == 0 {
		return nil, nil
	}
	s.Choose(shift)
	return s, nil
}

func (f *treeFigures) add(r *trace.Request) {
	f.requests++
	f.input, f.output = f.input+int64(r.InputTokens), f.output+int64(r.OutputOr(0))
	f.references += int64(len(r.Blocks))
}

// Takes tells whether the next request is in the sample.
func (s *TreeSample) Takes(r *trace.Request) bool {
	s.rows++
	s.cut = 0
	above := uint32(math.MaxUint32)
	for i := 0; i <= len(r.Blocks) && above > s.heavy; i++ {
		carriers := uint32(0)
		if i < len(r.Blocks) {
			carriers = min(above, s.Carriers(r.Blocks[i]))
		}
		if carriers <= above/2 {
			s.cut = i
		}
		above = carriers
	}
	key := sample.Key(s.rows, 1)
	if s.cut < len(r.Blocks) {
		key = sample.Key(r.Blocks[s.cut], 2)
	}
	taken := key>>(64-s.shift) == 0
	if s.sourced && r.Session != nil {
		id := s.sessions.ID(uint64(*r.Session))
		if id == uint64(len(s.taken)) {
			s.taken = append(s.taken, taken)
		}
		taken = s.taken[id]
	}
	if taken {
		s.some.add(r)
	}
	return taken
}

// A sampledTrees says what part of a trace a model was fitted to, and how far that is from the whole.
type sampledTrees struct {
	OneIn    int64   `json:"one_in"`   // of the prefix trees
	Requests int64   `json:"requests"` // of the trace, but for failed ones
	Fitted   int64   `json:"fitted"`   // of these
	Input    float64 `json:"input"`    // tokens of a request in the sample over those in the trace, less 1
	Output   float64 `json:"output"`   // the same
	Hits     float64 `json:"hits"`     // share of blocks that hit without limit, in the sample less that in the trace
}

func (s *TreeSample) sampled() *sampledTrees {
	off := func(a, b int64) float64 {
		return float64(a)/float64(max(1, s.some.requests))/(float64(max(1, b))/float64(max(1, s.all.requests))) - 1
	}
	hits := func(f *treeFigures) float64 { return 1 - f.distinct/float64(max(1, f.references)) }
	return &sampledTrees{OneIn: 1 << s.shift, Requests: s.all.requests, Fitted: s.some.requests,
		Input: off(s.some.input, s.all.input), Output: off(s.some.output, s.all.output),
		Hits: hits(&s.some) - hits(&s.all)}
}

// errSampled is the error for a model file that tells of no such sample.
var errSampled = errors.New("its metadata " + keySampled + " do not describe a sample of prefix trees")

func parseSampled(text string, places int64) (*sampledTrees, error) {
	s := new(sampledTrees)
	if json.Unmarshal([]byte(text), s) != nil || s.OneIn < 2 || s.OneIn > 1<<16 ||
		bits.OnesCount64(uint64(s.OneIn)) != 1 ||
		s.Fitted != places || s.Requests < s.Fitted || s.Requests > math.MaxInt32 {
		return nil, errSampled
	}
	return s, nil
}

func (s *sampledTrees) text() string {
	b, _ := json.Marshal(s) // of finite numbers alone: there is no error
	return string(b)
}

// copies is how many populations of places make the requests of one of [Options].Users.
func (m *Model) copies() int {
	if m.sampled == nil {
		return 1
	}
	return int(m.sampled.OneIn)
}
