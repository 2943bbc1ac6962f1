package anonymize_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// dialogues makes sessions of users whose turns have few lengths, so that many
// are alike. Sessions come one after the other, in a random order of users.
func dialogues(rng *rand.Rand, users, sessions, longest int) []trace.Request {
	var rows []trace.Request
	for s := range sessions {
		user, turns := int64(rng.IntN(users)), 1+rng.IntN(longest)
		for turn := range turns {
			r := trace.Request{ArrivalNS: int64(len(rows)) * 2e9, User: trace.Ptr(user), Session: trace.Ptr(int64(s)), Turn: trace.Ptr(int32(turn)),
				InputTokens: []int32{10, 10, 100, 1000}[rng.IntN(4)], OutputTokens: 10, Kind: "chat", Status: trace.StatusOK}
			if turn > 0 {
				r.Parents, r.ThinkNS, r.ToolNS = []int64{int64(len(rows)) - 1}, trace.Ptr(int64(3e9)), trace.Ptr(int64(1e9))
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// withOrigin releases rows and says which row of the source each came from.
func withOrigin(t testing.TB, p anonymize.PartnerPolicy, rows []trace.Request) ([]trace.Request, []int64, anonymize.Card) {
	t.Helper()
	type drawn struct{ row, at int64 }
	var all []drawn
	out, card := released(t, p.Watched(func(row, at int64) { all = append(all, drawn{row, at}) }), rows)
	slices.SortStableFunc(all, func(a, b drawn) int { return cmp.Compare(a.at, b.at) })
	origin := make([]int64, len(all))
	for i, d := range all {
		origin[i] = d.row
	}
	return out, origin, card
}

// Every released session of several turns has the lengths of those of k users or
// more, turn by turn and to its end; its first turn waits for nobody, and no turn
// for one of another session.
func TestLinksHideAmongUsers(t *testing.T) {
	kept := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		rows := dialogues(rng, 30, 40+rng.IntN(300), 1+rng.IntN(7))
		k := 2 + int(seed)%10
		out, origin, card := withOrigin(t, anonymize.PartnerPolicy{KClass: 2, LinkK: k, Noise: still(seed)}, rows)
		shapes, first := map[int64]string{}, map[int64]int64{}
		for i := range out {
			r := &out[i]
			s := *r.Session
			if _, ok := first[s]; !ok {
				first[s] = *rows[origin[i]].User
				if r.Parents != nil || r.ThinkNS != nil || r.ToolNS != nil || *r.Turn != 0 {
					t.Fatalf("seed %d: the first turn of session %d waits: %+v", seed, s, r)
				}
			} else if r.ThinkNS == nil || len(r.Parents) != 1 || *out[r.Parents[0]].Session != s {
				t.Fatalf("seed %d: turn %d of session %d has lost its parent", seed, *r.Turn, s)
			}
			shapes[s] += fmt.Sprint(r.InputTokens, " ", r.OutputTokens, ";")
		}
		users := map[string]map[int64]bool{}
		for s, shape := range shapes {
			if users[shape] == nil {
				users[shape] = map[int64]bool{}
			}
			users[shape][first[s]] = true
		}
		for i := range out {
			if shape := shapes[*out[i].Session]; *out[i].Turn > 0 && len(users[shape]) < k {
				t.Fatalf("seed %d: a session like %s has %d users, want %d", seed, shape, len(users[shape]), k)
			}
		}
		turns, sessions := map[int64]int{}, 0
		for _, row := range origin {
			if turns[*rows[row].Session]++; turns[*rows[row].Session] == 1 {
				sessions++
			}
		}
		if links := len(out) - sessions; links > 0 {
			if want := float64(len(out)-len(shapes)) / float64(links); *card.Partner.LinksKept != want {
				t.Fatalf("seed %d: the card says %v of the links are left, there are %v", seed, *card.Partner.LinksKept, want)
			}
		}
		kept += len(out) - len(shapes)
	}
	if kept < 1000 {
		t.Errorf("only %d links were left: this test shows little", kept)
	}
}

// Sessions that are all alike stay whole, and k_link of 1 keeps every link.
func TestLinksOfTheAlikeStay(t *testing.T) {
	alike := dialogues(rand.New(rand.NewPCG(1, 1)), 1, 1, 1)[:0]
	for s := range int64(12) {
		for turn := range int32(9) {
			alike = append(alike, trace.Request{ArrivalNS: int64(len(alike)) * 2e9, User: trace.Ptr(s), Session: trace.Ptr(s), Turn: trace.Ptr(turn),
				InputTokens: 100 * (turn + 1), OutputTokens: 10, Kind: "chat", Status: trace.StatusOK})
		}
	}
	if _, card := released(t, anonymize.PartnerPolicy{}, alike); *card.Partner.LinksKept != 1 {
		t.Errorf("%v of the links of sessions that are alike are kept, want all", *card.Partner.LinksKept)
	}
	odd := dialogues(rand.New(rand.NewPCG(2, 2)), 30, 100, 6)
	out, card := released(t, anonymize.PartnerPolicy{KClass: 2, LinkK: 1}, odd)
	sessions := map[int64]bool{}
	for i := range out {
		sessions[*out[i].Session] = true
	}
	if len(sessions) != 100 || card.Partner.LinksKept != nil {
		t.Errorf("with k_link 1 there are %d sessions of 100", len(sessions))
	}
	if _, card := released(t, anonymize.PartnerPolicy{KClass: 2, LinkK: 30}, odd); *card.Partner.LinksKept > 0.4 {
		t.Errorf("%v of the links of sessions that differ are kept", *card.Partner.LinksKept)
	}
}

// Cutting links moves no request and changes no block, so the hit ratio stays.
func TestLinksLeaveReuse(t *testing.T) {
	rows := house(rand.New(rand.NewPCG(9, 9)), 25, 600)
	for _, unit := range []string{anonymize.UnitUser, anonymize.UnitSession} {
		all, before := released(t, anonymize.PartnerPolicy{Unit: unit, KClass: 5, LinkK: 1, Noise: still(3)}, rows)
		cut, after := released(t, anonymize.PartnerPolicy{Unit: unit, KClass: 5, Noise: still(3)}, rows)
		if *after.Partner.LinksKept > 0.5 || before.Partner.OwnBlocks != after.Partner.OwnBlocks || after.Partner.OwnBlocks == 0 {
			t.Errorf("%s: links %v, linked by own blocks %v and %v", unit, *after.Partner.LinksKept, before.Partner.OwnBlocks, after.Partner.OwnBlocks)
		}
		for i := range all {
			if all[i].ArrivalNS != cut[i].ArrivalNS || !reflect.DeepEqual(all[i].Blocks, cut[i].Blocks) || all[i].Category != cut[i].Category {
				t.Fatalf("%s: row %d is another one", unit, i)
			}
		}
	}
}

// The share of the requests that own blocks link is that of a second count.
func TestOwnBlocksAreCounted(t *testing.T) {
	for seed := range uint64(12) {
		rows := house(rand.New(rand.NewPCG(seed, 4)), 12, 300)
		for i := range rows { // chained, as blocks of a real trace are
			rows[i].Parents, rows[i].Session = nil, nil
		}
		out, origin, card := withOrigin(t, anonymize.PartnerPolicy{Unit: anonymize.UnitUser, KClass: 2, KShare: 4, Noise: still(seed), Quantum: 1e6}, rows)
		users := map[uint64]map[int64]bool{}
		user := func(row int64) int64 {
			if u := rows[row].User; u != nil {
				return *u
			}
			return -1
		}
		for row := range rows {
			for _, b := range rows[row].Blocks {
				if users[b] == nil {
					users[b] = map[int64]bool{}
				}
				users[b][user(int64(row))] = true
			}
		}
		type own struct {
			user  int64
			block uint64
		}
		slices.Sort(origin) // in the order of the source
		seen, linked, n := map[own]bool{}, 0, len(out)
		length := map[int64]int{}
		_, again, _ := withOrigin(t, anonymize.PartnerPolicy{Unit: anonymize.UnitUser, KClass: 2, KShare: 4, Noise: still(seed), Quantum: 1e6}, rows)
		for i, row := range again {
			length[row] = len(out[i].Blocks)
		}
		for _, row := range origin {
			hit := false
			blocks := rows[row].Blocks[:min(len(rows[row].Blocks), length[row])]
			for _, b := range blocks {
				hit = hit || len(users[b]) < 4 && seen[own{user(row), b}]
			}
			for _, b := range blocks {
				seen[own{user(row), b}] = true
			}
			if hit {
				linked++
			}
		}
		if want := float64(linked) / float64(n); card.Partner.OwnBlocks != want || linked == 0 {
			t.Errorf("seed %d: %v of the requests, want %v", seed, card.Partner.OwnBlocks, want)
		}
	}
}
