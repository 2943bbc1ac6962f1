package result

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"reprise/replay/openai"
	"reprise/trace"
)

// BenchmarkJournal is the cost of a Result with 200 gaps, written and read back
// in order.
func BenchmarkJournal(b *testing.B) {
	rows := randomResults(1, 512)
	for i := range rows {
		rows[i].GapsNS = make([]int64, 200)
	}
	b.Run("write", func(b *testing.B) {
		j, err := CreateJournal(filepath.Join(b.TempDir(), "j"), someRun)
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		b.ReportAllocs()
		for n := 0; n < b.N; n += len(rows) {
			if _, err := j.Write(rows[:min(len(rows), b.N-n)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("finish", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "j")
		j, err := CreateJournal(path, someRun)
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; n < b.N; n += len(rows) {
			if _, err := j.Write(rows[:min(len(rows), b.N-n)]); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		if err := Encode(io.Discard, someRun, f.Reader()); err != nil {
			b.Fatal(err)
		}
	})
}

// The classes that results tell apart are those that the client writes.
func TestKindsAreOpenAIs(t *testing.T) {
	if KindCancelled != openai.KindCancelled || KindConnect != openai.KindConnect || KindRateLimited != openai.KindRateLimited {
		t.Error("a class of results is not that of package openai")
	}
}

// randomResult has every optional column set or not, and values at the edges.
func randomResult(rng *rand.Rand, row int64) Result {
	i64 := func() *int64 {
		switch rng.IntN(4) {
		case 0:
			return nil
		case 1:
			return trace.Ptr([]int64{0, -1, math.MaxInt64, math.MinInt64}[rng.IntN(4)])
		}
		return trace.Ptr(rng.Int64N(1e12))
	}
	i32 := func() *int32 {
		if rng.IntN(3) == 0 {
			return nil
		}
		return trace.Ptr(rng.Int32() - math.MaxInt32/2)
	}
	r := Result{
		RowID: row, Session: i64(), Thread: i32(), Turn: i32(), ThinkNS: i64(), ToolNS: i64(), Play: i32(), Category: trace.Categories()[rng.IntN(5)], Class: []string{"", "gold", "ü"}[rng.IntN(3)],
		DueNS: rng.Int64(), ReleasedNS: i64(), SentNS: i64(), HeadersNS: i64(), FirstEventNS: i64(), FirstTokenNS: i64(),
		LastTokenNS: i64(), DoneNS: i64(), WantInput: rng.Int32(), WantOutput: trace.Ptr(rng.Int32()), Known: i32(), Input: i32(),
		Cached: i32(), Output: i32(), OutputFrom: []string{"", FromUsage, FromTokenizer}[rng.IntN(3)], Events: rng.Int32(),
		HTTPStatus: i32(), Error: []string{"", "", openai.KindTimeout, openai.KindServer, openai.KindCancelled, KindPrepare}[rng.IntN(6)], FinishReason: []string{"", "stop", "length"}[rng.IntN(3)],
		Round: int32(row / 100), ArrivalNS: i64(), RecordedE2ENS: i64(),
		User: i64(), Model: []string{"", "m1", "ü"}[rng.IntN(3)], Adapter: []string{"", "lora"}[rng.IntN(2)],
		API: []string{"", APIChat, APIEmbeddings}[rng.IntN(3)], Endpoint: i32(), Attempts: rng.Int32N(4), RetryAfterNS: i64(),
		Refuted: []string{"", "output_above_asked", "cached_above_input,no_count"}[rng.IntN(3)], ClaimedInput: i64(), ClaimedCached: i64(), ClaimedOutput: i64(),
		TextBytes: trace.Ptr(rng.Int64()), // of a client that has held the counts against the text
	}
	for range rng.IntN(3) {
		r.Served = append(r.Served, rng.Int32N(9)-1)
	}
	for range rng.IntN(5) {
		r.GapsNS = append(r.GapsNS, rng.Int64N(1e9))
		r.EventTokens = append(r.EventTokens, rng.Int32N(9))
		r.ReadDelaysUS = append(r.ReadDelaysUS, 1+rng.Int32N(9e6)*(rng.Int32N(3)-1))
		r.Parents = append(r.Parents, rng.Int64N(row+1))
	}
	return r
}

func randomResults(seed uint64, n int) []Result {
	rng := rand.New(rand.NewPCG(seed, 7))
	var rows []Result
	for i := range n {
		rows = append(rows, randomResult(rng, int64(i)))
	}
	return rows
}

var someRun = Run{Schema: Schema, Version: "v1", Load: Load{Model: "m", Speed: 2}, PlannedNS: 5, Source: Source{Seed: "11"}}

// writeJournal writes rows in batches of the given size.
func writeJournal(t testing.TB, rows []Result, batch int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.journal")
	j, err := CreateJournal(path, someRun)
	if err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(rows, batch) {
		if _, err := j.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func readAll(t testing.TB, path string) (*File, []Result) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var out trace.SliceWriter[Result]
	if _, err := trace.Copy(&out, f.Reader()); err != nil {
		t.Fatal(err)
	}
	return f, out.Rows
}

func sameResults(a, b []Result) bool {
	return slices.EqualFunc(a, b, func(x, y Result) bool {
		for _, r := range []*Result{&x, &y} {
			if len(r.GapsNS) == 0 {
				r.GapsNS = nil
			}
			if len(r.EventTokens) == 0 {
				r.EventTokens = nil
			}
			if len(r.Served) == 0 {
				r.Served = nil
			}
			if len(r.ReadDelaysUS) == 0 {
				r.ReadDelaysUS = nil
			}
			if len(r.Parents) == 0 {
				r.Parents = nil
			}
		}
		return reflect.DeepEqual(x, y)
	})
}

func TestResultsSurviveJournalAndParquet(t *testing.T) {
	for _, n := range []int{0, 1, 2, 300, 2000} {
		rows := randomResults(uint64(n), n)
		shuffled := slices.Clone(rows)
		rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		j, got := readAll(t, writeJournal(t, shuffled, 37))
		if !sameResults(got, rows) || j.Rows() != int64(n) || !j.Unfinished {
			t.Fatalf("%d rows: the journal changes them", n)
		}
		unsent := int64(0)
		for _, r := range rows {
			if r.Error == KindPrepare {
				unsent++
			}
		}
		want := someRun
		want.Requests, want.Unprepared, want.EndedEarly = int64(n)-unsent, unsent, j.Run.EndedEarly
		if !reflect.DeepEqual(j.Run, want) || j.Run.EndedEarly == "" {
			t.Errorf("the journal's run is %+v", j.Run)
		}
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := Write(path, someRun, j.Reader()); err != nil {
			t.Fatal(err)
		}
		f, got := readAll(t, path)
		if !sameResults(got, rows) || f.Rows() != int64(n) || f.Unfinished || !reflect.DeepEqual(f.Run, someRun) {
			t.Fatalf("%d rows: Parquet changes them; run %+v", n, f.Run)
		}
	}
}

// The journal is read a range at a time; small ranges give the same rows.
func TestJournalRanges(t *testing.T) {
	rows := randomResults(3, 500)
	shuffled := slices.Clone(rows)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(rows), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	f, _ := readAll(t, writeJournal(t, shuffled, 20))
	for _, limit := range []int64{1, 1000, 5000, 1 << 20} {
		var out trace.SliceWriter[Result]
		if _, err := trace.Copy(&out, trace.Reader[Result](&journalReader{j: f.journal, limit: limit, left: f.journal.keys})); err != nil {
			t.Fatal(err)
		}
		if !sameResults(out.Rows, rows) {
			t.Errorf("ranges of %d bytes change the rows", limit)
		}
	}
}

// Long rows go in smaller batches, each of which a reader takes.
func TestJournalSplitsLargeBatches(t *testing.T) {
	rows := randomResults(4, 10)
	for i := range rows {
		rows[i].GapsNS = make([]int64, 300_000)
		rows[i].GapsNS[7] = int64(i)
	}
	f, got := readAll(t, writeJournal(t, rows, 10))
	if !sameResults(got, rows) || len(f.journal.spans) < 5 {
		t.Errorf("%d batches", len(f.journal.spans))
	}
}

// Wherever a journal is cut (at every third byte, for time), it opens with the rows of its whole batches.
func TestCutJournal(t *testing.T) {
	rows := randomResults(5, 12)
	path := writeJournal(t, rows, 4)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opened, last := 0, -1
	for cut := 0; cut < len(whole); cut += 3 {
		got, err := openBytes(whole[:cut])
		if err != nil {
			if opened > 0 {
				t.Fatalf("at %d of %d: %v", cut, len(whole), err)
			}
			continue
		}
		opened++
		if len(got)%4 != 0 || len(got) < last || !sameResults(got, rows[:len(got)]) {
			t.Fatalf("at %d of %d: %d rows, not a prefix", cut, len(whole), len(got))
		}
		last = len(got)
	}
	if last != 12 || opened < len(whole)/6 {
		t.Errorf("opened %d of %d, the last with %d rows", opened, len(whole), last)
	}
	// A crash of the machine can leave zeros where the end was.
	if got, err := openBytes(append(slices.Clone(whole[:len(whole)-8]), make([]byte, 4096)...)); err != nil || len(got) != 12 {
		t.Errorf("with zeros at the end: %d rows, %v", len(got), err)
	}
}

// openBytes opens bytes as a results file and reads all of it.
func openBytes(data []byte) ([]Result, error) {
	f := &File{src: bytes.NewReader(data), size: int64(len(data))}
	if err := f.open(); err != nil {
		return nil, err
	}
	var out trace.SliceWriter[Result]
	_, err := trace.Copy(&out, f.Reader())
	return out.Rows, err
}

func TestDamagedResultsAreErrors(t *testing.T) {
	journal, err := os.ReadFile(writeJournal(t, randomResults(6, 20), 5))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Encode(&b, someRun, &trace.SliceReader[Result]{Rows: randomResults(6, 20)}); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for _, whole := range [][]byte{journal, b.Bytes()} {
		failed := 0
		for range 500 { // no panic, whatever happens
			data := slices.Clone(whole)
			for range 1 + rng.IntN(4) {
				data[rng.IntN(len(data))] = byte(rng.Uint32())
			}
			if _, err := openBytes(data); err != nil {
				failed++
			}
		}
		if failed == 0 {
			t.Error("no damage was noticed")
		}
	}
	for name, data := range map[string][]byte{
		"empty": nil, "short": []byte("PA"), "text": []byte("row,session\n1,2\n"), "cut Parquet": b.Bytes()[:b.Len()/2],
	} {
		if _, err := openBytes(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// A batch that claims to be larger than any is damage, and is not given the memory.
func TestHugeBatchIsAnError(t *testing.T) {
	path := writeJournal(t, randomResults(7, 5), 5)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := readAll(t, path)
	s := f.journal.spans[len(f.journal.spans)-1]
	meta := s.from + 8 + int64(binary.LittleEndian.Uint32(data[s.from+4:]))
	at := bytes.Index(data[s.from:meta], binary.LittleEndian.AppendUint64(nil, uint64(s.to-meta)))
	if at < 0 {
		t.Fatal("the batch does not say how long it is")
	}
	binary.LittleEndian.PutUint64(data[s.from+int64(at):], maxBody+1)
	if _, err := openBytes(data); !errors.Is(err, errJournal) {
		t.Errorf("error %v", err)
	}
}

// Files of another kind are told apart by their metadata.
func TestForeignFilesAreErrors(t *testing.T) {
	encode := func(f func(w *trace.RowsWriter[Result])) []byte {
		var b bytes.Buffer
		w := trace.NewRowsWriter[Result](&b, nil)
		f(w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var other bytes.Buffer
	w := trace.NewRequestWriter(&other)
	if err := w.Close(trace.Meta{}); err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"no reprise.run":                         encode(func(*trace.RowsWriter[Result]) {}),
		"another version than":                   encode(func(w *trace.RowsWriter[Result]) { w.SetMetadata(runKey, `{"schema":"results/9"}`) }),
		"its reprise.run was written by another": encode(func(w *trace.RowsWriter[Result]) { w.SetMetadata(runKey, `{"schema":1}`) }),
		"is not results":                         encode(func(w *trace.RowsWriter[Result]) { w.SetMetadata(runKey, `{}`) }),
		"no column":                              other.Bytes(),
	} {
		if _, err := openBytes(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestJournalHasTheColumnsOfParquet(t *testing.T) {
	var parquetColumns, journalColumns []string
	for _, f := range parquet.SchemaOf(new(Result)).Fields() {
		kind := "?"
		switch {
		case !f.Leaf():
			kind = "list<item: " + strings.ToLower(f.Fields()[0].Fields()[0].Type().Kind().String()) + ">"
		case f.Type().Kind() == parquet.ByteArray:
			kind = "utf8"
		default:
			kind = strings.ToLower(f.Type().Kind().String())
			if f.Optional() {
				kind += "?"
			}
		}
		parquetColumns = append(parquetColumns, f.Name()+" "+kind)
	}
	for _, c := range columns() {
		kind := strings.ReplaceAll(c.field.Type.String(), ", non-nullable", "")
		kind = strings.ReplaceAll(kind, ", nullable", "")
		if c.field.Nullable {
			kind += "?"
		}
		journalColumns = append(journalColumns, c.field.Name+" "+kind)
	}
	if !slices.Equal(parquetColumns, journalColumns) {
		t.Errorf("Parquet %q\njournal %q", parquetColumns, journalColumns)
	}
}

func TestJournalIsPrivateAndReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.journal")
	j, err := CreateJournal(path, someRun)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if _, err := CreateJournal(path, someRun); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second journal: %v", err)
	}
}

const childEnv = "REPRISE_TEST_JOURNAL"

// TestJournalChild is the process that TestKilledRun kills.
func TestJournalChild(t *testing.T) {
	path := os.Getenv(childEnv)
	if path == "" {
		t.Skip("runs as the child of TestKilledRun")
	}
	j, err := CreateJournal(path, someRun)
	if err != nil {
		t.Fatal(err)
	}
	rows := randomResults(9, 30)
	for part := range slices.Chunk(rows, 10) {
		if _, err := j.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("written")
	time.Sleep(time.Hour) // with a timer it is no deadlock
}

func TestKilledRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.journal")
	cmd := exec.Command(os.Args[0], "-test.run=^TestJournalChild$")
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, len("written"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "written" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if err := errors.Join(cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	f, got := readAll(t, path)
	if !sameResults(got, randomResults(9, 30)) || f.Run.Requests == 0 || f.Run.Model != "m" {
		t.Errorf("%d rows are left, run %+v", len(got), f.Run)
	}
}

// A journal whose lengths are damaged takes no more memory than its batches may: those of the
// metadata of a message, of its body, and of what stands in it.
func TestJournalThatClaims(t *testing.T) {
	sound, err := os.ReadFile(writeJournal(t, randomResults(11, 40), 10))
	if err != nil {
		t.Fatal(err)
	}
	first := 8 + int(binary.LittleEndian.Uint32(sound[4:])) // behind the schema stands the first batch
	claims := map[string][]byte{}
	with := func(name string, at int, value uint32) {
		damaged := bytes.Clone(sound)
		binary.LittleEndian.PutUint32(damaged[at:], value)
		claims[name] = damaged
	}
	with("metadata", first+4, math.MaxInt32)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 400 { // lengths of bodies and of vectors are among them
		at := first + 8 + random.IntN(int(binary.LittleEndian.Uint32(sound[first+4:])))&^3
		with(fmt.Sprint("word ", i, " at ", at), at, math.MaxInt32>>random.IntN(8))
	}

	for name, file := range claims {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		openBytes(file)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > maxBody+16<<20 {
			t.Errorf("%s: %d MiB were allocated", name, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
}

func FuzzOpenResults(f *testing.F) {
	rows := randomResults(10, 6)
	journal, err := os.ReadFile(writeJournal(f, rows, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(journal)
	f.Add(journal[:len(journal)*2/3])
	var b bytes.Buffer
	if err := Encode(&b, someRun, &trace.SliceReader[Result]{Rows: rows}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		openBytes(data) // an error or rows, and no panic
	})
}
