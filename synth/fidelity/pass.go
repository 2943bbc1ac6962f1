package fidelity

import (
	"errors"
	"math"
	"time"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/profile"
)

// sourceSessions is the value of [trace.Meta].Sessions of a trace that has its
// source's own sessions.
const sourceSessions = "source"

// curveSteps is the number of steps between the capacities of the hit-ratio
// curve, which is compared from curveFrom to curveTo blocks.
const (
	curveSteps = 60
	curveFrom  = 100
	curveTo    = 200_000
)

// curveCapacities lists the 61 capacities in blocks, evenly spread on a
// logarithmic axis.
func curveCapacities() []int64 {
	list := make([]int64, curveSteps+1)
	for i := range list {
		list[i] = int64(math.Round(curveFrom * math.Pow(curveTo/curveFrom, float64(i)/curveSteps)))
	}
	return list
}

// A signaturePass reads the rows in their order and fills a tally.
type signaturePass struct {
	*signatureTally
	warmUp     int64
	first      int64
	source     bool
	annotator  *profile.Annotator
	reuse      *profile.Reuse
	row        int64
	touched    []int64 // by block: arrival of the request that last carried it
	capacities []int64
	before     curveHits // what the history hit
}

// curveHits are the blocks that caches of so many capacities hit, and all
// references.
type curveHits struct {
	hits       []float64
	references float64
}

// measure reads what was written, first to find the prefix that most requests
// carry and then to measure, and drops it.
func (s *Signature) measure() (t *signatureTally, err error) {
	sorted, err := s.rows.Sort()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	s.ids = trace.Renumber{} // its memory is wanted below
	warmUp := time.Duration(s.warmUp())
	p := &signaturePass{signatureTally: newSignatureTally(s), warmUp: int64(warmUp), first: s.first, source: s.meta.Sessions == sourceSessions,
		annotator:  profile.NewAnnotator(s.size, profile.Options{}),
		reuse:      profile.NewReuse(s.size, profile.ReuseOptions{WarmUp: &warmUp}),
		capacities: curveCapacities()}
	if err := s.each(sorted, p.annotator.Count); err != nil {
		return nil, err
	}
	if err := s.each(sorted, p.add); err != nil {
		return nil, err
	}
	p.end()
	return p.signatureTally, nil
}

// each reads the rows, completed, from the beginning.
func (s *Signature) each(sorted *trace.Sorted, f func(*trace.Request)) error {
	rows, err := sorted.Reader()
	if err != nil {
		return err
	}
	if s.size > 0 {
		rows = &synth.Unshared{Src: rows, BlockSize: s.size, Next: s.named}
	}
	return trace.Each(rows, func(_ int64, r *trace.Request) error {
		f(r)
		return nil
	})
}

func (p *signaturePass) add(r *trace.Request) {
	counted := r.ArrivalNS-p.first >= p.warmUp
	if counted && p.requests == 0 && p.row > 0 {
		p.before = p.hits()
	}
	var hit int
	session := r.Session
	r.Session = nil
	if p.blocks {
		p.annotator.Annotate(p.row, r)
		hit = p.reuse.Add(r)
	}
	p.addSessions(r, session, hit, counted)
	p.pairs.add(lengthPair{r.InputTokens, r.OutputTokens}, counted)
	if counted {
		p.count(r, p.row, hit)
		for _, id := range r.Blocks[:hit] {
			p.reuseTime.Add(r.ArrivalNS-p.touched[id], 1)
		}
	}
	for _, id := range r.Blocks {
		if n := int(id) + 1 - len(p.touched); n > 0 {
			p.touched = append(p.touched, make([]int64, n)...)
		}
		p.touched[id] = r.ArrivalNS
	}
	p.row++
}

// addSessions counts turns twice: by the source's sessions, whose turns follow
// one another, and by the inferred ones, where a turn follows the request that
// last touched its deepest hit block.
func (p *signaturePass) addSessions(r *trace.Request, session *int64, hit int, counted bool) {
	if p.source && session != nil {
		p.bySource.add(*session, r.ArrivalNS, nil, counted)
	}
	if r.Session == nil {
		return
	}
	var parent *int64
	if hit > 0 {
		parent = &p.touched[r.Blocks[hit-1]]
	}
	p.inferred.add(*r.Session, r.ArrivalNS, parent, counted)
}

// hits returns the hits so far. The ratios are of whole numbers, which rounding
// finds again.
func (p *signaturePass) hits() curveHits {
	h := curveHits{hits: p.reuse.LRUHitRatios(p.capacities), references: float64(p.reuse.Summary().ReferencesBlocks)}
	for i, ratio := range h.hits {
		h.hits[i] = math.Round(ratio * h.references)
	}
	return h
}

// end finds the figures of reuse after the warm-up: hits so far less those of
// the history.
func (p *signaturePass) end() {
	if !p.blocks || p.requests == 0 {
		return
	}
	s := p.reuse.Summary()
	p.ratios, p.unique, p.sampledCurve = s.Steady.HitRatios, s.UniqueBlocks, s.Sampling != nil
	all := p.hits()
	if all.references == p.before.references {
		return
	}
	p.curve = make([]float64, len(all.hits))
	for i, n := range all.hits {
		if p.before.hits != nil {
			n -= p.before.hits[i]
		}
		p.curve[i] = n / (all.references - p.before.references)
	}
}
