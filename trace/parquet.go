package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
	"github.com/parquet-go/parquet-go/format"

	"reprise/trace/objectstore"
)

// groupBytes bounds the memory of a writer: a row group is flushed when its
// rows are about this large. One hundred tokens a block and a million-token
// prompt stay far below it.
const groupBytes = 32 << 20

// WriterOptions are the settings of every Parquet file that Reprise writes. No
// page bounds and no statistics, since they repeat values in clear where a
// reader of the columns would not look for them; a constant creator; zstd.
func WriterOptions() []parquet.WriterOption {
	return []parquet.WriterOption{
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}),
		parquet.PageBufferSize(1 << 20),
		parquet.DataPageStatistics(false),
		parquet.CreatedBy("reprise", "1", "trace"),
	}
}

// SkipBounds is a writer option for each leaf column of T that keeps its
// minimum and maximum out of the file.
func SkipBounds[T any]() []parquet.WriterOption {
	var opts []parquet.WriterOption
	for _, path := range parquet.SchemaOf(new(T)).Columns() {
		opts = append(opts, parquet.SkipPageBounds(path...))
	}
	return opts
}

// RowsWriter writes rows of any text-free type to Parquet with the settings of
// [WriterOptions], in bounded memory.
type RowsWriter[T TextFree] struct {
	w       *columnWriter[T]
	size    func(*T) int64
	pending int64
}

// NewRowsWriter begins a Parquet file on w. size estimates the bytes of a row
// and bounds the memory; nil means 256.
func NewRowsWriter[T TextFree](w io.Writer, size func(*T) int64) *RowsWriter[T] {
	return newRowsWriter(w, size, zstd.SpeedDefault)
}

func newRowsWriter[T TextFree](w io.Writer, size func(*T) int64, level zstd.Level) *RowsWriter[T] {
	if size == nil {
		size = func(*T) int64 { return 256 }
	}
	return &RowsWriter[T]{w: newColumnWriter[T](w, &zstd.Codec{Level: level}), size: size}
}

// Write implements [Writer].
func (w *RowsWriter[T]) Write(rows []T) (int, error) {
	size := func(i int) int64 { return w.size(&rows[i]) }
	err := w.write(len(rows), size, func(offset uintptr) (unsafe.Pointer, uintptr) {
		return unsafe.Add(unsafe.Pointer(unsafe.SliceData(rows)), offset), unsafe.Sizeof(rows[0])
	})
	if err != nil {
		return 0, err
	}
	return len(rows), nil
}

// write writes n rows, whose fields are where [columnWriter.add] takes them.
func (w *RowsWriter[T]) write(n int, size func(int) int64, at func(offset uintptr) (unsafe.Pointer, uintptr)) error {
	for start := 0; start < n; {
		end := start
		for end < n && w.pending < groupBytes {
			w.pending += size(end)
			end++
		}
		if err := w.w.add(start, end, at); err != nil {
			return err
		}
		start = end
		if w.pending >= groupBytes {
			w.pending = 0
			if err := w.w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetMetadata sets one key of the file's key-value metadata; it may be called
// until Close.
func (w *RowsWriter[T]) SetMetadata(key, value string) { w.w.meta[key] = value }

// Close writes the footer. It does not close the underlying writer.
func (w *RowsWriter[T]) Close() error { return w.w.close() }

// RowsReader reads rows of type T from Parquet. A file that does not decode is
// an error, never a panic.
type RowsReader[T TextFree] struct{ columns rowSource[T] }

// NewRowsReader reads size bytes of r. The columns of T must be in the file
// with their types; other columns are ignored.
func NewRowsReader[T TextFree](r io.ReaderAt, size int64) (*RowsReader[T], error) {
	columns, err := openColumns[T](r, size)
	if err != nil {
		return nil, err
	}
	return &RowsReader[T]{columns}, nil
}

func openColumns[T TextFree](r io.ReaderAt, size int64) (*columnReader[T], error) {
	f, err := OpenParquet(r, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return newColumnReader[T](f)
}

// hasRows says why a file has no rows of a type.
func hasRows[T TextFree](f *parquet.File) error {
	if schema, _ := f.Lookup(metaPrefix + "schema"); schema == RawSchema {
		return ErrRaw
	}
	var added []string
	if g, ok := any(new(T)).(Grown); ok {
		added = g.AddedColumns()
	}
	return sameColumns(f.Schema(), parquet.SchemaOf(new(T)), added)
}

// OpenParquet reads the footer of size bytes of r, whoever wrote them. What would
// make the library take memory without bound is refused before it can: a footer
// whose stated length exceeds the file's, compression by LZ4, and pages beyond their bounds,
// which are [ErrPage] when they are read. Errors quote
// nothing of the file; a file without a footer's end is [ErrNoFooter].
func OpenParquet(r io.ReaderAt, size int64, options ...parquet.FileOption) (f *parquet.File, err error) {
	defer guard(&err)
	// The smallest file is the magic, a footer's length and the magic again.
	end := make([]byte, 8)
	if size < 12 {
		return nil, ErrNoFooter
	}
	if n, err := r.ReadAt(end, size-8); n < len(end) && err != nil || string(end[4:]) != parquetMagic {
		return nil, ErrNoFooter
	}
	if int64(binary.LittleEndian.Uint32(end)) > size-12 {
		return nil, errBroken
	}
	if err := checkFooter(r, size, binary.LittleEndian.Uint32(end)); err != nil {
		return nil, err
	}
	pages := &checkedFile{ReaderAt: r}
	if f, err = parquet.OpenFile(pages, size, options...); err != nil {
		return nil, errBroken
	}
	if hasLZ4(f) {
		return nil, ErrLZ4
	}
	if err := pages.expect(f.Metadata()); err != nil {
		return nil, err
	}
	return f, nil
}

const parquetMagic = "PAR1"

// ErrNoFooter is the error for a file that ends too early, or that is not Parquet.
var ErrNoFooter = errors.New("it is not a whole Parquet file")

// errBroken stands for every decoding error of the Parquet library: its own
// words may quote values of the file.
var errBroken = errors.New("it is not a whole Parquet file")

// ErrLZ4 refuses a compression that this project's files do not have. The
// library doubles its buffer for as long as a block does not decode: one wrong bit
// in the name of a file's compression, and it takes all memory there is.
var ErrLZ4 = errors.New("it is compressed by LZ4, or damaged: write it with zstd or snappy")

func hasLZ4(f *parquet.File) bool {
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			if c.MetaData.Codec == format.Lz4Raw {
				return true
			}
		}
	}
	return false
}

// guard turns a panic of the Parquet library, which some broken files cause,
// into an error.
func guard(err *error) {
	if recover() != nil {
		*err = errBroken
	}
}

// addedColumns are those of a trace that files of earlier versions lack.
var addedColumns = []string{"length_source", "reuse_source", "thread"}

// A Grown row type has columns that files of earlier versions lack, which are then null.
type Grown interface{ AddedColumns() []string }

// AddedColumns implements [Grown].
func (Request) AddedColumns() []string { return addedColumns }

// sameColumns says which column of want is missing from got, or of another type. Those of
// added may be missing, and a column that may be null by now may be without nulls in got.
func sameColumns(got, want *parquet.Schema, added []string) error {
	for _, path := range want.Columns() {
		w, _ := want.Lookup(path...)
		g, ok := got.Lookup(path...)
		if !ok && slices.Contains(added, path[0]) {
			continue
		}
		if !ok {
			return fmt.Errorf("it has no column %q", path[0])
		}
		nulls := g.MaxDefinitionLevel == w.MaxDefinitionLevel ||
			g.MaxDefinitionLevel == 0 && w.Node.Optional() && w.Node.Leaf()
		if g.Node.Type().Kind() != w.Node.Type().Kind() || g.MaxRepetitionLevel != w.MaxRepetitionLevel || !nulls {
			return fmt.Errorf("its column %q has the wrong type", path[0])
		}
	}
	return nil
}

// Read implements [Reader]. Rows may be kept.
func (r *RowsReader[T]) Read(rows []T) (int, error) { return r.columns.Read(rows) }

// Only leaves all other columns than those unread, which is to be said before the
// first row is read.
func (r *RowsReader[T]) Only(columns ...string) { r.columns.only(columns) }

// Rows returns the number of rows.
func (r *RowsReader[T]) Rows() int64 { return r.columns.rows() }

// Metadata looks up a key of the file's key-value metadata.
func (r *RowsReader[T]) Metadata(key string) (string, bool) { return r.columns.lookup(key) }

// A RequestWriter writes a trace file and its digest.
type RequestWriter struct {
	rows   *RowsWriter[Request]
	digest *Digest
	last   int64
	n      int64
}

// NewRequestWriter begins a trace on w.
func NewRequestWriter(w io.Writer) *RequestWriter {
	return &RequestWriter{rows: newRequestRows(w), digest: NewDigest()}
}

// newRequestRows begins a file of rows of a trace.
//
// What is left of block ids after their differences compresses at the fastest
// level about as well as at the usual one, in two thirds of the time: see
// [Request] for the columns that keep the usual one.
func newRequestRows(w io.Writer) *RowsWriter[Request] {
	memory := func(r *Request) int64 { // of the row, what its optional columns point to, and its lists
		return requestBytes + 8*int64(len(r.Blocks)+len(r.OutputBlocks)+len(r.Parents))
	}
	return newRowsWriter(w, memory, zstd.SpeedFastest)
}

// requestBytes are those of a row in memory, and of what its optional columns point to.
const requestBytes = 640

// Write implements [Writer]. Rows must come in order of arrival.
func (w *RequestWriter) Write(rows []Request) (int, error) {
	for i := range rows {
		if err := w.follows(int64(i), rows[i].ArrivalNS); err != nil {
			return 0, err
		}
	}
	w.digest.Add(rows)
	n, err := w.rows.Write(rows)
	w.n += int64(n)
	return n, err
}

// WritePlain implements [PlainWriter].
func (w *RequestWriter) WritePlain(p *PlainRows) error {
	for i, arrival := range p.ArrivalNS {
		if err := w.follows(int64(i), arrival); err != nil {
			return err
		}
	}
	w.digest.AddPlain(p)
	w.n += int64(p.Len())
	return w.rows.write(p.Len(), func(i int) int64 { return requestBytes + 8*int64(len(p.Blocks[i])) }, p.column)
}

// follows checks the arrival of row i of those that are to be written.
func (w *RequestWriter) follows(i, arrival int64) error {
	if arrival < w.last {
		return fmt.Errorf("row %d arrives before row %d: a trace must be sorted by arrival", w.n+i, w.n+i-1)
	}
	w.last = arrival
	return nil
}

// Digest returns the digest of the rows written so far.
func (w *RequestWriter) Digest() string { return w.digest.Sum() }

// Rows returns how many rows were written.
func (w *RequestWriter) Rows() int64 { return w.n }

// Close writes meta, with the schema and the digest set, and the footer. Rows
// after the end of a declared capture are an error.
func (w *RequestWriter) Close(meta Meta) error {
	if err := meta.holds(w.n, w.last); err != nil {
		return err
	}
	meta.Schema, meta.Digest = Schema, w.Digest()
	meta.Each(w.rows.SetMetadata)
	return w.rows.Close()
}

// holds refuses rows of which the last arrives after the end of a declared capture.
func (m *Meta) holds(rows, last int64) error {
	if c := m.Capture; c.Declared() && rows > 0 && last >= int64(c.Length()) {
		return fmt.Errorf("row %d arrives %v after the declared end of the capture", rows-1,
			time.Duration(last)-c.Length())
	}
	return nil
}

// Create writes a trace file at path: f writes the rows and returns the
// metadata. The file appears only when all of it succeeded, and is its owner's
// alone unless it was made of no source, see [Meta.Mode].
func Create(path string, f func(Writer[Request]) (Meta, error)) error {
	out, err := CreateFile(path, 0o600)
	if err != nil {
		return err
	}
	defer out.Abort()
	w := NewRequestWriter(out)
	meta, err := f(w)
	if err != nil {
		return err
	}
	if err := w.Close(meta); err != nil {
		return err
	}
	if meta.Mode() == shared {
		if err := out.share(); err != nil {
			return err
		}
	}
	return out.Commit()
}

// A Trace is an open trace: a file, or the folder of a partitioned one.
type Trace struct {
	Meta Meta
	file objectstore.File
	size int64
	set  *partitionSet // in place of file
	name string
}

// Name is the path of the trace, or what stands for it in errors.
func (t *Trace) Name() string { return t.name }

// Files are the paths of the files that hold a trace that [Open] opened.
func (t *Trace) Files() []string {
	if t.set == nil {
		return []string{t.name}
	}
	files := []string{t.set.path(ManifestName)}
	for _, p := range t.set.manifest.Partitions {
		files = append(files, t.set.path(p.Name))
	}
	return files
}

// Open opens the trace at path, a file or the folder of a partitioned trace, and checks that
// it is one. Both are read alike: the same rows, row numbers, metadata and digest.
func Open(path string) (*Trace, error) {
	if info, err := objectstore.Stat(path); err == nil && info.IsDir() {
		return openPartitioned(path)
	}
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, err
	}
	return openTrace(path, f)
}

// Spool copies a piped trace to a private file, since Parquet's footer comes
// last, and opens it. name stands for it in errors.
func Spool(name string, r io.Reader) (*Trace, error) {
	f, err := TempFile("")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, r); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return openTrace(name, f)
}

// Private makes a trace in a private file, without a name where the system allows
// that, and opens it: a step on the way to another trace. It goes with its Close.
func Private(dir string, f func(Writer[Request]) (Meta, error)) (*Trace, error) {
	file, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	w := NewRequestWriter(file)
	meta, err := f(w)
	if err == nil {
		err = w.Close(meta)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return openTrace("private spill", file)
}

func openTrace(name string, f objectstore.File) (*Trace, error) {
	t := &Trace{file: f, name: name}
	fi, err := f.Stat()
	if err == nil {
		t.size = fi.Size()
		err = t.check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return t, nil
}

// check reads the file's metadata before it looks for columns: a model
// is not a trace with columns missing.
func (t *Trace) check() error {
	f, err := OpenParquet(t.file, t.size, parquet.SkipBloomFilters(true))
	if err != nil {
		return err
	}
	if t.Meta, err = parseMeta(f.Lookup); err != nil {
		return err
	}
	_, err = newColumnReader[Request](f)
	return err
}

// Reader reads the rows from the beginning; it may be called any number of
// times. Rows out of order and impossible values are errors.
func (t *Trace) Reader() (*RequestReader, error) {
	columns, err := sourceOf[Request](t)
	if err != nil {
		return nil, err
	}
	return &RequestReader{columns: columns, name: t.name}, nil
}

// Columns reads the rows of a trace as T, whose fields are some of its columns:
// those alone are decoded. The rows are not checked.
func Columns[T TextFree](t *Trace) (*RowsReader[T], error) {
	columns, err := sourceOf[T](t)
	if err != nil {
		return nil, err
	}
	return &RowsReader[T]{columns}, nil
}

func sourceOf[T TextFree](t *Trace) (rowSource[T], error) {
	if t.set != nil {
		return &partitionReader[T]{set: t.set}, nil
	}
	columns, err := openColumns[T](t.file, t.size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return columns, nil
}

// Close closes the file; its readers end with it.
func (t *Trace) Close() error {
	if t.set != nil {
		return t.set.close()
	}
	return t.file.Close()
}

// A RequestReader reads and checks the rows of a trace.
type RequestReader struct {
	columns rowSource[Request]
	name    string
	row     int64
	last    int64
}

// Rows returns the number of rows.
func (r *RequestReader) Rows() int64 { return r.columns.rows() }

// Only leaves all other columns than those unread, which is to be said before the
// first row is read.
func (r *RequestReader) Only(columns ...string) { r.columns.only(columns) }

// Read implements [Reader].
func (r *RequestReader) Read(rows []Request) (int, error) {
	n, err := r.columns.Read(rows)
	for i := range rows[:n] {
		if reason := r.check(&rows[i]); reason != "" {
			return i, fmt.Errorf("%s: row %d: %s", r.at(), r.row, reason)
		}
		r.row++
	}
	if err != nil && err != io.EOF {
		return n, fmt.Errorf("%s: after row %d: %w", r.name, r.row, err)
	}
	return n, err
}

// at names the file that has the next row.
func (r *RequestReader) at() string {
	if p := r.columns.holding(r.row); p != "" {
		return filepath.Join(r.name, p)
	}
	return r.name
}

func (r *RequestReader) check(q *Request) string {
	switch {
	case q.ArrivalNS < r.last:
		return "it arrives before the row above it"
	case q.InputTokens < 0 || q.OutputOr(0) < 0:
		return "a token count is negative"
	}
	for _, p := range q.Parents {
		if p < 0 || p >= r.Rows() || p == r.row {
			return "a parent is not a row of this file"
		}
	}
	r.last = q.ArrivalNS
	return ""
}
