package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/usage"
)

const (
	partExt    = ".part.parquet"
	journalExt = ".part.journal"

	flushEvery   = 400 * time.Millisecond // a kill loses what came since
	pendingBytes = 16 << 20               // rows that wait for a disk
	journalBytes = 64 << 20               // of a journal, before it becomes a part
)

// A Writer writes the parts of one capture to a folder.
type Writer struct {
	// Failing is told of an error of the disk when it begins to fail, and of nil when
	// it works again. It may be nil.
	Failing func(error)

	// Breakers is asked for [Meta.Breakers] whenever a part is written. It may be nil.
	Breakers func() json.RawMessage

	dir    string
	rotate time.Duration
	meta   Meta
	counts func() Counts

	room    int // bytes of rows that wait
	mu      sync.Mutex
	pending []byte // lines that are not in the journal yet
	rows    int64  // of these
	written int64  // rows in journals and parts
	lost    int64  // rows that found no room

	journal *journal // nil where none could be opened
	number  int
	failing bool

	end, ended chan struct{}
}

// A journal is a part in the making: lines of JSON, the first with the [Meta], the second with the
// counts so far, which are written over in place: a full disk takes them too.
type journal struct {
	file   journalFile
	name   string // without its extension
	counts int64  // where the line of the counts begins
	offset int64  // whole lines
	first  int64  // the offset of the first row
	began  time.Time
}

// A journalFile is an [os.File], or one that a test makes slow.
type journalFile interface {
	io.ReadSeekCloser
	io.WriterAt
	Truncate(size int64) error
	Name() string
}

// NewWriter begins a capture in a folder, which must exist. A journal becomes a part
// after so long, or earlier when it is large. counts is asked whenever a part is written.
func NewWriter(dir string, m Meta, rotate time.Duration, counts func() Counts) (*Writer, error) {
	w := &Writer{dir: dir, rotate: rotate, meta: m, counts: counts, room: pendingBytes, end: make(chan struct{}),
		ended: make(chan struct{})}
	w.meta.Schema = Schema
	if err := w.begin(); err != nil {
		return nil, err
	}
	return w, nil
}

// Start begins to write what [Writer.Add] takes, until [Writer.Close].
func (w *Writer) Start() {
	go func() {
		defer close(w.ended)
		defer crash.Caught()
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.end:
				return
			case <-tick.C:
			}
			err := w.flush()
			if j := w.journal; err == nil && j.offset > j.first &&
				(time.Since(j.began) >= w.rotate || j.offset >= journalBytes) {
				err = w.turn()
			}
			w.tell(err)
		}
	}()
}

// Add takes a row. It does not wait for the disk, and reports whether there was room.
func (w *Writer) Add(r *Row) bool {
	line, err := json.Marshal(r)
	if err != nil { // such as a temperature that is no number
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending)+len(line) > w.room {
		w.lost++
		return false
	}
	w.pending = append(append(w.pending, line...), '\n')
	w.rows++
	return true
}

// Written is how many rows are in journals and parts, and Lost how many found no room
// or were left when the disk did not take them at the end.
func (w *Writer) Written() (written, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written, w.lost
}

// Close writes what is left and makes a part of it. What the disk does not take is
// counted as lost, and is in the error.
func (w *Writer) Close() error {
	close(w.end)
	<-w.ended
	err := w.flush()
	if err == nil {
		err = w.finish(w.journal)
	}
	w.mu.Lock()
	w.lost += w.rows
	w.pending, w.rows = nil, 0
	w.mu.Unlock()
	if err != nil { // the journal stays, and says what it lacks
		w.keepCounts()
	}
	return err
}

// tell says when the disk begins and ceases to fail.
func (w *Writer) tell(err error) {
	if failing := err != nil; failing != w.failing {
		w.failing = failing
		if w.Failing != nil {
			w.Failing(err)
		}
	}
}

// begin opens the next journal.
func (w *Writer) begin() error {
	name := fmt.Sprintf("%s-%.8s-%04d", w.meta.Begin.UTC().Format("20060102T150405Z"), w.meta.CaptureID, w.number+1)
	head, err := json.Marshal(w.meta)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name+journalExt), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	at := int64(len(head)) + 1
	if _, err := f.Write(append(append(head, '\n'), countsLine(w.meta.Counts)...)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	first := at + countsBytes
	w.number++
	w.journal = &journal{file: f, name: name, counts: at, offset: first, first: first, began: time.Now()}
	return nil
}

// countsBytes is the length of the line of counts, which has room for the largest.
const countsBytes = 2 << 10

// countsHead begins that line, as no row begins. Journals of earlier versions have no such line.
const countsHead = `{"counts":`

// countsLine is that line. A tally of usage that finds no room is left out.
func countsLine(c Counts) []byte {
	text, err := json.Marshal(map[string]Counts{"counts": c})
	if err != nil || len(text) >= countsBytes {
		c.Usage = usage.Tally{}
		text, _ = json.Marshal(map[string]Counts{"counts": c})
	}
	line := bytes.Repeat([]byte{' '}, countsBytes)
	copy(line, text)
	line[countsBytes-1] = '\n'
	return line
}

// keepCounts writes the counts so far into the journal. A failure is no loss of rows, and the next
// flush tries again.
func (w *Writer) keepCounts() {
	if j := w.journal; j != nil {
		_, _ = j.file.WriteAt(countsLine(w.counts()), j.counts)
	}
}

// flush writes the rows that wait. Where the disk takes a part of them alone, that is
// taken back, and all of them wait on.
func (w *Writer) flush() error {
	if w.journal == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.mu.Lock()
	lines, rows := w.pending, w.rows
	w.pending, w.rows = nil, 0
	w.mu.Unlock()
	if len(lines) == 0 {
		return nil
	}
	defer w.keepCounts()
	j := w.journal
	n, err := j.file.WriteAt(lines, j.offset)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, j.file.Truncate(j.offset))
		}
		w.mu.Lock()
		w.pending, w.rows = append(lines, w.pending...), w.rows+rows
		w.mu.Unlock()
		return err
	}
	j.offset += int64(n)
	w.mu.Lock()
	w.written += rows
	w.mu.Unlock()
	return nil
}

// turn goes on with another journal, and makes a part of the one before. Where that
// cannot be, the journal stays, and [Open] reads it.
func (w *Writer) turn() error {
	last := w.journal
	if err := w.begin(); err != nil {
		last.began = time.Now() // not again at once
		return err
	}
	return w.finish(last)
}

// finish makes a part of a journal.
func (w *Writer) finish(j *journal) error {
	if j == nil {
		return nil
	}
	defer j.file.Close()
	if _, err := j.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	m, rows, err := readJournal(j.file)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		m.End, m.Counts = w.meta.Begin.Add(time.Since(w.meta.Begin)), w.counts()
		if w.Breakers != nil {
			m.Breakers = w.Breakers()
		}
		if err := write(filepath.Join(w.dir, j.name+partExt), m, rows); err != nil {
			return err
		}
	}
	return os.Remove(j.file.Name())
}

// write writes a part, sorted by arrival.
func write(path string, m Meta, rows []Row) error {
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Request.ArrivalNS, b.Request.ArrivalNS) })
	return trace.WriteFile(path, 0o600, func(out io.Writer) error {
		w := trace.NewRowsWriter(out, func(r *Row) int64 {
			return 900 + 8*int64(len(r.Request.Blocks)+len(r.Request.OutputBlocks))
		})
		if _, err := w.Write(rows); err != nil {
			return err
		}
		m.Schema = Schema
		all, err := json.Marshal(m)
		if err != nil {
			return err
		}
		for _, p := range [][2]string{{schemaKey, Schema}, {captureKey, string(all)},
			{"reprise.capture_id", m.CaptureID}, {"reprise.tier", "internal"},
			{"reprise.capture_begin", m.Begin.Format(time.RFC3339Nano)}, {"reprise.capture_end",
				m.End.Format(time.RFC3339Nano)}} {
			w.SetMetadata(p[0], p[1])
		}
		return w.Close()
	})
}

// readJournal reads the rows of a journal up to the last one that is whole.
func readJournal(src io.Reader) (Meta, []Row, error) {
	in := bufio.NewReaderSize(src, 64<<10)
	head, err := in.ReadBytes('\n')
	if err != nil {
		return Meta{}, nil, fmt.Errorf("it is not a journal of a recording")
	}
	m, err := parseMeta(head)
	if err != nil {
		return m, nil, err
	}
	var rows []Row
	for {
		line, err := in.ReadBytes('\n')
		switch {
		case err == io.EOF: // what is left, if anything, is a line that was being written
			return m, rows, nil
		case err != nil:
			return m, rows, err
		}
		if of, ok := bytes.CutPrefix(line, []byte(countsHead)); ok && len(rows) == 0 {
			_ = json.Unmarshal(bytes.TrimSuffix(bytes.TrimSpace(of), []byte("}")), &m.Counts) // torn counts are unknown
			continue
		}
		var r Row
		if json.Unmarshal(bytes.TrimSpace(line), &r) != nil {
			return m, rows, nil // nothing whole comes after a torn line
		}
		rows = append(rows, r)
	}
}
