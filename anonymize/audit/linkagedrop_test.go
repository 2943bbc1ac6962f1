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

// talkHouse is a trace of tier internal that names nobody, with blocks: 300
// conversations behind one beginning, whose lengths differ.
func talkHouse(t *testing.T) *trace.Trace {
	t.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	var rows []trace.Request
	next := uint64(1)
	for range 300 {
		blocks := []uint64{0}
		for range 1 + rng.IntN(9) {
			for range 1 + rng.IntN(6) {
				blocks = append(blocks, next)
				next++
			}
			rows = append(rows, trace.Request{ArrivalNS: int64(len(rows)) * 3e9, InputTokens: int32(16 * len(blocks)), OutputTokens: int32(10 + rng.ExpFloat64()*60),
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
// such blocks passes every check.
func TestLinkageByBlocks(t *testing.T) {
	src := talkHouse(t)
	f := linkage(t.Context(), linkReleased(t, src, byRequest(false), nil))
	if f.Status != Fail || !strings.Contains(f.Why, "the lengths of 4 requests single out") || !strings.Contains(f.Why, "--drop-own-blocks") {
		t.Errorf("with blocks that link conversations: %s, %s", f.Status, f.Why)
	}
	for check, f := range found(t, linkReleased(t, src, byRequest(true), nil)) {
		if f.Status != Pass && f.Status != Skipped {
			t.Errorf("without them: %s: %s, %s", check, f.Status, f.Why)
		}
	}
}

// A release whose card says that blocks of few were dropped fails where they were
// not, whether their sessions are in it or not.
func TestPlantedOwnBlocksThatStay(t *testing.T) {
	src := talkHouse(t)
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
