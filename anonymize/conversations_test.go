package anonymize_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/profile"
)

// conversations makes a trace that names nobody, as an import leaves it: prompts
// grow from turn to turn behind a beginning that all have, requests of several
// conversations are between each other, and some fail and are sent again.
func conversations(rng *rand.Rand, n, longest int) anonymize.Source {
	type talk struct {
		blocks []uint64
		turns  int
	}
	const common = 2
	next := uint64(common)
	var open []talk
	for range n {
		open = append(open, talk{[]uint64{0, 1}, 1 + rng.IntN(longest)})
	}
	var rows []trace.Request
	for len(open) > 0 {
		at := rng.IntN(min(len(open), 8))
		c := &open[at]
		for range 1 + rng.IntN(3) {
			c.blocks = append(c.blocks, next)
			next++
		}
		r := trace.Request{ArrivalNS: int64(len(rows)) * 2e9, InputTokens: int32(16*len(c.blocks) - rng.IntN(16)), OutputTokens: int32(10 + rng.IntN(40)),
			Blocks: slices.Clone(c.blocks), Kind: "chat", Status: trace.StatusOK}
		for range rng.IntN(20) - 12 { // a conversation that fails again and again is no crowd
			failed := r
			failed.Status = trace.StatusFailed
			rows = append(rows, failed)
		}
		rows = append(rows, r)
		if c.turns--; c.turns == 0 {
			open = slices.Delete(open, at, at+1)
		}
	}
	a := profile.NewAnnotator(16, profile.Options{})
	for i := range rows {
		a.Count(&rows[i])
	}
	for i := range rows {
		a.Annotate(int64(i), &rows[i])
	}
	src := source(rows)
	src.Meta.Sessions = "inferred"
	return src
}

// rowsOf are the rows of a source.
func rowsOf(t *testing.T, src anonymize.Source) (rows []trace.Request) {
	t.Helper()
	r, err := src.Open()
	if err == nil {
		var w trace.SliceWriter[trace.Request]
		_, err = trace.Copy(&w, r)
		rows = w.Rows
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func releasedOf(t *testing.T, p anonymize.PartnerPolicy, src anonymize.Source) ([]trace.Request, anonymize.Card) {
	t.Helper()
	var out keep
	card, err := anonymize.Release(t.Context(), p, src, &out)
	if err != nil {
		t.Fatal(err)
	}
	return out, card
}

// Where requests are counted, a conversation of k_share of them shares its own
// beginning: the card says how many requests that links. With own blocks dropped
// two requests share only what k_share conversations have, and nothing that they
// would not share else: to drop never tells an attacker more.
func TestDropOwnCountsConversations(t *testing.T) {
	t.Parallel()
	for seed := range uint64(oftener(6, 20)) {
		src := conversations(rand.New(rand.NewPCG(seed, 12)), 80, 12)
		rows := rowsOf(t, src)
		p := anonymize.PartnerPolicy{Unit: anonymize.UnitRequest, KShare: 2 + int(seed)%5, KClass: 2, Noise: still(seed)}
		linked, before := releasedOf(t, p, src)
		if j := before.Partner.Joined; j == nil || *j < 0.1 {
			t.Fatalf("seed %d: %v of the requests are joined by blocks: this test shows little", seed, j)
		}
		p.DropOwn, p.Noise = true, still(seed)
		out, card := releasedOf(t, p, src)
		if card.Partner.Joined != nil || len(out) != len(linked) || *card.Change.After.HitRatio() == 0 {
			t.Fatalf("seed %d: %d rows of %d, joined %v, hit ratio %v", seed, len(out), len(linked), card.Partner.Joined, card.Change.After.HitRatio())
		}
		p.Noise, p.SpillDir = still(seed), t.TempDir()
		if little, _ := releasedOf(t, p.WithLimits(50, 20, 700), src); !reflect.DeepEqual(little, out) {
			t.Fatalf("seed %d: a release in little memory is another one", seed)
		}
		if m, err := card.Meta(src.Meta); err != nil || m.Sessions != "" {
			t.Errorf("seed %d: sessions %q of a release without any, %v", seed, m.Sessions, err)
		}
		count, as := map[uint64]int{}, map[uint64]uint64{}
		for i := range out { // the noise is the same, and so the order
			if out[i].Session != nil || out[i].Turn != nil {
				t.Fatalf("seed %d: row %d has a session", seed, i)
			}
			for at, b := range out[i].Blocks {
				count[b]++
				if was, ok := as[b]; ok && was != linked[i].Blocks[at] {
					t.Fatalf("seed %d: block %d joins what was apart", seed, b)
				}
				as[b] = linked[i].Blocks[at]
			}
		}
		shared, link := sharedByConversations(rows, p.KShare), 0
		for _, n := range count {
			if n > 1 {
				link++
			}
		}
		if link > shared || link == 0 {
			t.Errorf("seed %d: %d blocks link requests, and %d of the source are of %d conversations", seed, link, shared, p.KShare)
		}
		n, err := anonymize.CountShared(t.Context(), src, p.KShare, func(_ int64, r *trace.Request) uint64 {
			if r.Session == nil {
				return anonymize.Nobody
			}
			return uint64(*r.Session)
		})
		if err != nil || n != int64(shared) {
			t.Errorf("seed %d: CountShared says %d, %v, want %d", seed, n, err, shared)
		}
	}
}

// sharedByConversations counts the blocks that k conversations have.
func sharedByConversations(rows []trace.Request, k int) (shared int) {
	have := map[uint64]map[int64]bool{}
	for i := range rows {
		for _, b := range rows[i].Blocks {
			if have[b] == nil {
				have[b] = map[int64]bool{}
			}
			if rows[i].Session != nil {
				have[b][*rows[i].Session] = true
			}
		}
	}
	for _, sessions := range have {
		if len(sessions) >= k {
			shared++
		}
	}
	return shared
}
