// Package input gives the bytes of files as text: members of archives, the rows of Arrow as lines of
// JSON, and the lines of programs in the logs of containers.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"reprise/datasets/internal/record"
	"reprise/trace/arrowipc"
	"reprise/trace/nonfinite"
	"reprise/trace/objectstore"
)

// A File is one file of a source. Open may be called more than once. It is called
// once only for a source of a single file, such as stdin, in a format that is not
// made of several files.
type File struct {
	Name string // for errors and for formats that are told by names
	Open func() (io.ReadCloser, error)
}

// Expand turns a path into files: a file into itself, a directory into the
// files in it, and a pattern of package path/filepath into those that it
// matches. Directories and patterns give files in lexical order, without hidden
// ones. What is in directories below is left out, but for those in which agents keep
// their sessions: all in a directory that has no file of its own or, like settings, none
// of a known format; and one that is named as a file beside it or in it, without the end
// of that name. known tells files of a known format, or those of one that joins several files.
func Expand(path string, known func(file File, joined bool) bool) ([]File, error) {
	info, err := objectstore.Stat(path)
	pattern := false
	var paths []string
	switch {
	case err == nil && !info.IsDir():
		return []File{fileAt(path)}, nil
	case err == nil:
		entries, err := objectstore.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			paths = append(paths, objectstore.Join(path, e.Name()))
		}
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?["):
		pattern = true
		if paths, err = objectstore.Glob(path); err != nil {
			return nil, fmt.Errorf("%s: not a valid pattern: %w", path, err)
		}
	default:
		return nil, err
	}
	var files []File
	var folders []string
	for _, p := range paths {
		hidden := strings.HasPrefix(filepath.Base(p), ".") && !(pattern && strings.HasPrefix(filepath.Base(path), "."))
		switch info, err := objectstore.Stat(p); {
		case err != nil || hidden:
		case info.Mode().IsRegular():
			files = append(files, fileAt(p))
		case info.IsDir():
			folders = append(folders, p)
		}
	}
	if !pattern {
		below, err := filesBelow(folders, files)
		if err != nil {
			return nil, err
		}
		if len(below) == 0 && len(folders) > 0 &&
			!slices.ContainsFunc(files, func(f File) bool { return known(f, false) }) {
			if below, err = filesBelow(folders, nil); err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(below, func(f File) bool { return known(f, true) }) {
				below = nil
			}
		}
		files = append(files, below...)
	}
	if len(files) == 0 && pattern {
		return nil, fmt.Errorf("%s: no file matches", path)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory has no files except hidden ones", path)
	}
	return files, nil
}

// filesBelow are the files in folders and below them: of all folders where there is no
// file beside them, else of those that are named as one.
func filesBelow(folders []string, beside []File) (files []File, err error) {
	for _, folder := range folders {
		named := slices.ContainsFunc(beside, func(f File) bool { return strings.HasPrefix(f.Name, folder+".") })
		inside, _ := objectstore.ReadDir(folder) // an error shows below
		for _, e := range inside {
			named = named || e.Type().IsRegular() && strings.HasPrefix(e.Name(), filepath.Base(folder)+".")
		}
		if len(beside) > 0 && !named {
			continue
		}
		err := objectstore.WalkDir(folder, func(p string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(e.Name(), ".") && e.IsDir():
				return fs.SkipDir
			case e.Type().IsRegular() && !strings.HasPrefix(e.Name(), "."):
				files = append(files, fileAt(p))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func fileAt(path string) File {
	return File{Name: path, Open: func() (io.ReadCloser, error) { return objectstore.Open(path) }}
}

// Head is what a file begins with, see [Begin].
func Head(f File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	_, head, err := Begin(r)
	return head, err
}

// Begin returns what r begins with, without a mark. UTF-16 with a mark, as spreadsheets
// and PowerShell write it, becomes UTF-8.
func Begin(r io.Reader) (in *bufio.Reader, head []byte, err error) {
	in = bufio.NewReaderSize(r, record.HeadBytes)
	switch mark, _ := in.Peek(3); {
	case string(mark) == record.ByteOrderMark:
		if _, err := in.Discard(3); err != nil {
			return nil, nil, err
		}
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM)
		in = bufio.NewReaderSize(transform.NewReader(in, utf16.NewDecoder()), record.HeadBytes)
	}
	if head, err = in.Peek(record.HeadBytes); err == io.EOF {
		err = nil
	}
	if record.LooksLikeJSON(head) {
		head, _ = nonfinite.Null(head)
	}
	return in, head, err
}

// Archives are told by their first bytes, whatever their names. What comes out
// of one is bounded: beyond 64 MiB it may not be more than 1,000 times what went
// in, which logs do not reach (gzip itself ends at 1,032), so that a small file
// cannot keep an import busy for ever. Memory is the window of the archive, for
// zstd at most 128 MiB (--long=27), for which a frame has to ask.
const (
	bombBytes = 64 << 20
	bombRatio = 1000
	maxWindow = 128 << 20
)

// archives are the formats that are read, gzip, zstd and Arrow IPC, and those that are
// only known, with what makes a file of them that is read. What is in gzip and zstd may be Arrow, and no more.
var archives = []struct{ name, magic, instead string }{
	{"gzip", "\x1f\x8b", ""}, {"zstd", "\x28\xb5\x2f\xfd", ""}, {"Arrow", arrowFileMagic, ""},
	{"Arrow stream", arrowStreamMagic, ""}, {"zip", "PK\x03\x04", unpackFirst}, {"xz", "\xfd7zXZ\x00", unpackFirst},
	{"bzip2", "BZh", unpackFirst}, {"an Excel workbook (XLS)", oldExcelMagic, asCSV},
	{"Feather 1", oldFeatherMagic, "only its second version is read, which is Arrow IPC: write it with " +
		"pyarrow.feather.write_feather, or as Parquet"},
	{"a SQLite database", sqliteMagic, "databases are not read: import the table that has the calls, with " +
		"sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > FILE.csv; sqlite3 FILE .tables lists the tables"},
	{webPage, "<!doct", notTheLog}, {webPage, "<!DOCT", notTheLog}, {webPage, "<html", notTheLog},
}

const webPage, notTheLog = "a web page", "such as of a login: fetch the log itself"

const sqliteMagic, unpackFirst = "SQLite format 3\x00", "archives of this kind are not read: unpack it first"

// Plain makes a file that yields what is in it, when it is an archive or the log of a container.
func Plain(f File) File {
	return File{Name: f.Name, Open: func() (io.ReadCloser, error) {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		return struct {
			*containerReader
			io.Closer
		}{&containerReader{in: &archiveReader{in: countingReader{r: r}}}, r}, nil
	}}
}

// An archiveReader yields what is in an archive, or its input when that is none.
type archiveReader struct {
	in   countingReader
	out  io.Reader // nil until the first read
	name string    // of the archive's format
	n    int64     // bytes that came out
	err  error
}

// A countingReader counts what is read, and keeps the error of it.
type countingReader struct {
	r   io.Reader
	n   int64
	err error // but for io.EOF
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != io.EOF {
		c.err = err
	}
	return n, err
}

// Read implements io.Reader. An error comes again at each further call.
func (u *archiveReader) Read(p []byte) (int, error) {
	if u.out == nil && u.err == nil {
		u.err = u.begin()
	}
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.out.Read(p)
	u.n += int64(n)
	switch {
	case u.name == "":
		u.err = err
	case u.n > bombBytes && u.n/bombRatio > u.in.n:
		u.err = archiveError{u.name, "its content is more than 1,000 times its size: unpack it first, if that is " +
			"right", nil}
	default:
		u.err = u.fault(err)
	}
	return n, u.err
}

func (u *archiveReader) begin() error {
	return u.open(bufio.NewReaderSize(&u.in, record.HeadBytes))
}

func (u *archiveReader) open(in *bufio.Reader) error {
	u.out = in
	head, err := in.Peek(len(sqliteMagic))
	if err != nil && len(head) == 0 {
		return u.fault(err)
	}
	for _, a := range archives {
		if !bytes.HasPrefix(head, []byte(a.magic)) {
			continue
		}
		batches := arrowipc.MaxPlainBatch
		if u.name != "" {
			batches = arrowipc.MaxBatch
		}
		packed := u.name == "" && (a.name == "gzip" || a.name == "zstd")
		if u.name != "" && a.name != "Arrow" && a.name != "Arrow stream" {
			return nil // in an archive is what is read as it is
		}
		switch u.name = a.name; a.name {
		case "gzip":
			u.out, err = gzip.NewReader(in)
		case "zstd":
			// With a concurrency of 1 it decodes in the goroutine that reads, so that
			// nothing is left running.
			u.out, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxWindow))
		case "Arrow":
			_, _ = in.Discard(len(arrowFileMagic))
			u.out, err = newArrowReader(in, batches)
		case "Arrow stream":
			u.out, err = newArrowReader(in, batches)
		default:
			start, _ := in.Peek(record.HeadBytes)
			if what := workbook(start); a.name == "zip" && what != "" {
				advice := asCSV
				if what == "an Excel workbook (XLSX)" {
					advice += asCSVByDuckDB
				}
				return archiveError{what, advice, nil}
			}
			return archiveError{u.name, a.instead, nil}
		}
		if err == nil && packed {
			return u.open(bufio.NewReaderSize(u.out, record.HeadBytes))
		}
		return u.fault(err)
	}
	return nil
}

// fault returns what an error means for the archive. The library's own words
// are dropped: they may quote the input.
func (u *archiveReader) fault(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case u.in.err != nil:
		return u.in.err // of the file, not of what is in it
	case errors.Is(err, io.ErrUnexpectedEOF):
		return archiveError{u.name, "unexpected end of file: it is cut off", io.ErrUnexpectedEOF}
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return archiveError{u.name, "its window is larger than 128 MiB: unpack it first", nil}
	case strings.Contains(err.Error(), arrowipc.ErrBatch.Error()): // which the reader does not wrap
		return archiveError{u.name, arrowipc.ErrBatch.Error(), nil}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum),
		errors.Is(err, zstd.ErrMagicMismatch), errors.Is(err, zstd.ErrCRCMismatch):
		return archiveError{u.name, "it is damaged, or something else follows it", nil}
	}
	return archiveError{u.name, "it is damaged", nil}
}

// An archiveError is what is wrong with an archive.
type archiveError struct {
	format, reason string
	err            error
}

func (e archiveError) Error() string { return e.format + ": " + e.reason }

func (e archiveError) Unwrap() error { return e.err }
