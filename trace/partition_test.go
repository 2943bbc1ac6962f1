package trace_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// partitioned writes rows as a folder of partitions.
func partitioned(t testing.TB, dir string, n int, rows []trace.Request, meta trace.Meta) {
	t.Helper()
	err := trace.CreatePartitioned(dir, n, int64(len(rows)), func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := trace.Copy(w, &trace.SliceReader[trace.Request]{Rows: slices.Clone(rows)})
		return meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func drainRows[T trace.TextFree](r trace.Reader[T], batch int) (all []T, err error) {
	for rows := make([]T, batch); ; {
		n, err := r.Read(rows)
		all = append(all, rows[:n]...)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// A folder of partitions is read as the file that it was cut from: metadata, digest, rows and
// columns, whatever is read at once and wherever it is cut, also between rows of one instant. So is one
// that several writers wrote in any order.
func TestPartitionsAreTheTrace(t *testing.T) {
	longtest.Skip(t)
	r := rand.New(rand.NewPCG(5, 6))
	meta := trace.Meta{BlockSize: 64, Convention: trace.PartialTail, Tier: "internal", Card: "{}", Capture: trace.RelativeCapture(0, 1<<60)}
	for _, n := range []int{1, 2, 5, 40} {
		for _, size := range []int{0, 1, 7, 600, 3000} {
			rows := randomRows(r, size)
			dir := filepath.Join(t.TempDir(), "t")
			partitioned(t, dir, n, rows, meta)
			want := meta
			want.Schema, want.Digest = trace.Schema, digest(rows)
			sameTrace(t, dir, want, rows)

			others := filepath.Join(t.TempDir(), "others")
			if err := os.Mkdir(others, 0o700); err != nil {
				t.Fatal(err)
			}
			cuts := []int{0, size}
			for range n - 1 {
				cuts = append(cuts, r.IntN(size+1))
			}
			slices.Sort(cuts)
			for _, i := range r.Perm(n) {
				part := rows[cuts[i]:cuts[i+1]]
				p, err := trace.CreatePartition(others, i, n, func(w trace.Writer[trace.Request]) error {
					_, err := w.Write(part)
					return err
				})
				if err != nil || p.Rows != int64(len(part)) || p.Rows > 0 && (*p.FirstNS != part[0].ArrivalNS || *p.LastNS != part[len(part)-1].ArrivalNS) {
					t.Fatalf("partition %d of %d: %+v, %v", i, n, p, err)
				}
			}
			m, err := trace.Assemble(others, meta)
			if err != nil || m.Rows != int64(size) || len(m.Partitions) != n {
				t.Fatalf("assembled %d rows of %d in %d partitions: %v", m.Rows, size, n, err)
			}
			sameTrace(t, others, want, rows)
		}
	}
}

func sameTrace(t *testing.T, dir string, meta trace.Meta, rows []trace.Request) {
	t.Helper()
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if tr.Meta != meta {
		t.Errorf("metadata %+v, want %+v", tr.Meta, meta)
	}
	for _, batch := range []int{1, 3, 512, 5000} {
		src, err := tr.Reader()
		if err != nil {
			t.Fatal(err)
		}
		got, err := drainRows(src, batch)
		if err != nil || digest(got) != meta.Digest || src.Rows() != int64(len(rows)) {
			t.Fatalf("batches of %d: %d rows, said to be %d, of %d with another digest: %v", batch, len(got), src.Rows(), len(rows), err)
		}
		arrivals, err := trace.Columns[trace.Arrival](tr)
		if err != nil {
			t.Fatal(err)
		}
		column, err := drainRows(arrivals, batch)
		if err != nil || len(column) != len(rows) || arrivals.Rows() != int64(len(rows)) {
			t.Fatalf("%d arrivals of %d: %v", len(column), len(rows), err)
		}
		for i := range rows {
			if column[i].ArrivalNS != rows[i].ArrivalNS {
				t.Fatalf("row %d arrives at %d, want %d", i, column[i].ArrivalNS, rows[i].ArrivalNS)
			}
		}
		if block, ok := arrivals.Metadata("reprise.block_size"); !ok || block != "64" {
			t.Errorf("block size %q", block)
		}
	}
	some, err := tr.Reader()
	if err != nil {
		t.Fatal(err)
	}
	some.Only("arrival_ns", "input_tokens")
	got, err := drainRows(some, 100)
	for i := range got {
		if q := &got[i]; q.InputTokens != rows[i].InputTokens || q.Blocks != nil || q.OutputTokens != nil {
			t.Fatalf("row %d has other columns than were asked for: %+v", i, q)
		}
	}
	if err != nil || len(got) != len(rows) {
		t.Fatal(len(got), err)
	}
}

// Each fault is found when the folder is opened, or at the latest when its rows are read, and
// names the file.
func TestPartitionsRefuse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	rows := randomRows(r, 900)
	other := filepath.Join(t.TempDir(), "other")
	partitioned(t, other, 3, randomRows(r, 900), trace.Meta{})
	name := func(i int) string { return trace.PartitionName(i, 3) }
	for _, c := range []struct {
		what string
		do   func(t *testing.T, path func(string) string)
		want []string
	}{
		{"missing", func(t *testing.T, path func(string) string) { os.Remove(path(name(1))) }, []string{name(1), "is missing"}},
		{"cut", func(t *testing.T, path func(string) string) { truncate(t, path(name(2)), 100) }, []string{name(2), "is cut off"}},
		{"longer", func(t *testing.T, path func(string) string) { truncate(t, path(name(2)), 1<<20) }, []string{name(2), "is foreign"}},
		{"repeated", func(t *testing.T, path func(string) string) {
			copyOver(t, path(name(0)), path(name(1)))
			relist(t, path, 1, 0)
		}, []string{name(1), "partition 0 under the name of 1"}},
		{"foreign", func(t *testing.T, path func(string) string) {
			copyOver(t, filepath.Join(other, name(1)), path(name(1)))
		}, []string{name(1), "is "}},
		{"foreign of one size", func(t *testing.T, path func(string) string) { flip(t, path(name(1))) }, []string{name(1), "SHA-256"}},
		{"not listed", func(t *testing.T, path func(string) string) {
			copyOver(t, path(name(1)), path(trace.PartitionName(1, 4)))
		}, []string{trace.PartitionName(1, 4), "is foreign"}},
		{"a copy", func(t *testing.T, path func(string) string) {
			copyOver(t, path(name(1)), path("part-1 (copy).parquet"))
		},
			[]string{"part-1 (copy).parquet", "is foreign"}},
		{"a trace in its place", func(t *testing.T, path func(string) string) {
			if err := os.WriteFile(path(name(1)), encode(t, rows[:300], trace.Meta{}), 0o600); err != nil {
				t.Fatal(err)
			}
			relist(t, path, 1, 1)
		}, []string{name(1), "is foreign"}},
		{"no manifest", func(t *testing.T, path func(string) string) { os.Remove(path(trace.ManifestName)) }, []string{"has partitions of a trace and no manifest.json"}},
		{"cut manifest", func(t *testing.T, path func(string) string) { truncate(t, path(trace.ManifestName), 200) }, []string{"manifest.json", "not the manifest"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			partitioned(t, dir, 3, rows, trace.Meta{})
			c.do(t, func(name string) string { return filepath.Join(dir, name) })
			err := readWhole(dir)
			if err == nil {
				t.Fatal("it was read")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: does not say %q", err, want)
				}
			}
		})
	}
	if _, err := trace.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no partitioned trace") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := trace.Open(filepath.Join(other, name(0))); !errors.Is(err, trace.ErrPartition) {
		t.Errorf("a partition alone: %v", err)
	}
}

func readWhole(dir string) error {
	tr, err := trace.Open(dir)
	if err != nil {
		return err
	}
	defer tr.Close()
	src, err := tr.Reader()
	if err != nil {
		return err
	}
	_, err = drainRows(src, 100)
	return err
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func copyOver(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		b[len(b)/3] ^= 1
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// relist gives an entry of a manifest the size and the hash of a file, as somebody does who
// means well; rows are left.
func relist(t *testing.T, path func(string) string, to, from int) {
	t.Helper()
	b, err := os.ReadFile(path(trace.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	var m trace.Manifest
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path(m.Partitions[from].Name))
	if err != nil {
		t.Fatal(err)
	}
	m.Partitions[to].Bytes, m.Partitions[to].SHA256 = info.Size(), m.Partitions[from].SHA256
	if b, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path(trace.ManifestName), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What several processes wrote is no trace where a partition is missing or of another set, or
// where the rows of two do not fit together.
func TestAssembleRefuses(t *testing.T) {
	row := func(at int64, parents ...int64) trace.Request { return trace.Request{ArrivalNS: at, Parents: parents} }
	for _, c := range []struct {
		what  string
		parts map[[2]int][]trace.Request
		meta  trace.Meta
		want  string
	}{
		{"nothing", nil, trace.Meta{}, "has no partitions"},
		{"missing", map[[2]int][]trace.Request{{0, 3}: {row(1)}, {2, 3}: {row(2)}}, trace.Meta{}, trace.PartitionName(1, 3) + " is missing: 2 of 3"},
		{"two sets", map[[2]int][]trace.Request{{0, 1}: {row(1)}, {0, 2}: {row(1)}, {1, 2}: {row(2)}}, trace.Meta{}, "of two numbers of partitions"},
		{"order", map[[2]int][]trace.Request{{0, 3}: {row(1), row(5)}, {1, 3}: nil, {2, 3}: {row(4)}}, trace.Meta{}, trace.PartitionName(2, 3) + ": row 2: it arrives before"},
		{"parents", map[[2]int][]trace.Request{{0, 2}: {row(1)}, {1, 2}: {row(4, 2)}}, trace.Meta{}, trace.PartitionName(1, 2) + ": row 1: a parent is not a row"},
		{"capture", map[[2]int][]trace.Request{{0, 2}: {row(1)}, {1, 2}: {row(4)}}, trace.Meta{Capture: trace.RelativeCapture(0, 4)}, "after the declared end"},
	} {
		dir := t.TempDir()
		for at, rows := range c.parts {
			if _, err := trace.CreatePartition(dir, at[0], at[1], func(w trace.Writer[trace.Request]) error {
				_, err := w.Write(rows)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := trace.Assemble(dir, c.meta); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if trace.IsPartitioned(dir) {
			t.Errorf("%s: it has a manifest all the same", c.what)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rows.parquet"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trace.Assemble(dir, trace.Meta{}); err == nil || !strings.Contains(err.Error(), "rows.parquet is no partition") {
		t.Error(err)
	}
	if _, err := trace.CreatePartition(dir, 0, 2, func(w trace.Writer[trace.Request]) error {
		_, err := w.Write([]trace.Request{row(2), row(1)})
		return err
	}); err == nil || !strings.Contains(err.Error(), "sorted by arrival") {
		t.Errorf("rows out of order: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, trace.PartitionName(0, 2))); err == nil {
		t.Error("a partition that failed is there")
	}
}

// A failure changes nothing, and leaves nothing; a success replaces what was there, whatever
// its number of partitions, and no other files.
func TestPartitionedAppearsWhole(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(9, 9)), 100)
	dir := filepath.Join(t.TempDir(), "t")
	write := func(n int, announced int64, rows []trace.Request, fault error) error {
		return trace.CreatePartitioned(dir, n, announced, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
			_, err := w.Write(rows)
			return trace.Meta{Tier: "internal"}, errors.Join(err, fault)
		})
	}
	fault := errors.New("fault")
	if err := write(4, 100, rows[:50], fault); !errors.Is(err, fault) {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failure left a folder: %v", err)
	}
	if err := write(4, 100, rows, nil); err != nil {
		t.Fatal(err)
	}
	card := filepath.Join(dir, "card.json")
	if err := os.WriteFile(card, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{"fault": write(2, 100, rows[:10], fault), "too few": write(2, 100, rows[:99], nil), "too many": write(2, 99, rows, nil)} {
		if err == nil {
			t.Errorf("%s: it was written", what)
		}
	}
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	if got := names(); len(got) != 6 || readWhole(dir) != nil {
		t.Errorf("after failures: %v, %v", got, readWhole(dir))
	}
	if err := write(2, 100, rows, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"card.json", trace.ManifestName, trace.PartitionName(0, 2), trace.PartitionName(1, 2)}
	if got := names(); !slices.Equal(got, want) || readWhole(dir) != nil {
		t.Errorf("after another number: %v, %v", got, readWhole(dir))
	}
	for _, name := range want {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// Readers of one trace do not disturb each other, and end with it.
func TestPartitionReaders(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(10, 9)), 300)
	dir := filepath.Join(t.TempDir(), "t")
	partitioned(t, dir, 7, rows, trace.Meta{})
	tr, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var readers [3]*trace.RequestReader
	var got [3][]trace.Request
	for i := range readers {
		if readers[i], err = tr.Reader(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		for i := range readers {
			batch := make([]trace.Request, i+2)
			n, err := readers[i].Read(batch)
			if err != nil && err != io.EOF {
				t.Fatal(err)
			}
			got[i] = append(got[i], batch[:n]...)
		}
	}
	for i := range got {
		if want := rows[:min(len(rows), 100*(i+2))]; digest(got[i]) != digest(want) {
			t.Errorf("reader %d: %d other rows", i, len(got[i]))
		}
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := tr.Reader()
	if err == nil {
		_, err = r.Read(make([]trace.Request, 10))
	}
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed trace: %v", err)
	}
}

// Whatever is in a manifest: an error, or partitions in order. Errors quote nothing of it.
func FuzzManifest(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "t")
	partitioned(f, dir, 2, randomRows(rand.New(rand.NewPCG(1, 1)), 20), trace.Meta{BlockSize: 16})
	whole, err := os.ReadFile(filepath.Join(dir, trace.ManifestName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(bytes.ReplaceAll(whole, []byte("first_arrival_ns"), []byte("x")))
	f.Add([]byte(`{"schema":"manifest/2"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, meta, err := trace.ParseManifest(text)
		if err != nil {
			return
		}
		rows := int64(0)
		for i, p := range m.Partitions {
			if p.Name != trace.PartitionName(i, len(m.Partitions)) || p.Rows < 0 || filepath.Base(p.Name) != p.Name {
				t.Fatalf("partition %d is %+v", i, p)
			}
			rows += p.Rows
		}
		if rows != m.Rows || meta.Schema != trace.Schema {
			t.Fatal(rows, m.Rows, meta.Schema)
		}
	})
}
