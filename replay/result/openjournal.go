package result

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"reprise/trace"
	"reprise/trace/arrowipc"
)

// An openJournal is a journal to be read in row order. It was written in order
// of completion, so a first pass notes where each row lies; later passes fetch
// a range of rows at a time. In memory there are 24 bytes for each row and one
// range, at most rangeBytes and a batch.
type openJournal struct {
	src   io.ReaderAt
	run   Run
	head  []byte // the schema message
	spans []span // of the batches
	keys  []key  // sorted by round and row
	sent  int64  // rows that were sent, not only due

	stalls *Stalls // nil where no batch says anything of them
	cols   []column
}

type span struct{ from, to int64 }

// A key says where a result lies.
type key struct {
	row          int64
	round        int32
	batch, index uint32
	size         uint32 // about, in memory
}

const (
	rangeBytes = 64 << 20
	// maxBody bounds a batch that is read, against a length that is damaged. One
	// row of some millions of tokens fits.
	maxBody = 1 << 26
)

// readJournal finds the rows of a journal. A journal whose end is missing is
// read up to there.
func readJournal(src io.ReaderAt, size int64) (j *openJournal, err error) {
	defer guardJournal(&err)
	j = &openJournal{src: src, cols: columns()}
	if j.head, j.run, err = readHead(io.NewSectionReader(src, 0, size)); err != nil {
		return nil, err
	}
	counted := &counter{r: bufio.NewReaderSize(io.NewSectionReader(src, 0, size), 64<<10)}
	r, err := arrowipc.NewReader(counted, maxBody, untilCut)
	if err != nil {
		return nil, errJournal
	}
	defer r.Release()
	if err := j.index(r, counted); err != nil {
		return nil, err
	}
	slices.SortStableFunc(j.keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.row, b.row))
	})
	return j, nil
}

// readHead reads the first message of a journal, its schema, and the Run in it.
//
// The Arrow library decodes schemas trustingly: a damaged length in one makes
// it claim all memory. So the schema is not decoded. The Run is the one part
// that varies; with it, the message that this version would have written is
// made anew, and the file must begin with just that.
func readHead(src io.Reader) (head []byte, run Run, err error) {
	var frame [8]byte // a mark, and the length of the message
	if _, err := io.ReadFull(src, frame[:]); err != nil {
		return nil, run, errHead
	}
	n := binary.LittleEndian.Uint32(frame[4:])
	if n > 1<<20 {
		return nil, run, errJournal
	}
	head = append(frame[:], make([]byte, n)...)
	if _, err := io.ReadFull(src, head[8:]); err != nil {
		return nil, run, errHead
	}
	at := bytes.Index(head, []byte(`{"schema":`)) // as Run.encode begins; a string's length stands before it
	if at < 4 {
		return nil, run, fmt.Errorf("it has no %s, so it does not hold results", runKey)
	}
	size := binary.LittleEndian.Uint32(head[at-4:])
	doc := string(head[at:min(at+int(size), len(head))])
	if run, err = decodeRun(doc); err != nil {
		return nil, run, err
	}
	var want bytes.Buffer // the schema message of a journal, and an end mark of 8 bytes
	err = ipc.NewWriter(&want, ipc.WithSchema(journalSchema(doc))).Close()
	if err == nil && !bytes.Equal(head, want.Bytes()[:want.Len()-8]) {
		err = otherColumns(run.Version)
	}
	return head, run, err
}

// otherColumns is the error of a journal whose columns are not those of this version.
// Finished results stay readable; what a journal holds is read as it was written, or not at all.
func otherColumns(version string) error {
	if version == "" || len(version) > 64 {
		return errors.New("it is the journal of a run that did not finish, with the columns of another version of " +
			"Reprise")
	}
	return fmt.Errorf("it is the journal of a run that did not finish, with the columns of Reprise %q: read "+
		"it with that version", version)
}

// index notes the place of every row. It decodes no more of a row than that takes.
func (j *openJournal) index(r *ipc.Reader, src *counter) error {
	var places, lists []int // of columns
	for i, c := range j.cols {
		if slices.Contains([]string{"row", "round", "error"}, c.field.Name) {
			places = append(places, i)
		}
		if c.size != nil {
			lists = append(lists, i)
		}
	}
	for from := src.n; r.Next(); from = src.n {
		var one Result
		rec := r.RecordBatch()
		if with, ok := rec.(arrow.RecordBatchWithMetadata); ok {
			if doc, ok := with.Metadata().GetValue(stallsKey); ok {
				s, err := decodeStalls(doc)
				if err != nil {
					return errJournal
				}
				if j.stalls == nil {
					j.stalls = &Stalls{AboveNS: s.AboveNS}
				}
				j.stalls.join(s)
			}
		}
		for i := range int(rec.NumRows()) {
			one = Result{}
			for _, c := range places {
				j.cols[c].get(rec.Column(c), i, &one)
			}
			size := resultBytes(&one)
			for _, c := range lists {
				size += j.cols[c].size(rec.Column(c), i)
			}
			if one.Error != KindPrepare {
				j.sent++
			}
			j.keys = append(j.keys, key{
				row: one.RowID, round: one.Round, batch: uint32(len(j.spans)), index: uint32(i), size: uint32(size),
			})
		}
		j.spans = append(j.spans, span{from, src.n})
	}
	if r.Err() != nil {
		return fmt.Errorf("%w after %d rows", errJournal, len(j.keys))
	}
	return nil
}

func (j *openJournal) decode(rec arrow.RecordBatch, row int, r *Result) {
	for i, c := range j.cols {
		c.get(rec.Column(i), row, r)
	}
}

// fetch reads the rows that keys name, in their order.
func (j *openJournal) fetch(keys []key) (rows []Result, err error) {
	defer guardJournal(&err)
	rows = make([]Result, len(keys))
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(keys[a].batch, keys[b].batch), cmp.Compare(keys[a].index, keys[b].index))
	})
	for len(order) > 0 {
		batch := keys[order[0]].batch
		n := 1
		for n < len(order) && keys[order[n]].batch == batch {
			n++
		}
		if err := j.pick(batch, order[:n], keys, rows); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return rows, nil
}

// pick decodes some rows of one batch, each to its place.
func (j *openJournal) pick(batch uint32, order []int, keys []key, rows []Result) error {
	s := j.spans[batch]
	src := io.MultiReader(
		bytes.NewReader(j.head), io.NewSectionReader(j.src, s.from, s.to-s.from))
	r, err := arrowipc.NewReader(src, maxBody, nil)
	if err != nil {
		return errJournal
	}
	defer r.Release()
	if !r.Next() {
		return errJournal
	}
	rec := r.RecordBatch()
	for _, i := range order {
		j.decode(rec, int(keys[i].index), &rows[i])
	}
	return nil
}

func (j *openJournal) rows() trace.Reader[Result] {
	return &journalReader{j: j, limit: rangeBytes, left: j.keys}
}

// A journalReader hands out a journal's rows in order.
type journalReader struct {
	j     *openJournal
	limit int64 // bytes of rows to have in memory
	left  []key
	ready []Result
}

func (r *journalReader) Read(rows []Result) (int, error) {
	if len(r.ready) == 0 && len(r.left) > 0 {
		n, size := 0, int64(0)
		for n < len(r.left) && size < r.limit {
			size += int64(r.left[n].size)
			n++
		}
		var err error
		if r.ready, err = r.j.fetch(r.left[:n]); err != nil {
			return 0, err
		}
		r.left = r.left[n:]
	}
	n := copy(rows, r.ready)
	clear(r.ready[:n])
	r.ready = r.ready[n:]
	if len(r.ready) == 0 && len(r.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// errJournal stands for every decoding error of the Arrow library.
var (
	errJournal = errors.New("the journal is damaged")
	errHead    = errors.New("the journal ends before its first row")
)

// guardJournal turns a panic of the Arrow library, which some damaged files
// cause, into an error.
func guardJournal(err *error) {
	if recover() != nil {
		*err = errJournal
	}
}

// untilCut lets a journal that was cut off end as one that was closed.
func untilCut(m ipc.MessageReader) ipc.MessageReader { return tailReader{m} }

type tailReader struct{ ipc.MessageReader }

func (t tailReader) Message() (*ipc.Message, error) {
	m, err := t.MessageReader.Message()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, io.EOF
	}
	return m, err
}

type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
