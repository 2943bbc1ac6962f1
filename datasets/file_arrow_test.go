package datasets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"reprise/datasets/internal/row"
	"reprise/trace/arrowipc"
)

// arrowLog writes rows of Arrow IPC in two batches, as a stream or as a file.
func arrowLog(t testing.TB, asFile bool, o ...ipc.Option) []byte {
	t.Helper()
	usage := arrow.StructOf(arrow.Field{Name: "prompt_tokens", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "cost", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "at", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "model", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
		{Name: "usage", Type: usage},
	}, nil)
	var out bytes.Buffer
	o = append(o, ipc.WithSchema(schema))
	var w interface {
		Write(arrow.RecordBatch) error
		Close() error
	} = ipc.NewWriter(&out, o...)
	if asFile {
		out.Reset()
		var err error
		if w, err = ipc.NewFileWriter(&out, o...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(
			`[{"at":"2026-01-02T15:04:05.123456Z","model":"zqx","usage":{"prompt_tokens":7,"cost":null}},`+
				`{"at":"2026-01-02T15:04:06Z","model":"a","usage":{"prompt_tokens":8,"cost":0.5}}]`))
		if err == nil {
			err = w.Write(batch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Arrow IPC and Feather are read as the JSON that they stand for.
func TestArrow(t *testing.T) {
	m := Mapping{"time": {"at"}, "input_tokens": {"usage.prompt_tokens"}, "model": {"model"}}
	stream := arrowLog(t, false)
	for name, in := range map[string][]byte{
		"stream": stream, "file": arrowLog(t, true), "LZ4": arrowLog(t, true, ipc.WithLZ4()), "zstd": arrowLog(t, true, ipc.WithZstd()),
		"in gzip": pack(t, "gzip", string(stream)), "in zstd": pack(t, "zstd", string(stream)),
	} {
		all, info, err := read(bytes.NewReader(in), Options{Map: m})
		if err != nil || len(all) != 4 {
			t.Errorf("%s: %d entries, %+v, %v", name, len(all), info, err)
			continue
		}
		if got := fmt.Sprint(all[2].Time.UTC(), *all[2].InputTokens, all[2].Model.Reveal()); got != "2026-01-02 15:04:05.123456 +0000 UTC 7zqx" {
			t.Errorf("%s: %s", name, got)
		}
	}
	_, _, err := read(bytes.NewReader(stream[:len(stream)-200]), Options{Map: m})
	if err == nil || !strings.HasPrefix(err.Error(), "log:3:1: Arrow stream: ") {
		t.Error(err)
	}
}

// What is no log is refused with advice.
func TestSpreadsheets(t *testing.T) {
	for in, want := range map[string]string{
		"PK\x03\x04\x14\x00\x06\x00[Content_Types].xml xl/workbook.xml": "log:1:1: an Excel workbook (XLSX): spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: " +
			`soffice --headless --convert-to csv FILE, or: duckdb -c "COPY (FROM 'FILE.xlsx') TO 'FILE.csv'"`,
		"PK\x03\x04\x14\x00\x00\x00mimetypeapplication/vnd.oasis.opendocument.spreadsheet": "log:1:1: an OpenDocument spreadsheet (ODS): spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: " +
			"soffice --headless --convert-to csv FILE",
		oldExcelMagic + "\x00\x00": "log:1:1: an Excel workbook (XLS): spreadsheets are not read. Save the sheet as CSV (UTF-8) and import that, or run: " +
			"soffice --headless --convert-to csv FILE",
		"PK\x03\x04\x14\x00\x00\x00log.csv": "log:1:1: zip: archives of this kind are not read: unpack it first",
		"FEA1\x00\x00\x00\x00\x00":          "log:1:1: Feather 1: only its second version is read, which is Arrow IPC: write it with pyarrow.feather.write_feather, or as Parquet",
		arrowFileMagic + "zqx":              "log:1:1: Arrow: unexpected end of file: it is cut off",
	} {
		if _, _, err := read(strings.NewReader(in), Options{}); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", in, err, want)
		}
	}
}

// A damaged file is an error, and does not end the process for want of memory: lengths in
// its metadata are its own.
func TestDamagedArrow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, seed := range [][]byte{arrowLog(t, false), arrowLog(t, true)[8:]} {
		for range 1000 {
			in := bytes.Clone(seed)
			for range 1 + random.IntN(6) {
				in[random.IntN(len(in))] = byte(random.Uint32())
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if r, err := newArrowReader(bufio.NewReader(bytes.NewReader(in)), 1<<20); err == nil {
				io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			}
			if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 32<<20 {
				t.Errorf("%d bytes were allocated", after.TotalAlloc-before.TotalAlloc)
			}
		}
	}
}

// Whatever the bytes are, reading Arrow ends, with lines of JSON or an error.
func FuzzArrow(f *testing.F) {
	f.Add(arrowLog(f, false))
	f.Add(arrowLog(f, true, ipc.WithLZ4()))
	small, err := newArrowReader(bufio.NewReader(bytes.NewReader(arrowLog(f, false))), 1)
	if err == nil {
		_, err = io.ReadAll(small)
	}
	if err == nil || !strings.HasSuffix(err.Error(), arrowipc.ErrBatch.Error()) {
		f.Errorf("a batch that is too large: %v", err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := newArrowReader(bufio.NewReader(bytes.NewReader(in)), 1<<20)
		if err != nil {
			return
		}
		out, err := io.ReadAll(io.LimitReader(r, 1<<20))
		if err != nil && strings.HasSuffix(err.Error(), arrowipc.ErrBatch.Error()) {
			return
		}
		lines := bytes.SplitAfter(out, []byte("\n"))
		for _, line := range lines[:len(lines)-1] {
			if _, _, ok := row.DecodeJSON(line); !ok {
				t.Fatalf("%q", line)
			}
		}
	})
}

// A batch as large as pandas writes of long chats is read where as many bytes came; where a few packed
// bytes stand for it, it is refused.
func TestLargeBatchOfArrow(t *testing.T) {
	if os.Getenv("REPRISE_TEST_LONG") == "" {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	for range 150 {
		texts.Append(strings.Repeat("a", 1<<20))
	}
	column := texts.NewArray()
	schema := arrow.NewSchema([]arrow.Field{{Name: "text", Type: column.DataType()}}, nil)
	var plain, packed bytes.Buffer
	w := ipc.NewWriter(&plain, ipc.WithSchema(schema))
	if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{column}, 150)); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{"plain": {plain.Bytes(), ""}, "packed": {packed.Bytes(), arrowipc.ErrBatch.Error()}} {
		n, err := io.Copy(io.Discard, &archiveReader{in: countingReader{r: bytes.NewReader(c.file)}})
		if said := fmt.Sprint(err); c.want == "" && (err != nil || n < 150<<20) || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}
