package synth

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
)

// cloned yields copies of rows, as a file would.
func cloned(rows []trace.Request) trace.Reader[trace.Request] {
	out := slices.Clone(rows)
	for i := range out {
		out[i].Blocks = slices.Clone(out[i].Blocks)
		out[i].OutputBlocks = slices.Clone(out[i].OutputBlocks)
	}
	return &trace.SliceReader[trace.Request]{Rows: out}
}

func readAll(t testing.TB, src trace.Reader[trace.Request]) []trace.Request {
	t.Helper()
	var w trace.SliceWriter[trace.Request]
	if _, err := trace.Copy(&w, src); err != nil {
		t.Fatal(err)
	}
	return w.Rows
}

func mirrorRows(t testing.TB, rows []trace.Request, seed uint64) []trace.Request {
	t.Helper()
	n, err := Count(cloned(rows))
	if err != nil {
		t.Fatal(err)
	}
	return readAll(t, NewMirror(seed, n).Reader(cloned(rows)))
}

// chains makes a trace of sessions that grow turn by turn under shared heads:
// blocks of 16 tokens, dense chained ids with partial tails, replies as output
// blocks of every other turn.
func chains(rows int) []trace.Request {
	rng := rand.New(rand.NewPCG(3, 4))
	var ids uint64
	fresh := func() uint64 { ids++; return ids - 1 }
	type session struct {
		blocks     []uint64
		turn       int32
		last, user int64
	}
	var heads [3][]uint64
	for i := range heads {
		for range 2 + 3*i {
			heads[i] = append(heads[i], fresh())
		}
	}
	var live []*session
	out := make([]trace.Request, rows)
	for row := range out {
		k := rng.IntN(1 + min(len(live), 20))
		if k == len(live) || k == 20 {
			live = append(live, &session{blocks: heads[rng.IntN(3)], last: -1, user: int64(rng.IntN(40))})
			k = len(live) - 1
		}
		s := live[k]
		s.blocks = slices.Clip(s.blocks)
		for range 1 + rng.IntN(4) {
			s.blocks = append(s.blocks, fresh())
		}
		tail := 1 + rng.IntN(15)
		r := &out[row]
		*r = trace.Request{
			ArrivalNS: int64(row) * 1e6, Session: trace.Ptr(int64(k)), Turn: trace.Ptr(s.turn), User: trace.Ptr(s.user),
			Model: "m0", Kind: "chat", Category: trace.Continuation, Status: trace.StatusOK,
			InputTokens: int32(16*len(s.blocks) + tail), OutputTokens: trace.Ptr(int32(rng.IntN(60))),
			Blocks: append(slices.Clone(s.blocks), fresh()),
		}
		if s.last >= 0 {
			r.Parents = []int64{s.last}
		}
		if row%2 == 0 {
			s.blocks = append(s.blocks, fresh())
			r.OutputBlocks = []uint64{s.blocks[len(s.blocks)-1]}
		}
		s.last, s.turn = int64(row), s.turn+1
	}
	return out
}

// lruHits is a naive LRU cache of blocks: each row's leading known blocks are
// its hits, then its blocks are touched tail to head, output last of all. It
// returns the hits of each row.
func lruHits(rows []trace.Request, capacity int) []int {
	var stack []uint64 // most recent last
	hits := make([]int, len(rows))
	touch := func(id uint64) {
		if i := slices.Index(stack, id); i >= 0 {
			stack = slices.Delete(stack, i, i+1)
		}
		stack = append(stack, id)
		if len(stack) > capacity {
			stack = stack[1:]
		}
	}
	for row, r := range rows {
		for hits[row] < len(r.Blocks) && slices.Contains(stack, r.Blocks[hits[row]]) {
			hits[row]++
		}
		for _, id := range slices.Backward(r.OutputBlocks) {
			touch(id)
		}
		for _, id := range slices.Backward(r.Blocks) {
			touch(id)
		}
	}
	return hits
}

func TestMirrorKeepsReuse(t *testing.T) {
	rows := chains(600)
	mirrored := mirrorRows(t, rows, 1)
	for _, capacity := range []int{10, 50, 200, 1000, 1 << 20} {
		want, got := lruHits(rows, capacity), lruHits(mirrored, capacity)
		if !slices.Equal(got, want) {
			t.Errorf("capacity %d: rows of the mirror hit other numbers of blocks", capacity)
		}
		if total := sum(want); total == 0 {
			t.Errorf("capacity %d: nothing is reused, so nothing is compared", capacity)
		}
	}
}

func sum(v []int) (s int) {
	for _, x := range v {
		s += x
	}
	return s
}

// idsOf lists all ids of one kind in order.
func idsOf(rows []trace.Request, kind string) (ids []uint64) {
	for _, r := range rows {
		switch {
		case kind == "block":
			ids = append(append(ids, r.Blocks...), r.OutputBlocks...)
		case kind == "session" && r.Session != nil:
			ids = append(ids, uint64(*r.Session))
		case kind == "user" && r.User != nil:
			ids = append(ids, uint64(*r.User))
		}
	}
	return ids
}

func TestMirrorRenamesByBijection(t *testing.T) {
	rows := chains(1500)
	rows[3].Session, rows[4].User, rows[5].Blocks, rows[5].InputTokens = nil, nil, nil, 900
	var dense trace.Dense
	for i := range rows {
		dense.Apply(&rows[i])
	}
	a, b := mirrorRows(t, rows, 1), mirrorRows(t, rows, 2)
	for _, kind := range []string{"block", "session", "user"} {
		old, ids, other := idsOf(rows, kind), idsOf(a, kind), idsOf(b, kind)
		if len(ids) != len(old) {
			t.Fatalf("%d %s ids became %d", len(old), kind, len(ids))
		}
		to, from := map[uint64]uint64{}, map[uint64]uint64{}
		for i := range old {
			if y, ok := to[old[i]]; ok && y != ids[i] {
				t.Fatalf("%s %d has two new ids", kind, old[i])
			}
			if x, ok := from[ids[i]]; ok && x != old[i] {
				t.Fatalf("two %s ids become %d", kind, ids[i])
			}
			to[old[i]], from[ids[i]] = ids[i], old[i]
		}
		if top := slices.Max(ids); top != slices.Max(old) || len(from) != int(top)+1 {
			t.Errorf("%d new %s ids up to %d are not dense", len(from), kind, top)
		}
		if slices.Equal(ids, old) || slices.Equal(ids, other) {
			t.Errorf("%s ids did not change, or not with the seed", kind)
		}
	}
}

// All that is not an id of a block, session or user must stay.
func TestMirrorKeepsTheRest(t *testing.T) {
	rows := chains(200)
	rows[7].TTFTNS, rows[7].Stream, rows[7].Class = trace.Ptr(int64(5)), trace.Ptr(true), trace.Ptr("c")
	rows[9].Session, rows[9].OutputBlocks = nil, nil
	for i, r := range mirrorRows(t, rows, 9) {
		want := rows[i]
		if len(r.Blocks) != len(want.Blocks) || len(r.OutputBlocks) != len(want.OutputBlocks) ||
			(r.Session == nil) != (want.Session == nil) || (r.User == nil) != (want.User == nil) {
			t.Fatalf("row %d has other numbers of ids", i)
		}
		r.Blocks, r.OutputBlocks, r.Session, r.User = want.Blocks, want.OutputBlocks, want.Session, want.User
		if !reflect.DeepEqual(r, want) {
			t.Fatalf("row %d: got %+v, want %+v", i, r, want)
		}
	}
}

// The digest holds the rows of a seed, on every machine and for good.
func TestMirrorGolden(t *testing.T) {
	d := trace.NewDigest()
	d.Add(mirrorRows(t, chains(500), 42))
	const want = "sha256:06f7b211b3f2aa21fa3bf9708c2ccc5d38825a6d1cdcc9c3970576c9fdcdb2ce"
	if got := d.Sum(); got != want {
		t.Errorf("seed 42 gives %s, want %s", got, want)
	}
}

func TestCount(t *testing.T) {
	rows := []trace.Request{
		{},
		{Session: trace.Ptr(int64(4)), Blocks: []uint64{0, 1}},
		{User: trace.Ptr(int64(0)), OutputBlocks: []uint64{8}},
	}
	got, err := Count(cloned(rows))
	if want := (IDs{Sessions: 5, Users: 1, Blocks: 9}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, bad := range map[string]trace.Request{
		"negative session": {Session: trace.Ptr(int64(-1))},
		"negative user":    {User: trace.Ptr(int64(-1))},
		"huge session":     {Session: trace.Ptr(int64(1 << 40))},
		"huge block":       {Blocks: []uint64{1 << 40}},
		"greatest block":   {OutputBlocks: []uint64{1<<64 - 1}},
	} {
		_, err := Count(cloned(append(slices.Clone(rows), bad)))
		if err == nil || !strings.Contains(err.Error(), "row 3:") {
			t.Errorf("%s: got %v, want an error at row 3", name, err)
		}
	}
}

func TestMirrorRefusesOtherRows(t *testing.T) {
	m := NewMirror(1, IDs{Sessions: 2, Users: 2, Blocks: 2})
	for name, bad := range map[string]trace.Request{
		"session":          {Session: trace.Ptr(int64(2))},
		"negative session": {Session: trace.Ptr(int64(-1))},
		"user":             {User: trace.Ptr(int64(2))},
		"block":            {Blocks: []uint64{0, 2}},
		"output block":     {OutputBlocks: []uint64{2}},
	} {
		rows := make([]trace.Request, 8)
		n, err := m.Reader(cloned([]trace.Request{{}, bad})).Read(rows)
		if n != 1 || err == nil || err == io.EOF || !strings.Contains(err.Error(), "row 1:") {
			t.Errorf("%s: got %d rows and %v, want 1 and an error at row 1", name, n, err)
		}
	}
	if _, err := NewMirror(1, IDs{}).Reader(cloned([]trace.Request{{Blocks: []uint64{0}}})).Read(make([]trace.Request, 1)); err == nil || err == io.EOF {
		t.Errorf("a mirror of no ids gives %v, want an error", err)
	}
}

func TestMirrorMeta(t *testing.T) {
	src := trace.Meta{Schema: trace.Schema, BlockSize: 512, Tier: "partner", Card: "{}", CardHash: "ab", Seed: "3", Digest: "sha256:00"}
	want := src
	want.Seed, want.Digest = "18446744073709551615", ""
	if got := NewMirror(1<<64-1, IDs{}).Meta(src); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// mooncake reads the published conversation trace.
func mooncake(t testing.TB) []trace.Request {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "data", "mooncake_conversation.jsonl"))
	if err != nil {
		t.Skip("the published Mooncake trace is not here")
	}
	defer f.Close()
	var rows []trace.Request
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct {
			Timestamp int64    `json:"timestamp"`
			Input     int32    `json:"input_length"`
			Output    int32    `json:"output_length"`
			IDs       []uint64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, trace.Request{ArrivalNS: l.Timestamp * 1e6, InputTokens: l.Input, OutputTokens: trace.Ptr(l.Output), Blocks: l.IDs})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// knownBlocks counts the blocks of all rows that an earlier row named.
func knownBlocks(rows []trace.Request) (known, all int) {
	seen := map[uint64]bool{}
	for _, r := range rows {
		for _, id := range r.Blocks {
			if seen[id] {
				known++
			}
			seen[id] = true
			all++
		}
	}
	return known, all
}

// The published trace has 288,500 references to 182,790 blocks, 36.64 % of them known.
func TestMirrorMooncake(t *testing.T) {
	rows := mooncake(t)
	for name, rows := range map[string][]trace.Request{"source": rows, "mirror": mirrorRows(t, rows, 5)} {
		if known, all := knownBlocks(rows); all != 288_500 || all-known != 182_790 {
			t.Errorf("%s: %d of %d blocks are new, want 182790 of 288500", name, all-known, all)
		}
	}
}
