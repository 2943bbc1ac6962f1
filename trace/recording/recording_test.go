package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/block"
)

func testMeta(id string) Meta {
	return Meta{CaptureID: id + "00000000", Begin: time.Now(), BlockSize: 16, Tokenizer: "o200k_base", Template: "none", Share: 1, Settings: "sha256:1"}
}

// testRow has every kind of column, some of them missing in every other row.
func testRow(m Meta, i int) Row {
	r := Row{Links: Links{SessionID: fmt.Sprint("s", i%3)}, Template: "none", TextTokens: trace.Ptr(int32(i)), Tokenised: true}
	r.Request = trace.Request{ArrivalNS: m.Begin.UnixNano() + int64(1000-i)*1e3, InputTokens: int32(i), OutputTokens: trace.Ptr[int32](2), Status: trace.StatusOK, Kind: "chat",
		Blocks: Words(nil, []block.ID{{1, byte(i)}, {0xff, 2}})}
	if i%2 == 0 {
		r.UsageTokens, r.Request.TTFTNS, r.Request.Stream, r.Request.OutputBlocks = trace.Ptr(int32(0)), trace.Ptr(int64(5)), trace.Ptr(false), Words([]uint64{}, nil)
	}
	return r
}

func readAll(t *testing.T, s *Set) (rows []Row) {
	t.Helper()
	r := s.Reader()
	for {
		batch := make([]Row, 7)
		n, err := r.Read(batch)
		rows = append(rows, batch[:n]...)
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func sameRows(t *testing.T, got, want []Row) {
	t.Helper()
	sorted := func(rows []Row) []string {
		var out []string
		for _, r := range rows {
			if len(r.Request.Parents) == 0 {
				r.Request.Parents = nil // Parquet has no missing list there
			}
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(b))
		}
		slices.Sort(out)
		return out
	}
	if g, w := sorted(got), sorted(want); !slices.Equal(g, w) {
		t.Errorf("%d rows, want %d\n%v\n%v", len(g), len(w), g, w)
	}
}

// Rows come back as they went in, from parts, from a journal that is still written and
// from one that ends in the middle of a row; the files are their owner's alone.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	m := testMeta("a")
	w, err := NewWriter(dir, m, time.Hour, func() Counts { return Counts{Recorded: 12, Memory: 3} })
	if err != nil {
		t.Fatal(err)
	}
	var want []Row
	put := func(n int) {
		for range n {
			r := testRow(m, len(want))
			want = append(want, r)
			if !w.Add(&r) {
				t.Fatal("no room")
			}
		}
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
	}
	put(5)
	if err := w.turn(); err != nil {
		t.Fatal(err)
	}
	put(7)
	s, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	sameRows(t, readAll(t, s), want)
	if files, journals := s.Files(); len(files) != 2 || journals != 1 {
		t.Errorf("%v, %d journals", files, journals)
	}

	// kill -9 in the middle of a write
	journal, _ := filepath.Glob(filepath.Join(dir, "*.journal"))
	text, err := os.ReadFile(journal[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 2, 40, len(bytes.Split(text, []byte("\n"))[7])} {
		if err := os.WriteFile(journal[0], text[:len(text)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err = Open([]string{dir}); err != nil {
			t.Fatal(err)
		}
		sameRows(t, readAll(t, s), want[:11])
	}
	if err := os.WriteFile(journal[0], text, 0o600); err != nil {
		t.Fatal(err)
	}

	w.Start()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 2 || !strings.HasSuffix(files[0], "-a0000000-0001.part.parquet") {
		t.Errorf("%v", files)
	}
	for _, f := range files {
		if info, _ := os.Stat(f); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", f, info.Mode())
		}
	}
	if s, err = Open([]string{dir, files[0]}); err != nil {
		t.Fatal(err)
	}
	rows := readAll(t, s)
	sameRows(t, rows, want)
	if !slices.IsSortedFunc(rows[:5], func(a, b Row) int { return int(a.Request.ArrivalNS - b.Request.ArrivalNS) }) {
		t.Error("a part is not sorted by arrival")
	}
	got := s.Meta()
	if got.Counts != (Counts{Recorded: 12, Memory: 3}) || got.Tokenizer != "o200k_base" || !got.End.After(m.Begin) || len(s.Captures()) != 1 {
		t.Errorf("%+v", got)
	}
}

// A disk that fails loses nothing as long as memory lasts, and then says how much.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	m := testMeta("b")
	w, err := NewWriter(dir, m, time.Hour, func() Counts { return Counts{} })
	if err != nil {
		t.Fatal(err)
	}
	var said []error
	w.Failing = func(err error) { said = append(said, err) }
	good := w.journal.file
	var want []Row
	add := func() bool {
		r := testRow(m, len(want))
		if w.Add(&r) {
			want = append(want, r)
			return true
		}
		return false
	}
	add()
	w.tell(w.flush())
	if w.journal.file, err = os.Open(good.Name()); err != nil { // which cannot be written to
		t.Fatal(err)
	}
	add()
	for range 3 {
		w.tell(w.flush())
	}
	if len(said) != 1 || said[0] == nil {
		t.Fatalf("said %v", said)
	}
	w.journal.file = good
	w.tell(w.flush())
	if len(said) != 2 || said[1] != nil {
		t.Fatalf("said %v", said)
	}
	s, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	sameRows(t, readAll(t, s), want)
	for add() {
	}
	written, lost := w.Written()
	if written != 2 || lost != 1 {
		t.Errorf("%d written, %d lost", written, lost)
	}
}

// A fullDisk takes nothing beyond its size, and what is there can be written over.
type fullDisk struct {
	journalFile
	size int64
}

func (d fullDisk) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > d.size {
		return 0, syscall.ENOSPC
	}
	return d.journalFile.WriteAt(p, at)
}

// What a full disk lost is in what the recording says of itself, beside what was lost before.
func TestFullDiskIsCounted(t *testing.T) {
	dir := t.TempDir()
	m := testMeta("c")
	var w *Writer
	w, err := NewWriter(dir, m, time.Hour, func() Counts {
		written, lost := w.Written()
		return Counts{Recorded: written, Disk: lost, TooLong: 2, ClientGone: 1}
	})
	if err != nil {
		t.Fatal(err)
	}
	row := testRow(m, 1)
	w.Add(&row)
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	w.journal.file = fullDisk{w.journal.file, w.journal.offset}
	for range 5 {
		w.Add(&row)
	}
	w.Start()
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	s, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Meta().Counts, (Counts{Recorded: 1, Disk: 5, TooLong: 2, ClientGone: 1}); got != want || got.Lost() != 8 || len(readAll(t, s)) != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Every count of a capture has a name, that of its JSON, and words; several captures add up.
func TestOutcomes(t *testing.T) {
	var c Counts
	fields := reflect.TypeFor[Counts]()
	outcomes := c.Outcomes()
	if len(outcomes) != fields.NumField()-1 {
		t.Errorf("%d outcomes, and %d fields", len(outcomes), fields.NumField())
	}
	for i, o := range outcomes {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if o.Name != name || o.Says == "" || o.Lost != strings.HasPrefix(name, "lost_") {
			t.Errorf("outcome %s, %q, lost %v; the field is %s", o.Name, o.Says, o.Lost, name)
		}
		*o.N = int64(i) + 1
	}
	c.Usage.TotalOff = 3
	s := &Set{captures: []Meta{{Counts: c}, {Counts: c}}}
	sum := s.Meta().Counts
	for i, o := range sum.Outcomes() {
		if *o.N != 2*int64(i+1) {
			t.Errorf("%s: two captures have %d", o.Name, *o.N)
		}
	}
	if sum.Usage.TotalOff != 6 {
		t.Error("findings of usage do not add up")
	}
}

// A journal of an earlier version has no line of counts, and one that was being written over tells none.
func TestJournalsWithoutCounts(t *testing.T) {
	m := testMeta("d")
	m.Schema = Schema
	head, _ := json.Marshal(m)
	row := testRow(m, 1)
	line, _ := json.Marshal(row)
	torn := countsLine(Counts{Recorded: 7})
	torn[len(countsHead)+3] = 0
	for name, text := range map[string]string{"an earlier version": string(head) + "\n" + string(line) + "\n", "torn": string(head) + "\n" + string(torn) + string(line) + "\n"} {
		got, rows, err := readJournal(strings.NewReader(text))
		if err != nil || len(rows) != 1 || got.Counts != (Counts{}) {
			t.Errorf("%s: %v, %d rows, %+v", name, err, len(rows), got.Counts)
		}
	}
}

// What does not go together is refused, with the name of the file.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open([]string{dir}); !errors.Is(err, errNone) || err.Error() != dir+": it holds no parts of a recording (*.part.parquet)" {
		t.Error(err)
	}
	for i, id := range []string{"a", "b", "c"} {
		m := testMeta(id)
		m.Settings = []string{"sha256:1", "sha256:1", "sha256:2"}[i]
		row := testRow(m, 1)
		if err := write(filepath.Join(dir, id+partExt), m, []Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := Open([]string{filepath.Join(dir, "a"+partExt), filepath.Join(dir, "b"+partExt)}); err != nil || len(s.Captures()) != 2 {
		t.Error(err)
	}
	first, third := filepath.Join(dir, "a"+partExt), filepath.Join(dir, "c"+partExt)
	if _, err := Open([]string{dir}); err == nil || err.Error() != third+": it was recorded with another tokenizer, chat template, block size or --keep-model than "+first+": merge them separately" {
		t.Error(err)
	}
	for name, text := range map[string]string{"x" + journalExt: "", "y" + journalExt: "{}\n", "z" + partExt: "PAR1"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open([]string{path}); err == nil || !strings.HasPrefix(err.Error(), path+": it is not a") {
			t.Error(err)
		}
	}
}

func FuzzJournal(f *testing.F) {
	head, _ := json.Marshal(Meta{Schema: Schema, CaptureID: "a", Begin: time.Unix(1, 0), BlockSize: 16})
	row := testRow(Meta{Begin: time.Unix(1, 0)}, 2)
	line, _ := json.Marshal(row)
	f.Add(string(head) + "\n" + string(line) + "\n")
	f.Add(string(head) + "\n{\"Request\":")
	f.Add(string(head) + "\n" + string(countsLine(Counts{Disk: 3})) + string(line) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, rows, err := readJournal(strings.NewReader(text))
		if err == nil && m.Schema != Schema {
			t.Errorf("a journal of schema %q with %d rows", m.Schema, len(rows))
		}
	})
}

// Requests that go on from an earlier answer are of the session of the first, across
// parts, also where that answer was not recorded; those that name a session keep it.
func TestChainsAreSessions(t *testing.T) {
	dir := t.TempDir()
	m := testMeta("c")
	w, err := NewWriter(dir, m, time.Hour, func() Counts { return Counts{} })
	if err != nil {
		t.Fatal(err)
	}
	want := map[int32]string{}
	for i, c := range []struct {
		links Links
		want  string
	}{
		{Links{"", "r1", ""}, "r1"}, {Links{"", "r2", "r1"}, "r1"}, {Links{"", "alone", ""}, ""}, {Links{"named", "r4", ""}, "named"},
		{Links{"", "r5", "r2"}, "r1"}, {Links{"", "", "r5"}, "r1"}, {Links{"", "r7", "before"}, "before"}, {Links{"named", "r8", "r7"}, "named"},
		{Links{"", "a", "b"}, "a"}, {Links{"", "b", "a"}, "a"}, {Links{}, ""},
	} {
		r := testRow(m, i)
		r.Links, want[int32(i)] = c.links, c.want
		w.Add(&r)
		if err := w.flush(); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			if err := w.turn(); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	rows := readAll(t, s)
	if len(rows) != len(want) {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		if got := r.SessionID; got != want[r.Request.InputTokens] && (got == "" || want[r.Request.InputTokens] != "a") { // a circle has no first
			t.Errorf("%+v: session %q, want %q", r.Links, got, want[r.Request.InputTokens])
		}
	}
}

// Captures of one key have it once, and those whose key ended with them one each.
func TestKeysOfCaptures(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct{ key, want string }{{"", ""}, {"k1", "ephemeral,k1"}, {"k1", "ephemeral,k1"}, {"", "ephemeral,k1,ephemeral"}} {
		m := testMeta(fmt.Sprint(i))
		m.KeyID, m.Breakers, m.Counts.Recorded = c.key, fmt.Appendf(nil, `"of %d"`, i), int64(i%3)
		if _, err := NewWriter(dir, m, time.Hour, nil); err != nil {
			t.Fatal(err)
		}
		s, err := Open([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Meta().Keys; got != c.want {
			t.Errorf("%d captures: %q, want %q", i+1, got, c.want)
		}
		if got := string(s.Meta().Breakers); got != fmt.Sprintf(`"of %d"`, min(i, 2)) { // of the one with the most requests
			t.Errorf("%d captures: breakers %s", i+1, got)
		}
	}
}

// A slowDisk takes a write when it is let.
type slowDisk struct {
	journalFile
	let chan struct{}
}

func (d slowDisk) WriteAt(p []byte, at int64) (int, error) {
	<-d.let
	return d.journalFile.WriteAt(p, at)
}

// While a write to the disk takes long, rows are taken without waiting as long as there is
// memory for them, and counted as lost beyond it; afterwards the others are all there.
func TestSlowDisk(t *testing.T) {
	dir := t.TempDir()
	m := testMeta("d")
	w, err := NewWriter(dir, m, time.Hour, func() Counts { return Counts{} })
	if err != nil {
		t.Fatal(err)
	}
	disk := slowDisk{w.journal.file, make(chan struct{})}
	w.journal.file, w.room = disk, 1<<18
	first := testRow(m, 1)
	w.Add(&first)
	w.Start()
	for range 400 { // until the write is under way
		w.mu.Lock()
		n := len(w.pending)
		w.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	row := testRow(m, 2)
	row.Request.Blocks = make([]uint64, 5_000)
	taken, refused, begin := int64(1), int64(0), time.Now()
	for range 95 {
		if w.Add(&row) {
			taken++
		} else {
			refused++
		}
	}
	if took := time.Since(begin); took > 5*time.Second || refused == 0 || taken < 10 {
		t.Errorf("%d taken and %d refused in %v", taken, refused, took)
	}
	close(disk.let)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if written, lost := w.Written(); written != taken || lost != refused {
		t.Errorf("%d written and %d lost, want %d and %d", written, lost, taken, refused)
	}
	s, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	if rows := readAll(t, s); int64(len(rows)) != taken {
		t.Errorf("%d rows, want %d", len(rows), taken)
	}
}
