package datasets

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"reprise/datasets/internal/input"
	"reprise/trace"
)

// pack compresses parts, each as a member of its own.
func pack(t testing.TB, format string, parts ...string) []byte {
	t.Helper()
	var buf bytes.Buffer
	for _, p := range parts {
		var w io.WriteCloser = gzip.NewWriter(&buf)
		if format == "zstd" {
			var err error
			if w, err = zstd.NewWriter(&buf); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(w, p); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

// What is compressed reads as what is not, also when it comes a byte at a time
// or in several members.
func TestCompressed(t *testing.T) {
	plain := string(mooncakeLog())
	want, _ := mustRead(t, plain, Options{})
	for _, format := range []string{"gzip", "zstd"} {
		b := pack(t, format, plain[:100_001], "", plain[100_001:])
		for _, r := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b))} {
			s, err := Open(r, Options{})
			if err != nil {
				t.Fatal(err)
			}
			n, batch := 0, make([]trace.Entry, 100)
			for err == nil {
				var k int
				k, err = s.Read(batch)
				for i := range batch[:k] {
					if summary(&batch[i]) != summary(&want[n]) {
						t.Fatalf("%s: entry %d is %s", format, n, summary(&batch[i]))
					}
					n++
				}
			}
			if err != io.EOF || n != len(want) {
				t.Errorf("%s: %d of %d entries, %v", format, n, len(want), err)
			}
		}
	}
}

// An archive that is cut off anywhere is an unexpected end, with its place.
func TestCutArchive(t *testing.T) {
	plain := string(mooncakeLog()[:40_000])
	plain = plain[:strings.LastIndexByte(plain, '\n')+1]
	for _, format := range []string{"gzip", "zstd"} {
		b := pack(t, format, plain)
		for k := 1; k < len(b); k += 1 + k/9 {
			if k < 4 { // not enough to tell an archive by
				continue
			}
			s, err := Open(bytes.NewReader(b[:k]), Options{})
			batch := make([]trace.Entry, 1000)
			for err == nil {
				_, err = s.Read(batch)
			}
			var at *trace.SourceError
			if !errors.As(err, &at) || !errors.Is(err, io.ErrUnexpectedEOF) || at.File != "log" || at.Line < 1 {
				t.Fatalf("%s cut at %d of %d: %v", format, k, len(b), err)
			}
		}
	}
}

func TestDamagedArchive(t *testing.T) {
	for _, format := range []string{"gzip", "zstd"} {
		b := pack(t, format, string(mooncakeLog()[:40_000]))
		for i := 12; i < len(b)-1; i += 97 {
			c := bytes.Clone(b)
			c[i] ^= 0x55
			got, err := io.ReadAll(decompress(bytes.NewReader(c)))
			if err == nil && !bytes.Equal(got, mooncakeLog()[:40_000]) {
				t.Errorf("%s: a changed byte %d went unseen", format, i)
			}
		}
	}
	for _, other := range []string{"PK\x03\x04rest", "\xfd7zXZ\x00rest", "BZh91AY"} {
		if _, err := Open(strings.NewReader(other), Options{}); err == nil || !strings.Contains(err.Error(), "unpack it first") {
			t.Errorf("%q: %v", other[:2], err)
		}
	}
	broken := errors.New("the disk is gone")
	b := pack(t, "gzip", string(mooncakeLog()))
	if _, err := io.ReadAll(decompress(io.MultiReader(bytes.NewReader(b[:1000]), iotest.ErrReader(broken)))); !errors.Is(err, broken) {
		t.Errorf("an error of the file became %v", err)
	}
}

// zeros yields n zero bytes.
func zeros(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What grows more than a thousandfold is refused, unless it is small.
func TestBomb(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		ok    bool
	}{{60 << 20, true}, {200 << 20, false}} {
		var buf bytes.Buffer
		w, err := zstd.NewWriter(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, zeros(c.bytes)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, decompress(&buf))
		if (err == nil) != c.ok || n > c.bytes || !c.ok && n > 80<<20 {
			t.Errorf("%d MiB: %d bytes came out, %v", c.bytes>>20, n, err)
		}
	}
}

// No input makes the reader panic, and an error comes again.
func FuzzDecompress(f *testing.F) {
	for _, format := range []string{"gzip", "zstd"} {
		b := pack(f, format, "abc", "defg")
		f.Add(b)
		f.Add(b[:len(b)-3])
	}
	f.Add([]byte("plain"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := decompress(bytes.NewReader(b))
		_, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
		if err == nil {
			return
		}
		if n, again := r.Read(make([]byte, 1)); n != 0 || again == nil || again.Error() != err.Error() {
			t.Errorf("%v, and then %d bytes and %v", err, n, again)
		}
	})
}

// decompress reads what is in a file.
func decompress(r io.Reader) io.Reader {
	file := File{Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
	in, err := input.Plain(file).Open()
	if err != nil {
		return iotest.ErrReader(err)
	}
	return in
}

// What is no log is refused with advice.
func TestSpreadsheets(t *testing.T) {
	for in, want := range map[string]string{
		"PK\x03\x04\x14\x00\x06\x00[Content_Types].xml xl/workbook.xml": "log:1:1: an Excel workbook (XLSX): " +
			"spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: " +
			`soffice --headless --convert-to csv FILE, or: duckdb -c "COPY (FROM 'FILE.xlsx') TO 'FILE.csv'"`,
		"PK\x03\x04\x14\x00\x00\x00mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "log:1:1: an OpenDocument spreadsheet (ODS): spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: " +
			"soffice --headless --convert-to csv FILE",
		"SQLite format 3\x00\x10\x00": "log:1:1: a SQLite database: databases are not read: import the table that " +
			"has the calls, with sqlite3 -header -csv FILE 'SELECT * FROM TABLE' > FILE.csv; sqlite3 FILE .tables " +
			"lists the tables",
		"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00\x00": "log:1:1: an Excel workbook (XLS): spreadsheets are not read. " +
			"Save the sheet as CSV (UTF-8) and import that, or run: " +
			"soffice --headless --convert-to csv FILE",
		"PK\x03\x04\x14\x00\x00\x00log.csv": "log:1:1: zip: archives of this kind are not read: unpack it first",
		"<!DOCTYPE html><html>":             "log:1:1: a web page: such as of a login: fetch the log itself",
		"FEA1\x00\x00\x00\x00\x00": "log:1:1: Feather 1: only its second version is read, which is Arrow " +
			"IPC: write it with pyarrow.feather.write_feather, or as Parquet",
		"ARROW1\x00\x00zqx": "log:1:1: Arrow: unexpected end of file: it is cut off",
	} {
		if _, _, err := read(strings.NewReader(in), Options{}); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", in, err, want)
		}
	}
}
