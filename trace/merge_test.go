package trace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/trace"
)

// spooled is a trace of rows.
func spooled(t *testing.T, name string, rows []trace.Request, meta trace.Meta) *trace.Trace {
	t.Helper()
	tr, err := trace.Spool(name, bytes.NewReader(encode(t, rows, meta)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// copyOf shares nothing with a row.
func copyOf(q trace.Request) trace.Request {
	q.Blocks, q.OutputBlocks, q.Parents = slices.Clone(q.Blocks), slices.Clone(q.OutputBlocks), slices.Clone(q.Parents)
	for _, p := range []**int64{&q.Session, &q.User} {
		if *p != nil {
			*p = trace.Ptr(**p)
		}
	}
	for _, p := range []**string{&q.Class, &q.Replica} {
		if *p != nil {
			*p = trace.Ptr(**p)
		}
	}
	return q
}

// Rows of several traces, with ids and parents of their own and many of one instant, are put
// into the order that sorting all of them gives, with the ids and parents that a second computation
// gives.
func TestMergeIsTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for round := range 40 {
		k := 1 + r.IntN(5)
		traces, all := make([]*trace.Trace, k), make([][]trace.Request, k)
		type place struct {
			when     int64
			from, at int
		}
		var order []place
		begin := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		windows := make([]trace.Capture, k)
		earliest := begin.Add(100 * time.Hour)
		for i := range k {
			if round%2 == 0 {
				from := begin.Add(time.Duration(r.IntN(3)) * time.Second)
				windows[i] = trace.Capture{Begin: from, End: from.Add(1000 * time.Hour)}
				if from.Before(earliest) {
					earliest = from
				}
			}
		}
		for i := range k {
			rows := randomRows(r, r.IntN(120))
			for at := range rows {
				rows[at].ArrivalNS /= 1e9 // many of one instant
				rows[at].ArrivalNS *= 1e9
				if r.IntN(3) == 0 {
					rows[at].Model, rows[at].Class = fmt.Sprint("model-", r.IntN(4)), trace.Ptr(fmt.Sprint("class-", r.IntN(3)))
				}
				if r.IntN(9) == 0 {
					rows[at].Model, rows[at].Replica = "llama", trace.Ptr("replica-07")
				}
				if at+1 < len(rows) && r.IntN(20) == 0 {
					rows[at].Parents = []int64{int64(at) + 1} // below, which a foreign file may have
				}
			}
			all[i] = rows
			meta := trace.Meta{BlockSize: 512, Tier: "internal", Capture: windows[i], Captures: fmt.Sprint("id", i)}
			traces[i] = spooled(t, fmt.Sprint("t", i), rows, meta)
			shift := int64(0)
			if round%2 == 0 {
				shift = int64(windows[i].Begin.Sub(earliest))
			}
			for at := range rows {
				order = append(order, place{rows[at].ArrivalNS + shift, i, at})
			}
		}
		slices.SortStableFunc(order, func(a, b place) int { return int(a.when - b.when) })
		to := map[[2]int]int64{}
		for row, p := range order {
			to[[2]int{p.from, p.at}] = int64(row)
		}
		given := map[string]map[string]int{}
		number := func(kind string, from int, old any) int { // by first appearance
			if given[kind] == nil {
				given[kind] = map[string]int{}
			}
			key := fmt.Sprint(from, " ", old)
			if _, ok := given[kind][key]; !ok {
				given[kind][key] = len(given[kind])
			}
			return given[kind][key]
		}
		label := func(prefix string, from int, name string) string {
			var n int
			if _, err := fmt.Sscanf(name, prefix+"-%d", &n); err != nil || fmt.Sprintf("%s-%d", prefix, n) != name {
				return name
			}
			return fmt.Sprint(prefix, "-", number(prefix, from, n))
		}
		var want []trace.Request
		for _, p := range order {
			q := copyOf(all[p.from][p.at])
			q.ArrivalNS = p.when
			for _, list := range [][]uint64{q.Blocks, q.OutputBlocks} {
				for b := range list {
					list[b] = uint64(number("block", p.from, list[b]))
				}
			}
			for b, parent := range q.Parents {
				q.Parents[b] = to[[2]int{p.from, int(parent)}]
			}
			if q.Session != nil {
				*q.Session = int64(number("session", p.from, *q.Session))
			}
			if q.User != nil {
				*q.User = int64(number("user", p.from, *q.User))
			}
			q.Model = label("model", p.from, q.Model)
			if q.Class != nil {
				*q.Class = label("class", p.from, *q.Class)
			}
			want = append(want, q)
		}
		m, err := trace.NewMerge(t.TempDir(), traces)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			src, err := m.Reader()
			if err != nil {
				t.Fatal(err)
			}
			got, err := drainRows(src, 1+r.IntN(300))
			if err != nil || m.Rows() != int64(len(want)) || len(got) != len(want) {
				t.Fatalf("%d rows of %d: %v", len(got), len(want), err)
			}
			for i := range want {
				if digest(got[i:i+1]) != digest(want[i:i+1]) {
					t.Fatalf("round %d, row %d:\n%+v\nwant\n%+v", round, i, got[i], want[i])
				}
			}
		}
		if got := m.Meta(); got.Captures != strings.TrimSuffix(strings.Join([]string{"id0", "id1", "id2", "id3", "id4"}[:k], ","), ",") || round%2 == 0 && !got.Capture.Begin.Equal(earliest) {
			t.Errorf("metadata %+v, want the begin %v", got, earliest)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A partitioned trace is merged like a file.
func TestMergePartitioned(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 13))
	a, b := randomRows(r, 200), randomRows(r, 100)
	dir := filepath.Join(t.TempDir(), "a")
	partitioned(t, dir, 4, a, trace.Meta{})
	folder, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	other := spooled(t, "b", b, trace.Meta{})
	var digests []string
	for _, first := range []*trace.Trace{spooled(t, "a", a, trace.Meta{}), folder} {
		m, err := trace.NewMerge(t.TempDir(), []*trace.Trace{first, other})
		if err != nil {
			t.Fatal(err)
		}
		src, err := m.Reader()
		if err != nil {
			t.Fatal(err)
		}
		rows, err := drainRows(src, 100)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest(rows))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if digests[0] != digests[1] {
		t.Error("a folder is merged to other rows than a file")
	}
}

func TestMergeRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 13))
	rows, others := randomRows(r, 20), randomRows(r, 20)
	window := trace.RelativeCapture(0, 1000*time.Hour)
	dated := trace.Capture{Begin: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), End: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)}
	for _, c := range []struct {
		a, b trace.Meta
		rows []trace.Request
		want string
	}{
		{trace.Meta{}, trace.Meta{}, rows, "a and b hold the same rows"},
		{trace.Meta{BlockSize: 16}, trace.Meta{BlockSize: 32}, others, "b has the block size 32, not 16, as a has"},
		{trace.Meta{Tokenizer: "o200k_base"}, trace.Meta{}, others, "b has the tokenizer none, not o200k_base"},
		{trace.Meta{Template: "chatml"}, trace.Meta{Template: "llama3"}, others, "chat template llama3"},
		{trace.Meta{Text: trace.TextWords}, trace.Meta{}, others, "prompt text"},
		{trace.Meta{Corpus: "sha256:1"}, trace.Meta{Corpus: "sha256:2"}, others, "corpus"},
		{trace.Meta{Capture: window}, trace.Meta{}, others, "b declares no capture window"},
		{trace.Meta{}, trace.Meta{Capture: window}, others, "b declares a capture window"},
		{trace.Meta{Capture: window}, trace.Meta{Capture: dated}, others, "another kind of clock"},
		{trace.Meta{}, trace.Meta{Tier: "public", Card: "{}"}, others, "its privacy card holds for it alone"},
		{trace.Meta{}, trace.Meta{}, []trace.Request{{Session: trace.Ptr(int64(-1))}}, "b: it has an id that is too large"},
		{trace.Meta{}, trace.Meta{}, []trace.Request{{Blocks: []uint64{1<<64 - 1}}}, "b: it has an id that is too large"},
	} {
		m, err := trace.NewMerge(t.TempDir(), []*trace.Trace{spooled(t, "a", rows, c.a), spooled(t, "b", c.rows, c.b)})
		if err == nil {
			var src trace.Reader[trace.Request]
			if src, err = m.Reader(); err == nil {
				_, err = drainRows(src, 10)
			}
			m.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// What says where rows come from is kept of all; what holds for one alone is left out.
func TestJoinMeta(t *testing.T) {
	got, err := trace.JoinMeta([]string{"a", "b", "c"}, []trace.Meta{
		{Tier: "public", SourceFormat: "csv", Captures: "1,2", Sessions: "source", Digest: "x", Seed: "7", Card: "{}", CardHash: "h", Breakers: "{}", Source: "s", TimeUnit: "ms"},
		{Tier: "internal", SourceFormat: "openai", Captures: "2,3", Sessions: "inferred", Digest: "y", Seed: "8", CardHash: "i", Source: "t", TimeUnit: "ms", Keys: "k"},
		{Tier: "public", SourceFormat: "csv", Digest: "z", Seed: "8", TimeUnit: "ms"},
	}[1:2:2])
	if err == nil {
		t.Errorf("three names of one: %+v", got)
	}
	got, err = trace.JoinMeta([]string{"a", "b", "c"}, []trace.Meta{
		{Tier: "public", SourceFormat: "csv", Captures: "1,2", Sessions: "source", Digest: "x", Seed: "7", CardHash: "h", Breakers: "{}", Source: "s", TimeUnit: "ms"},
		{Tier: "internal", SourceFormat: "openai", Captures: "2,3", Sessions: "inferred", Digest: "y", Seed: "8", CardHash: "i", Source: "t", TimeUnit: "ms", Keys: "k"},
		{Tier: "public", SourceFormat: "csv", Digest: "z", Seed: "8", TimeUnit: "ms"},
	})
	want := trace.Meta{Tier: "internal", SourceFormat: "csv,openai", Captures: "1,2,3", Sessions: "inferred", TimeUnit: "ms", Keys: "ephemeral,k,ephemeral"}
	if err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// Numbers are what was set last, whatever of them is in memory.
func TestSpilledNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	n, err := trace.NewSpilledNumbers(t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	want := map[uint64]uint64{}
	for range 5000 {
		i, write := r.Uint64N(40_000), r.IntN(2) == 0
		at, err := n.At(i, write)
		if err != nil || *at != want[i] {
			t.Fatalf("number %d is %d, want %d: %v", i, *at, want[i], err)
		}
		if write {
			*at = r.Uint64()
			want[i] = *at
		}
	}
}
