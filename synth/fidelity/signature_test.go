package fidelity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/profile"
)

// A chatTrace makes a trace of chats in blocks of any size: next turns,
// branches and duplicates of earlier prompts, bursts, some failed rows, and
// sessions and think times as a source would tell them. A token is a byte; the
// prompts depend on the seed alone.
type chatTrace struct {
	seed uint64
	n    int
	size int
}

func (c chatTrace) meta() trace.Meta {
	return trace.Meta{BlockSize: c.size, Convention: trace.PartialTail, Sessions: sourceSessions}
}

func (c chatTrace) rows() []trace.Request {
	rng := rand.New(rand.NewPCG(c.seed, 5))
	ids := map[string]uint64{}
	blocks := func(prompt string) (list []uint64) {
		for end := c.size; end < len(prompt)+c.size; end += c.size {
			prefix := prompt[:min(end, len(prompt))]
			id, ok := ids[prefix]
			if !ok {
				id = uint64(len(ids))
				ids[prefix] = id
			}
			list = append(list, id)
		}
		return list
	}
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		return string(b)
	}
	system := text(70)
	var prompts []string
	var sessions []int64
	rows := make([]trace.Request, c.n)
	at, chats := int64(3e9), int64(0)
	for i := range rows {
		prompt := system + text(20+rng.IntN(300))
		session := chats
		switch old := max(0, i-1-rng.IntN(30)); {
		case i == 0:
		case rng.IntN(5) < 2:
			prompt, session = prompts[old]+text(1+rng.IntN(80)), sessions[old]
		case rng.IntN(6) == 0:
			prompt = prompts[old]
		case rng.IntN(6) == 0:
			prompt = prompts[old][:rng.IntN(len(prompts[old]))] + text(30)
		}
		if session == chats {
			chats++
		}
		prompts, sessions = append(prompts, prompt), append(sessions, session)
		rows[i] = trace.Request{ArrivalNS: at, InputTokens: int32(len(prompt)), OutputTokens: trace.Ptr(int32(1 + rng.IntN(40) + len(prompt)/9)),
			Blocks: blocks(prompt), Session: trace.Ptr(session)}
		if rng.IntN(12) == 0 {
			rows[i].Status = trace.StatusFailed
		}
		if rng.IntN(2) == 0 {
			rows[i].ThinkNS = trace.Ptr(int64(rng.ExpFloat64() * 5e9))
		}
		if rng.IntN(3) > 0 {
			at += int64(rng.ExpFloat64() * 2e9)
		}
	}
	return rows
}

func signatureOf(t testing.TB, meta trace.Meta, rows []trace.Request, opts Options) *Signature {
	t.Helper()
	s := NewSignature(meta, opts)
	if _, err := trace.Copy(s, copied(rows)); err != nil {
		t.Fatal(err)
	}
	return s
}

func tallyOf(t testing.TB, s *Signature) *signatureTally {
	t.Helper()
	if s.tally == nil {
		var err error
		if s.tally, err = s.measure(); err != nil {
			t.Fatal(err)
		}
	}
	return s.tally
}

// load drops failed rows.
func load(rows []trace.Request) []trace.Request {
	return slices.DeleteFunc(slices.Clone(rows), func(r trace.Request) bool { return r.Status == trace.StatusFailed })
}

// near fails unless two values are equal but for rounding.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// naiveStack looks up and touches an LRU stack that is a list, and returns for
// each row the depths of its leading known blocks, from 1.
func naiveStack(rows []trace.Request) [][]int {
	var stack []uint64 // most recent last
	depths := make([][]int, len(rows))
	for i, r := range rows {
		for _, id := range r.Blocks {
			at := slices.Index(stack, id)
			if at < 0 {
				break
			}
			depths[i] = append(depths[i], len(stack)-at)
		}
		for _, id := range slices.Backward(r.Blocks) {
			stack = slices.DeleteFunc(stack, func(old uint64) bool { return old == id })
			stack = append(stack, id)
		}
	}
	return depths
}

// The hit ratios after a warm-up are those of a plain simulation in which the
// history runs and is not counted.
func TestSignatureReuse(t *testing.T) {
	c := chatTrace{seed: 1, n: 300, size: 8}
	all := c.rows()
	rows := load(all)
	depths := naiveStack(rows)
	span := rows[len(rows)-1].ArrivalNS - rows[0].ArrivalNS
	for name, opts := range map[string]Options{
		"whole": {}, "half": {From: 0.5}, "warm": {WarmUp: 100 * time.Second}, "later": {From: 0.1, WarmUp: 90 * time.Second},
	} {
		got := tallyOf(t, signatureOf(t, c.meta(), all, opts))
		warmUp := max(int64(opts.From*float64(span)), int64(opts.WarmUp))
		var requests, refs, hits, tokens, hitTokens, full, fullHits int64
		var shares float64
		within := make([]int, len(signatureCapacities()))
		for i, r := range rows {
			if r.ArrivalNS-rows[0].ArrivalNS < warmUp {
				continue
			}
			n, hit := len(r.Blocks), len(depths[i])
			requests++
			refs += int64(n)
			hits += int64(hit)
			tokens += int64(r.InputTokens)
			hitTokens += int64(min(hit*c.size, int(r.InputTokens)))
			full += int64(int(r.InputTokens) / c.size)
			fullHits += int64(min(hit, int(r.InputTokens)/c.size))
			shares += float64(hit) / float64(n)
			for j, capacity := range signatureCapacities() {
				for _, d := range depths[i] {
					if int64(d) <= capacity {
						within[j]++
					}
				}
			}
		}
		if requests == 0 || name != "whole" && requests == int64(len(rows)) {
			t.Fatalf("%s: the oracle counts %d of %d requests", name, requests, len(rows))
		}
		near(t, name+" requests", float64(got.requests), float64(requests))
		near(t, name+" by block", *got.ratios.ByBlock, float64(hits)/float64(refs))
		near(t, name+" by token", *got.ratios.ByToken, float64(hitTokens)/float64(tokens))
		near(t, name+" mean", *got.ratios.MeanOverRequests, shares/float64(requests))
		near(t, name+" full", *got.ratios.FullBlocksOnly, float64(fullHits)/float64(full))
		for j, n := range within {
			near(t, fmt.Sprint(name, " curve ", j), got.curve[signatureCapacities()[j]], float64(n)/float64(refs))
		}
		if first, last := got.curve[curveFrom], got.curve[curveTo]; last-first < 0.05 {
			t.Errorf("%s: the curve from %v to %v is too flat to tell anything", name, first, last)
		}
	}
}

// Over a whole trace, the profiler finds the same categories, sessions, times
// and windows.
func TestSignatureAgreesWithProfile(t *testing.T) {
	c := chatTrace{seed: 2, n: 500, size: 16}
	for _, sessions := range []string{sourceSessions, "inferred"} {
		rows := c.rows()
		meta := c.meta()
		meta.Sessions, meta.Categories = sessions, trace.CategoryRule
		got := tallyOf(t, signatureOf(t, meta, rows, Options{}))

		categories, linked := profile.NewCategorizer(c.size, false), map[uint64]int64{}
		p := profile.NewProfiler(meta, profile.ProfilerOptions{})
		for i := range rows {
			r := &rows[i]
			if r.Category = categories.Category(r); sessions != sourceSessions { // by links
				hit, session := 0, int64(i)
				for hit < len(r.Blocks) && linked[r.Blocks[hit]] != 0 {
					hit++
				}
				if hit > got.kept.global {
					session = linked[r.Blocks[hit-1]] - 1
				}
				for _, b := range r.Blocks {
					linked[b] = session + 1
				}
				r.Session = &session
			}
			if _, err := p.Write(rows[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		mine := &got.inferred
		if sessions == sourceSessions {
			mine = &got.bySource
		}
		want := map[string]valueList{}
		for _, r := range p.Histograms() {
			if r.Category == "" {
				want[r.Metric] = append(want[r.Metric], valueCount{r.Lo + (r.Hi-r.Lo-1)/2, r.Count})
			}
		}
		for metric, list := range map[string]valueList{
			"turn_gap_ns": bucketList(&mine.gaps.buckets), profile.MetricTurns: mine.lengths().sorted(),
			"reuse_time_ns": bucketList(&got.reuseTime), "think_ns": bucketList(&got.think),
		} {
			if len(list) == 0 || !slices.Equal(list, want[metric]) {
				t.Errorf("%s, %s: %v, want %v", sessions, metric, list, want[metric])
			}
		}
		s := p.Summary()
		for _, share := range s.Categories {
			if share.Requests != got.categories[share.Category] || share.Requests == 0 && share.Category != trace.Cold {
				t.Errorf("%d %s, want %d", got.categories[share.Category], share.Category, share.Requests)
			}
		}
		scales := 0
		for _, idc := range s.Arrivals.IDC {
			i := slices.Index(idcScales[:], int64(idc.WindowS*1000))
			near(t, fmt.Sprint("IDC at ", idc.WindowS), *got.windows[i].idc(), *idc.IDC)
			scales++
		}
		if scales != 5 {
			t.Errorf("%d scales were compared", scales)
		}
	}
}

// After a warm-up, sessions and times are those of the later requests, with the
// earlier ones as where they come from.
func TestSignatureWarmUpSessions(t *testing.T) {
	at := func(s float64, session int64, blocks ...uint64) trace.Request {
		return trace.Request{ArrivalNS: int64(s * 1e9), Session: &session, InputTokens: int32(8 * len(blocks)), Blocks: blocks}
	}
	rows := []trace.Request{
		at(0, 5, 0, 1), at(1, 6, 2, 3), at(4, 5, 0, 1, 4), // history
		at(10, 5, 0, 1, 4, 5), at(12, 6, 2, 3, 6), at(13, 7, 9), at(16, 5, 0, 1, 4, 7), at(20, 8, 10),
	}
	meta := trace.Meta{BlockSize: 8, Sessions: sourceSessions}
	got := tallyOf(t, signatureOf(t, meta, rows, Options{From: 0.5}))
	seconds := func(values ...int64) valueList {
		var h profile.Histogram
		for _, v := range values {
			h.Add(v*1e9, 1)
		}
		return bucketList(&h)
	}
	for name, pair := range map[string][2]valueList{
		"source gaps":    {bucketList(&got.bySource.gaps.buckets), seconds(6, 11, 6)},
		"source turns":   {got.bySource.lengths().sorted(), valueList{{1, 3}, {2, 1}}},
		"inferred gaps":  {bucketList(&got.inferred.gaps.buckets), seconds(6, 11, 6)},
		"inferred turns": {got.inferred.lengths().sorted(), valueList{{1, 3}, {2, 1}}},
		"reuse times":    {bucketList(&got.reuseTime), seconds(6, 6, 6, 11, 11, 6, 6, 6)},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestWindowTally(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 200 {
		var w windowTally
		counts := make([]float64, 2+rng.IntN(30))
		var at int64
		counts[0], at = 1, 0
		w.add(0)
		for range rng.IntN(60) {
			if at += int64(rng.IntN(3) * rng.IntN(2)); at >= int64(len(counts)) {
				break
			}
			counts[at]++
			w.add(at)
		}
		last := int64(len(counts))
		w.add(last) // not whole: not counted
		var mean, squares float64
		for _, c := range counts {
			mean += c / float64(len(counts))
		}
		for _, c := range counts {
			squares += (c - mean) * (c - mean)
		}
		near(t, "IDC", *w.idc(), squares/float64(len(counts)-1)/mean)
	}
	var w windowTally
	if w.add(0); w.idc() != nil {
		t.Error("one window that is not whole has an IDC")
	}
}

// Chained ids let blocks be joined: a trace in blocks of 8 tokens is measured
// by 32 just as one that was cut so.
func TestSignatureJoinsBlocks(t *testing.T) {
	fine, coarse := chatTrace{3, 300, 8}, chatTrace{3, 300, 32}
	f, err := Compare(signatureOf(t, coarse.meta(), coarse.rows(), Options{}),
		signatureOf(t, fine.meta(), fine.rows(), Options{BlockSize: 32}))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.Measures {
		if !slices.Contains(copyMeasures, m.Name) && (m.Distance == nil || *m.Distance != 0) {
			t.Errorf("%s: distance %v", m.Name, m.Distance)
		}
	}
	if f.BlockSizeTokens != 32 || !slices.ContainsFunc(f.Warnings, func(w profile.Warning) bool { return w.Code == "joined_blocks" }) {
		t.Error("the joining is not said")
	}
}

// Blocks that nothing shares may be left out of a trace: it measures the same.
func TestSignatureCompletesBlocks(t *testing.T) {
	c := chatTrace{4, 300, 8}
	rows := c.rows()
	seen := map[uint64]int{}
	for _, r := range rows {
		for _, id := range r.Blocks {
			seen[id]++
		}
	}
	bare := slices.Clone(rows)
	removed := 0
	for i := range bare {
		n := slices.IndexFunc(bare[i].Blocks, func(id uint64) bool { return seen[id] == 1 })
		if n >= 0 {
			removed += len(bare[i].Blocks) - n
			bare[i].Blocks = bare[i].Blocks[:n]
		}
	}
	if removed < 1000 {
		t.Fatalf("only %d blocks are unshared", removed)
	}
	for _, size := range []int{8, 32} {
		opts := Options{BlockSize: size}
		f, err := Compare(signatureOf(t, c.meta(), rows, opts), signatureOf(t, c.meta(), bare, opts))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Measures {
			if !slices.Contains(copyMeasures, m.Name) && (m.Distance == nil || *m.Distance != 0) {
				t.Errorf("size %d, %s: distance %v", size, m.Name, m.Distance)
			}
		}
	}
}

func TestSignatureRefuses(t *testing.T) {
	row := func(at int64, in int32) trace.Request { return trace.Request{ArrivalNS: at, InputTokens: in} }
	for name, c := range map[string]struct {
		opts Options
		rows []trace.Request
		want string
	}{
		"disorder": {rows: []trace.Request{row(5, 1), row(4, 1)}, want: "row 1 arrives before row 0"},
		"negative": {rows: []trace.Request{row(5, 1), row(6, -1)}, want: "row 1: a token count is negative"},
		"blocks":   {opts: Options{BlockSize: 12}, rows: []trace.Request{row(1, 1)}, want: "blocks of 8 tokens cannot be measured as blocks of 12"},
	} {
		s := NewSignature(trace.Meta{BlockSize: 8}, c.opts)
		if _, err := s.Write(c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := func(opts Options) *Signature {
		return signatureOf(t, trace.Meta{BlockSize: 8}, []trace.Request{row(0, 1), row(9, 1)}, opts)
	}
	once := good(Options{})
	if _, err := Compare(once, once); err != nil {
		t.Fatal(err)
	}
	if _, err := once.Write([]trace.Request{row(10, 1)}); err == nil {
		t.Error("a signature that was compared takes rows")
	}
	if _, err := Compare(once, good(Options{})); err != nil {
		t.Error(err)
	}
	if _, err := Compare(once, NewSignature(trace.Meta{BlockSize: 8}, Options{})); err == nil || err.Error() != "the candidate has no requests" {
		t.Error(err)
	}
	if _, err := Compare(good(Options{WarmUp: time.Second}), once); err == nil || err.Error() != "the reference has no request after the warm-up of 1 s" {
		t.Error(err)
	}
	if _, err := Compare(once, NewSignature(trace.Meta{BlockSize: 12}, Options{})); err == nil || !strings.Contains(err.Error(), "neither is a multiple") {
		t.Error(err)
	}
	if _, err := Compare(once, NewSignature(trace.Meta{BlockSize: 16}, Options{})); err == nil || !strings.Contains(err.Error(), "measure both in blocks of 16") {
		t.Error(err)
	}
	if _, err := Compare(once, NewSignature(trace.Meta{BlockSize: 8, Convention: "other"}, Options{})); err == nil || !strings.Contains(err.Error(), "conventions") {
		t.Error(err)
	}
}
