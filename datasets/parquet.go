package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// parquetMagic begins and ends every Parquet file.
const parquetMagic = "PAR1"

// parquetFormat reads Parquet files of any schema, whoever wrote them. A file
// of a kind that has a format of its own is read as that, unless a mapping says
// otherwise.
//
// The footer of Parquet is its last part, so that the input is spooled to a
// private temporary file first. Columns that are not wanted stay there unread;
// of the others memory holds a page each.
func parquetFormat() Format {
	return Format{
		Name:    "parquet",
		About:   "Parquet with the columns that --map names, or a kind of it that is known: baseten, wildchat, lmsys",
		Example: "PAR1…",
		timed:   true, mapped: true,
		detect: isParquet,
		open:   openParquet,
	}
}

func isParquet(head []byte) bool { return bytes.HasPrefix(head, []byte(parquetMagic)) }

// openParquet reads a Parquet file by the mapping or, without one, in the format
// that its columns show.
func openParquet(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	if !isParquet(head) {
		return nil, refuse(1, 1, "it is not a Parquet file")
	}
	p, err := spoolParquet(in)
	if err != nil {
		return nil, err
	}
	if o.Map != nil {
		return openMappedParquet(p, o.Map, o, s)
	}
	columns := p.columns()
	has := func(name string) bool { return slices.Contains(columns, name) }
	for _, kind := range parquetKinds() {
		if kind.detect(has) {
			s.readAs(formatOf(kind.name), o)
			return kind.open(p, o, s)
		}
	}
	return nil, p.close(usage("the columns of this Parquet file are of no known kind: say where the fields are with --map, such as --map input_tokens=usage.prompt_tokens; targets: %s", targetNames()))
}

// A parquetKind is a format that a Parquet file may be in, told by its columns.
type parquetKind struct {
	name   string
	detect func(has func(column string) bool) bool
	open   func(p *parquetFile, o Options, s *Source) (decoder, error)
}

func parquetKinds() []parquetKind {
	return []parquetKind{
		{"baseten", hasBaseten, openBasetenParquet},
		{"wildchat", hasWildChat, wildChat.openParquet},
		{"lmsys", hasLMSYS, lmsys.openParquet},
	}
}

// openMappedParquet reads the columns of a mapping.
func openMappedParquet(p *parquetFile, m Mapping, o Options, s *Source) (*mappedDecoder, error) {
	m = m.dotted()
	var paths []string
	for _, alternatives := range m {
		paths = append(paths, alternatives...)
	}
	wanted := func(leaf []string) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			return path == leaf[0] || strings.HasPrefix(path, leaf[0]+".")
		})
	}
	in, err := p.rows(wanted)
	if err != nil {
		return nil, p.close(err)
	}
	first, err := p.rows(wanted)
	if err != nil {
		return nil, p.close(err)
	}
	in.owner = true
	p.count(wanted, s.fields)
	d, err := newMappedDecoder(in, &limitedRows{first, 1000}, m, o, s)
	if err != nil {
		return nil, p.close(err)
	}
	return d, nil
}

// limitedRows yields the first rows.
type limitedRows struct {
	rows
	left int
}

func (l *limitedRows) next() (row, error) {
	if l.left--; l.left < 0 {
		return nil, io.EOF
	}
	return l.rows.next()
}

// A parquetFile is a Parquet file in a temporary file that has no name.
type parquetFile struct {
	spool *os.File
	in    *parquet.File
}

const (
	noFooter   = "the Parquet footer is missing"
	badParquet = "the Parquet file is damaged, or uses a feature that is not known here"
)

// spoolParquet copies in to a temporary file and reads the footer. The errors
// of the library are not passed on: they may quote what they stumbled over.
func spoolParquet(in io.Reader) (*parquetFile, error) {
	spool, err := trace.TempFile("")
	if err != nil {
		return nil, broken(1, 1, err)
	}
	p := &parquetFile{spool: spool}
	size, err := io.Copy(spool, in)
	if err != nil {
		return nil, p.close(broken(1, 1, err))
	}
	p.in, err = trace.OpenParquet(spool, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	switch {
	case err == nil:
		if schema, _ := p.in.Lookup("reprise.schema"); schema == trace.RawSchema {
			return nil, p.close(refuse(1, 1, trace.ErrRaw.Error()))
		}
		return p, nil
	case errors.Is(err, trace.ErrNoFooter):
		return nil, p.close(cutOff(1, 1, noFooter))
	case errors.Is(err, trace.ErrLZ4):
		return nil, p.close(refuse(1, 1, err.Error()))
	}
	return nil, p.close(refuse(1, 1, badParquet))
}

// close gives the disk space back and returns err.
func (p *parquetFile) close(err error) error {
	_ = p.spool.Close()
	return err
}

var errParquet = errors.New("the Parquet file does not hold together")

// guard turns a panic of the library, which some damaged files cause, into an
// error.
func guard(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errParquet
		}
	}()
	return f()
}

// columns lists the names of the columns; a nested one is a single column.
func (p *parquetFile) columns() (names []string) {
	for _, c := range p.in.Root().Columns() {
		names = append(names, c.Name())
	}
	return names
}

// count counts the leaves that are not read.
func (p *parquetFile) count(wanted func(leaf []string) bool, fields *fieldCounter) {
	for _, leaf := range p.in.Schema().Columns() {
		if !wanted(leaf) {
			fields.column(strings.Join(leaf, "."))
		}
	}
}

// rows reads the columns of which leaves are wanted, and no others. A leaf is a
// path, with the names that writers give to the inner levels of lists.
func (p *parquetFile) rows(wanted func(leaf []string) bool) (*parquetRows, error) {
	r := &parquetRows{file: p}
	err := guard(func() error {
		r.root = r.node(p.in.Root(), wanted)
		return nil
	})
	if err != nil {
		return nil, refuse(1, 1, badParquet)
	}
	if r.root == nil {
		return nil, refuse(1, 1, "the Parquet file has none of the columns that are asked for")
	}
	r.root.optional, r.root.repeated = false, false // whatever the writer says of it
	r.values = make([][]parquet.Value, len(r.leaves))
	return r, nil
}

// parquetRows yields the rows of a Parquet file. The line of a place is the
// number of the row, from 1.
type parquetRows struct {
	file   *parquetFile
	root   *parquetNode
	leaves []*parquetLeaf
	values [][]parquet.Value // of the current row, for each leaf
	line   int64
	owner  bool // of the file, which it closes when it has no more rows
}

// done closes the file and returns err.
func (r *parquetRows) done(err error) error {
	if r.owner {
		return r.file.close(err)
	}
	return err
}

func (r *parquetRows) next() (row, error) {
	r.line++
	if r.line > r.file.in.NumRows() {
		return nil, r.done(io.EOF)
	}
	current := parquetRow{line: r.line}
	err := guard(func() error {
		for i, leaf := range r.leaves {
			var err error
			if r.values[i], err = leaf.next(); err != nil {
				return err
			}
		}
		v, err := r.root.value(r.values)
		current.root, _ = v.(map[string]any)
		return err
	})
	if err != nil {
		return nil, r.done(refuse(r.line, 1, badParquet))
	}
	return current, nil
}

// A parquetRow is a decoded row.
type parquetRow struct {
	root map[string]any
	line int64
}

func (r parquetRow) value(path string) (any, bool) { return lookup(r.root, path) }

func (r parquetRow) place(string) (line, col int64) { return r.line, 1 }

// cut is false: a file that was cut off has no footer.
func (r parquetRow) cut() bool { return false }
