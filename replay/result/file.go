package result

import (
	"errors"
	"fmt"
	"io"
	"os"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// Write writes a results file at path, which appears whole or not at
// all: the rows as Parquet, the run in its metadata.
func Write(path string, run Run, rows trace.Reader[Result]) error {
	return trace.WriteFile(path, trace.TierMode(run.Tier), func(w io.Writer) error { return Encode(w, run, rows) })
}

// Encode writes the bytes of a results file.
func Encode(w io.Writer, run Run, rows trace.Reader[Result]) error {
	run.Schema = Schema
	doc, err := run.encode()
	if err != nil {
		return err
	}
	out := trace.NewRowsWriter(w, resultBytes)
	out.SetMetadata("reprise.schema", Schema)
	out.SetMetadata(runKey, doc)
	if run.Stalls != nil {
		out.SetMetadata(stallsKey, run.Stalls.encode())
	}
	if run.Tier != "" {
		out.SetMetadata("reprise.tier", run.Tier)
	}
	if _, err := trace.Copy(out, rows); err != nil {
		return err
	}
	return out.Close()
}

// Finish turns the journal of a run into a results file at path, and removes it.
func Finish(journal, path string, run Run) error {
	j, err := Open(journal)
	if err != nil {
		return err
	}
	defer j.Close()
	if err := Write(path, run, j.Reader()); err != nil {
		return fmt.Errorf("the results are still in %s: %w", journal, err)
	}
	return os.Remove(journal)
}

// A File is an open results file, or the journal of a run that did not
// finish.
type File struct {
	// Run describes the run. That of a journal is what was known at its
	// beginning, with the requests counted and the early end said.
	Run Run
	// Unfinished says that this is a journal. Its last second may be missing.
	Unfinished bool

	name    string
	src     io.ReaderAt
	size    int64
	close   func() error
	journal *openJournal
	count   int64
	held    []Result
}

// Open opens the results at path, Parquet or a journal as the content
// tells. A damaged file is an error; a journal whose end is missing is not.
func Open(path string) (*File, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r := &File{name: path, src: f, size: fi.Size(), close: f.Close}
	if err := r.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

func (f *File) open() error {
	var magic [4]byte
	if _, err := f.src.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return err
	}
	switch string(magic[:]) {
	case "PAR1":
		return f.openParquet()
	case "\xff\xff\xff\xff":
		return f.openJournal()
	}
	return errors.New("it is neither Parquet nor a journal")
}

func (f *File) openParquet() error {
	r, err := trace.NewRowsReader[Result](f.src, f.size)
	if err != nil {
		return fmt.Errorf("not results of a replay: %w", err)
	}
	f.count = r.Rows()
	doc, _ := r.Metadata(runKey)
	if f.Run, err = decodeRun(doc); err != nil {
		return err
	}
	f.Run.Stalls = nil
	if doc, ok := r.Metadata(stallsKey); ok {
		f.Run.Stalls, err = decodeStalls(doc)
	}
	return err
}

func (f *File) openJournal() (err error) {
	f.Unfinished = true
	if f.journal, err = readJournal(f.src, f.size); err != nil {
		return err
	}
	f.Run, f.count = f.journal.run, int64(len(f.journal.keys))
	f.Run.Stalls = f.journal.stalls
	f.Run.Requests, f.Run.Unprepared = f.journal.sent, f.count-f.journal.sent
	f.Run.EndedEarly = "it did not finish, and this is its journal"
	return nil
}

// Held makes a file of rows in memory, in the order of rounds and rows, such as those that
// were read from another tool's results. name stands in the errors of its readers.
func Held(name string, run Run, rows []Result) *File {
	run.Schema = Schema
	return &File{Run: run, name: name, held: rows, count: int64(len(rows)), close: func() error { return nil }}
}

// Rows returns the number of rows.
func (f *File) Rows() int64 { return f.count }

// Reader reads the rows from the beginning, in the order of rounds and rows; it may be called any
// number of times.
func (f *File) Reader() trace.Reader[Result] {
	if f.journal != nil {
		return &namedReader{name: f.name, r: f.journal.rows()}
	}
	if f.src == nil {
		return &namedReader{name: f.name, r: &trace.SliceReader[Result]{Rows: f.held}}
	}
	r, err := trace.NewRowsReader[Result](f.src, f.size)
	return &namedReader{name: f.name, r: r, err: err}
}

// Close closes the file; its readers end with it.
func (f *File) Close() error {
	return f.close()
}

// A namedReader puts the file's name and the row before an error.
type namedReader struct {
	name string
	r    trace.Reader[Result]
	err  error
	row  int64
}

// Only leaves all other columns than those unread where the rows are in Parquet, which is
// to be said before the first row is read. Else all are read.
func (n *namedReader) Only(columns ...string) {
	if r, ok := n.r.(*trace.RowsReader[Result]); ok && n.err == nil {
		r.Only(columns...)
	}
}

func (n *namedReader) Read(rows []Result) (int, error) {
	var got int
	err := n.err
	if err == nil {
		got, err = n.r.Read(rows)
		n.row += int64(got)
	}
	for i := range rows[:got] {
		rows[i].recheck()
	}
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: after %d rows: %w", n.name, n.row, err)
	}
	return got, err
}
