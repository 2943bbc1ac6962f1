package audit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/profile"
)

// talkHouse is a trace of tier internal without sessions of its source, with
// blocks: 300 conversations whose lengths differ, behind one beginning of so many.
// They are of so many users; of none with 0.
func talkHouse(t *testing.T, beginnings, users int) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	var rows []trace.Request
	next := uint64(beginnings)
	for talk := range 300 {
		var user *int64
		if users > 0 {
			user = trace.Ptr(int64(talk % users))
		}
		blocks := []uint64{uint64(talk % beginnings)}
		for range 1 + rng.IntN(9) {
			for range 1 + rng.IntN(6) {
				blocks = append(blocks, next)
				next++
			}
			rows = append(rows, trace.Request{ArrivalNS: int64(len(rows)) * 3e9, User: user, InputTokens: int32(16 * len(blocks)), OutputTokens: int32(10 + rng.ExpFloat64()*60),
				Blocks: slices.Clone(blocks), Kind: "chat", Status: trace.StatusOK})
		}
	}
	a := profile.NewAnnotator(16, profile.Options{})
	for i := range rows {
		a.Count(&rows[i])
	}
	for i := range rows {
		a.Annotate(int64(i), &rows[i])
	}
	return linkTrace(t, trace.Meta{Tier: anonymize.Internal, Sessions: "inferred", BlockSize: 16, Convention: trace.PartialTail}, rows)
}

// byRequest are the settings of a release of such a trace.
func byRequest(drop bool) anonymize.PartnerPolicy {
	return anonymize.PartnerPolicy{Unit: anonymize.UnitRequest, KClass: 11, DropOwn: drop}
}

// A release whose blocks let anybody infer conversations fails, and one without
// such blocks passes every check. What many users begin with is no conversation of
// theirs, whether most requests carry it or not.
func TestLinkageByBlocks(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		src  *trace.Trace
		unit string
		hits bool // something is shared still
	}{
		"nobody is named":        {talkHouse(t, 1, 0), anonymize.UnitRequest, true},
		"users":                  {talkHouse(t, 1, 70), anonymize.UnitUser, true},
		"users, four beginnings": {talkHouse(t, 4, 70), anonymize.UnitUser, true},
		"nobody, four":           {talkHouse(t, 4, 0), anonymize.UnitRequest, false}, // that may be four conversations
	} {
		p := byRequest(false)
		p.Unit = of.unit
		f := linkage(t.Context(), linkReleased(t, of.src, p, nil))
		if f.Status != Fail || !strings.Contains(f.Why, "the lengths of 4 requests single out") || !strings.Contains(f.Why, "--drop-own-blocks") {
			t.Errorf("%s, with blocks that link conversations: %s, %s", name, f.Status, f.Why)
		}
		p.DropOwn = true
		c := linkReleased(t, of.src, p, nil)
		for check, f := range found(t, c) {
			blind := check == "injection" && !of.hits && f.Status == Inconclusive // no guess can show where nothing is shared
			if f.Status != Pass && f.Status != Skipped && !blind {
				t.Errorf("%s, without them: %s: %s, %s", name, check, f.Status, f.Why)
			}
		}
		after, err := totalsOf(t.Context(), 16, sourceOf(c.Output.Trace).Open)
		if err != nil || (after.Hits > 0) != of.hits {
			t.Errorf("%s: %d hits, %v", name, after.Hits, err)
		}
	}
}

// A release whose card says that blocks of few were dropped fails where they were
// not, whether their sessions are in it or not.
func TestPlantedOwnBlocksThatStay(t *testing.T) {
	t.Parallel()
	src := talkHouse(t, 1, 0)
	var kept linkKeep
	if _, err := anonymize.Release(t.Context(), byRequest(false), sourceOf(src), &kept); err != nil {
		t.Fatal(err)
	}
	for _, sessions := range []bool{true, false} {
		c := linkReleased(t, src, byRequest(true), func(rows []trace.Request) {
			for i := range rows { // as if only the card had changed
				rows[i] = kept[i]
				if !sessions {
					rows[i].Session, rows[i].Turn = nil, nil
				}
			}
		})
		want := map[bool]string{true: "single out", false: "the card says that they were dropped"}[sessions]
		if f := linkage(t.Context(), c); f.Status != Fail || !strings.Contains(f.Why, want) {
			t.Errorf("with sessions %v: %s, %s", sessions, f.Status, f.Why)
		}
	}
}
