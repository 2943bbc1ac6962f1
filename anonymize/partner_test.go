package anonymize_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// house makes a random trace of tier internal: users with sessions whose prompts
// share prefixes with each other and with those of other users.
func house(rng *rand.Rand, users, n int) []trace.Request {
	type prompt struct {
		blocks []uint64
		length int
	}
	var said []prompt
	var rows []trace.Request
	next, at := uint64(0), int64(0)
	sessions := map[int64][]int64{} // rows of each
	for i := range n {
		user := int64(rng.IntN(users))
		at += int64(rng.IntN(3)) * int64(rng.IntN(900_000_000))
		p := prompt{length: 1 + int(min(rng.ExpFloat64()*300, 4000))}
		if len(said) > 0 && rng.IntN(3) > 0 {
			old := said[rng.IntN(len(said))]
			if rng.IntN(8) == 0 {
				p = prompt{slices.Clone(old.blocks), old.length}
			} else {
				full := rng.IntN(old.length/16 + 1)
				p.blocks = slices.Clone(old.blocks[:full])
				p.length += full * 16
			}
		}
		for len(p.blocks) < (p.length+15)/16 {
			p.blocks = append(p.blocks, next)
			next++
		}
		said = append(said, p)
		r := trace.Request{ArrivalNS: at, InputTokens: int32(p.length), OutputTokens: int32(rng.IntN(200)), Blocks: p.blocks,
			Model: []string{"model-0", "model-1", "model-2"}[rng.IntN(40)/19], Kind: "chat", Status: trace.StatusOK,
			MaxTokens: trace.Ptr(int32(i)), TTFTNS: trace.Ptr(int64(i)), CachedTokens: trace.Ptr(int32(i)), Replica: trace.Ptr("replica-0")}
		if rng.IntN(10) > 0 {
			r.User = trace.Ptr(user)
		}
		session := user*3 + int64(rng.IntN(3))
		r.Session, r.Turn = trace.Ptr(session), trace.Ptr(int32(len(sessions[session])))
		if before := sessions[session]; len(before) > 0 {
			r.Parents = []int64{before[len(before)-1]}
			r.ThinkNS = trace.Ptr(rng.Int64N(30e9))
		}
		sessions[session] = append(sessions[session], int64(i))
		rows = append(rows, r)
	}
	return rows
}

func source(rows []trace.Request) anonymize.Source {
	return anonymize.Source{Meta: trace.Meta{BlockSize: 16, Tier: anonymize.Internal, Sessions: "source"},
		Open: func() (trace.Reader[trace.Request], error) {
			copied := make([]trace.Request, len(rows))
			for i, r := range rows {
				r.Blocks = slices.Clone(r.Blocks)
				copied[i] = r
			}
			return &trace.SliceReader[trace.Request]{Rows: copied}, nil
		}}
}

// still is a source of noise that is the same each time.
func still(seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
}

func released(t testing.TB, p anonymize.PartnerPolicy, rows []trace.Request) ([]trace.Request, anonymize.Card) {
	t.Helper()
	var out keep
	card, err := anonymize.Release(t.Context(), p, source(rows), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out, card
}

// In what is released every pair of lengths comes from k users or more, a block
// that two rows share is of one user or of k_share, times are in their bins, and
// what has no place in the tier is gone.
func TestReleaseHidesAmongUsers(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rows := house(rng, 25, 600)
		p := anonymize.PartnerPolicy{KShare: 1 + int(seed)%6, KClass: 2 + int(seed)%9, Noise: still(seed), Quantum: 10 * time.Second}
		var origin []int64 // rows of the source, as they come out
		var drawn []int64  // their instants
		out, card := released(t, p.Watched(func(row, at int64) { origin, drawn = append(origin, row), append(drawn, at) }), rows)
		if left := float64(600-len(out)) / 600; left != card.Partner.SuppressedShare || left > 0.05 || len(origin) != len(out) {
			t.Fatalf("seed %d: %d rows of %d, %.4f left out", seed, len(out), len(origin), card.Partner.SuppressedShare)
		}
		for i, row := range origin {
			if drawn[i]/1e10 != rows[row].ArrivalNS/1e10 {
				t.Fatalf("seed %d: row %d moved from %d to %d", seed, row, rows[row].ArrivalNS, drawn[i])
			}
		}
		order := make([]int, len(origin))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(drawn[a], drawn[b]) })
		for i, at := range order {
			order[i] = int(origin[at])
		}
		type pair struct{ in, out int32 }
		pairs, users := map[pair]map[int64]bool{}, map[uint64]map[int64]bool{}
		add := func(m map[int64]bool, r *trace.Request) map[int64]bool {
			if m == nil {
				m = map[int64]bool{}
			}
			if r.User == nil {
				m[-1] = true
			} else {
				m[*r.User] = true
			}
			return m
		}
		last := int64(-1)
		for i := range out {
			r, was := &out[i], &rows[order[i]]
			pairs[pair{r.InputTokens, r.OutputTokens}] = add(pairs[pair{r.InputTokens, r.OutputTokens}], was)
			for _, b := range r.Blocks {
				users[b] = add(users[b], was)
			}
			if len(r.Blocks) != int(r.InputTokens+15)/16 {
				t.Fatalf("seed %d: %d blocks for %d tokens", seed, len(r.Blocks), r.InputTokens)
			}
			if r.ArrivalNS < last {
				t.Fatalf("seed %d: row %d is out of order", seed, i)
			}
			last = r.ArrivalNS
			if r.User != nil || r.MaxTokens != nil || r.TTFTNS != nil || r.CachedTokens != nil || r.Replica != nil {
				t.Fatalf("seed %d: row %d kept %+v", seed, i, r)
			}
			for _, parent := range r.Parents {
				if parent >= int64(i) || *out[parent].Session != *r.Session {
					t.Fatalf("seed %d: row %d has parent %d", seed, i, parent)
				}
			}
		}
		for pair, m := range pairs {
			if len(m) < p.KClass {
				t.Errorf("seed %d: %v come from %d users", seed, pair, len(m))
			}
		}
		for b, m := range users {
			if len(m) > 1 && len(m) < p.KShare {
				// Rows that were left out carried it too.
				if full := usersOf(rows, order, out, b); full < p.KShare {
					t.Errorf("seed %d: block %d is shared by %d users", seed, b, full)
				}
			}
		}
	}
}

// usersOf counts the users of the source's block that came out as b.
func usersOf(rows []trace.Request, order []int, out []trace.Request, b uint64) int {
	for i, r := range out {
		if at := slices.Index(r.Blocks, b); at >= 0 {
			users := map[int64]bool{}
			for _, was := range rows {
				if slices.Contains(was.Blocks, rows[order[i]].Blocks[at]) {
					if was.User == nil {
						users[-1] = true
					} else {
						users[*was.User] = true
					}
				}
			}
			return len(users)
		}
	}
	return 0
}

// What comes out depends on no name: other numbers for blocks, users and
// sessions, other labels and another epoch give the same rows and the same card.
func TestReleaseIsBlindToNames(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 2))
		rows := house(rng, 12, 400)
		renamed := slices.Clone(rows)
		blocks, people := rng.Perm(len(rows)*400), rng.Perm(200)
		for i := range renamed {
			r := &renamed[i]
			r.Blocks = slices.Clone(r.Blocks)
			for j := range r.Blocks {
				r.Blocks[j] = uint64(blocks[r.Blocks[j]])
			}
			if r.User != nil {
				r.User = trace.Ptr(int64(people[*r.User]))
			}
			r.Session = trace.Ptr(int64(people[*r.Session]))
			r.Model = map[string]string{"model-0": "x", "model-1": "b", "model-2": "q"}[r.Model]
		}
		// Ids are dense in the order of the trace, as a trace of tier internal has them.
		dense := &trace.Dense{}
		for i := range renamed {
			dense.Apply(&renamed[i])
		}
		for _, k := range []int{1, 2, 5, 20} {
			p := anonymize.PartnerPolicy{KShare: k, KClass: 4}
			p.Noise = still(seed)
			a, cardA := released(t, p, rows)
			p.Noise = still(seed)
			b, cardB := released(t, p, renamed)
			jsonA, hashA, _ := cardA.JSON()
			jsonB, hashB, _ := cardB.JSON()
			if !reflect.DeepEqual(a, b) || jsonA != jsonB || hashA != hashB {
				t.Fatalf("seed %d, k %d: names show in what comes out", seed, k)
			}
		}
	}
}

// An attacker with one account who sends a guess at what another one sent learns
// nothing from the release, whether the guess is right or wrong: k_share of 3.
func TestReleaseKeepsGuessesApart(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows := house(rng, 12, 300)
		guess := func(right bool) []trace.Request {
			out := slices.Clone(rows)
			victim := rows[200]
			mine := victim
			mine.User, mine.Session, mine.Turn, mine.Parents = trace.Ptr(int64(99)), trace.Ptr(int64(999)), trace.Ptr(int32(0)), nil
			mine.ArrivalNS = rows[len(rows)-1].ArrivalNS
			if !right {
				mine.Blocks = nil
				for j := range victim.Blocks {
					mine.Blocks = append(mine.Blocks, 1<<20+uint64(j))
				}
			}
			out = append(out, mine)
			dense := &trace.Dense{}
			for i := range out {
				out[i].Blocks = slices.Clone(out[i].Blocks)
				dense.Apply(&out[i])
			}
			return out
		}
		// The victim's blocks are the victim's alone.
		alone := map[uint64]bool{}
		for i, r := range rows {
			for _, b := range r.Blocks {
				if i != 200 && slices.Contains(rows[200].Blocks, b) {
					alone[b] = true
				}
			}
		}
		if len(alone) > 0 {
			rows[200].Blocks = []uint64{1 << 19, 1<<19 + 1}
			rows[200].InputTokens = 30
		}
		play := func(k int, right bool) []trace.Request {
			out, _ := released(t, anonymize.PartnerPolicy{KShare: k, KClass: 2, Noise: still(seed)}, guess(right))
			return out
		}
		if !reflect.DeepEqual(play(3, true), play(3, false)) {
			t.Errorf("seed %d: a right guess shows", seed)
		}
		if reflect.DeepEqual(play(2, true), play(2, false)) {
			t.Errorf("seed %d: with k_share 2 a right guess must show, or this test shows nothing", seed)
		}
	}
}

// The memory for the units of blocks, and for blocks, changes nothing.
func TestReleaseInLittleMemory(t *testing.T) {
	rows := house(rand.New(rand.NewPCG(5, 5)), 20, 500)
	p := anonymize.PartnerPolicy{KShare: 4, KClass: 5, Noise: still(1)}
	want, _ := released(t, p, rows)
	p.Noise = still(1)
	p.SpillDir = t.TempDir()
	got, _ := released(t, p.WithLimits(50, 20, 700), rows)
	if !reflect.DeepEqual(got, want) {
		t.Error("a release in little memory is another one")
	}
}

func TestReleaseRefuses(t *testing.T) {
	rows := house(rand.New(rand.NewPCG(6, 6)), 20, 100)
	var out keep
	nobody := slices.Clone(rows)
	for i := range nobody {
		nobody[i].User = nil
	}
	inferred := source(nobody)
	inferred.Meta.Sessions = "inferred"
	public := source(rows)
	public.Meta.Tier = "public"
	few := source(rows[:3])
	for name, c := range map[string]struct {
		src anonymize.Source
		p   anonymize.PartnerPolicy
		err error
	}{
		"nobody":      {inferred, anonymize.PartnerPolicy{}, anonymize.ErrNoUnit},
		"no users":    {source(nobody), anonymize.PartnerPolicy{Unit: anonymize.UnitUser}, anonymize.ErrNoUnit},
		"not a house": {public, anonymize.PartnerPolicy{}, nil},
		"few users":   {few, anonymize.PartnerPolicy{}, nil},
		"k":           {source(rows), anonymize.PartnerPolicy{KShare: -1}, nil},
		"quantum":     {source(rows), anonymize.PartnerPolicy{Quantum: time.Nanosecond}, nil},
		"unit":        {source(rows), anonymize.PartnerPolicy{Unit: "house"}, nil},
		"buckets":     {source(rows), anonymize.PartnerPolicy{PerOctave: 100}, nil},
		"share":       {source(rows), anonymize.PartnerPolicy{Suppressed: 1}, nil},
	} {
		_, err := anonymize.Release(t.Context(), c.p, c.src, &out)
		if err == nil || c.err != nil && !errors.Is(err, c.err) || len(out) > 0 {
			t.Errorf("%s: %v, %d rows", name, err, len(out))
		}
	}
	if _, err := anonymize.Release(t.Context(), anonymize.PartnerPolicy{Unit: anonymize.UnitRequest}, inferred, &out); err != nil || len(out) < 95 {
		t.Errorf("by request: %v, %d rows", err, len(out))
	}
	if _, err := anonymize.Release(t.Context(), anonymize.PartnerPolicy{}, source(nobody), &out); err != nil {
		t.Errorf("by session: %v", err)
	}
	failing := anonymize.PartnerPolicy{Noise: new(strings.Reader)}
	if _, err := anonymize.Release(t.Context(), failing, source(rows), &out); err == nil {
		t.Error("a source of noise that fails is no error")
	}
}

// benchmarkRelease releases records of so many blocks each.
func benchmarkRelease(b *testing.B, blocks int) {
	rng := rand.New(rand.NewPCG(1, 1))
	rows := make([]trace.Request, 100_000)
	next := uint64(0)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i) * 1e8, User: trace.Ptr(int64(rng.IntN(5000))), Model: "model-0", Kind: "chat", Status: trace.StatusOK,
			InputTokens: int32(max(16*blocks-rng.IntN(16), 1+rng.IntN(4000)/max(blocks, 1))), OutputTokens: int32(rng.IntN(500))}
		var of []uint64
		if i > 100 && rng.IntN(2) == 0 {
			of = rows[i-1-rng.IntN(100)].Blocks
			of = of[:rng.IntN(len(of)+1)]
		}
		rows[i].Blocks = slices.Clone(of)
		for len(rows[i].Blocks) < blocks {
			rows[i].Blocks = append(rows[i].Blocks, next)
			next++
		}
	}
	src := anonymize.Source{Meta: trace.Meta{BlockSize: 16, Tier: anonymize.Internal, Sessions: "source"},
		Open: func() (trace.Reader[trace.Request], error) { return &trace.SliceReader[trace.Request]{Rows: rows}, nil }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := anonymize.Release(b.Context(), anonymize.PartnerPolicy{}, src, discard{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "records/s")
}

type discard struct{}

func (discard) Write(rows []trace.Request) (int, error) { return len(rows), nil }

func BenchmarkReleaseNoBlocks(b *testing.B) { benchmarkRelease(b, 0) }
func BenchmarkRelease24Blocks(b *testing.B) { benchmarkRelease(b, 24) }

// Where blocks of few are dropped, what two requests share is what many have, and
// the audit's measure of what else links them is 0.
func TestReleaseDropsOwnBlocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(oftener(4, 10)) {
		rows := house(rand.New(rand.NewPCG(seed, 1)), 25, 600)
		for i := range rows {
			rows[i].User = trace.Ptr(*rows[i].Session / 3)
		}
		p := anonymize.PartnerPolicy{KShare: 2 + int(seed)%4, KClass: 3, LinkK: 1, Noise: still(seed)}
		kept, _ := released(t, p, rows)
		p.DropOwn, p.Noise = true, still(seed)
		out, origin, card := withOrigin(t, p, rows)
		if card.Partner.OwnBlocks != 0 || len(out) != len(kept) {
			t.Fatalf("seed %d: %d rows, own blocks of %v", seed, len(out), card.Partner.OwnBlocks)
		}
		seen, users := map[uint64]int{}, map[uint64]map[int64]bool{}
		shared := 0
		for i := range out {
			if len(out[i].Blocks) != len(kept[i].Blocks) {
				t.Fatalf("seed %d: row %d has %d blocks, not %d", seed, i, len(out[i].Blocks), len(kept[i].Blocks))
			}
			for at, b := range out[i].Blocks {
				if seen[b]++; seen[b] == 2 {
					shared++
				}
				if seen[b] == 1 && at < len(rows[origin[i]].Blocks) {
					users[b] = haveBlock(rows, rows[origin[i]].Blocks[at])
				}
				if seen[b] > 1 && len(users[b]) < p.KShare {
					t.Fatalf("seed %d: a block of %d users links requests, k_share is %d", seed, len(users[b]), p.KShare)
				}
			}
		}
		if shared == 0 {
			t.Fatalf("seed %d: nothing is shared", seed)
		}
	}
}

// haveBlock are those who have a block.
func haveBlock(rows []trace.Request, block uint64) map[int64]bool {
	users := map[int64]bool{}
	for i := range rows {
		if slices.Contains(rows[i].Blocks, block) {
			users[*rows[i].User] = true
		}
	}
	return users
}

// Where requests are the unit, one account that sends a guess many times does not learn by its
// own requests, nor by the others', whether somebody else sent it: users count, or sessions of
// the source.
func TestRepeatedGuess(t *testing.T) {
	for name, unnamed := range map[string]bool{"users": false, "sessions": true} {
		for seed := range uint64(5) {
			rows := house(rand.New(rand.NewPCG(seed, 3)), 25, 400)
			next := uint64(0)
			for i := range rows {
				if unnamed {
					rows[i].User = nil
				}
				for _, b := range rows[i].Blocks {
					next = max(next, b+1)
				}
			}
			victim, last := trace.Request{}, rows[len(rows)-1]
			for _, r := range rows { // whose last block nobody else has
				n := 0
				for _, o := range rows {
					if slices.Contains(o.Blocks, r.Blocks[len(r.Blocks)-1]) {
						n++
					}
				}
				if n == 1 && r.User != nil || n == 1 && unnamed {
					victim = r
				}
			}
			out := map[bool][]trace.Request{}
			for _, right := range []bool{true, false} {
				sent := slices.Clone(rows)
				for range 4 {
					r := last
					r.User, r.Session, r.Turn, r.Parents, r.ThinkNS = trace.Ptr(int64(1000)), trace.Ptr(int64(1000)), trace.Ptr(int32(0)), nil, nil
					if unnamed {
						r.User = nil
					}
					r.InputTokens, r.OutputTokens, r.Blocks = victim.InputTokens, victim.OutputTokens, slices.Clone(victim.Blocks)
					if !right {
						r.Blocks[len(r.Blocks)-1] = next
					}
					sent = append(sent, r)
				}
				out[right], _ = released(t, anonymize.PartnerPolicy{Unit: anonymize.UnitRequest, KShare: 5, KClass: 2, LinkK: 1, Noise: still(seed)}, sent)
			}
			if len(out[true]) == 0 || !reflect.DeepEqual(out[true], out[false]) {
				t.Errorf("%s, seed %d: a right guess shows", name, seed)
			}
		}
	}
}
