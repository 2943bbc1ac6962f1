package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"reprise/datasets/internal/row"
	"reprise/trace/arrowipc"
	"reprise/trace/longtest"
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
	longtest.Skip(t)
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
		n, err := io.Copy(io.Discard, (&archiveReader{in: countingReader{r: bytes.NewReader(c.file)}}))
		if said := fmt.Sprint(err); c.want == "" && (err != nil || n < 150<<20) || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// Arrow IPC and Feather are read as the JSON that they stand for.
func TestArrow(t *testing.T) {
	const first = `{"at":"2026-01-02T15:04:05.123456Z","model":"zqx","usage":{"cost":null,"prompt_tokens":7}}` + "\n"
	stream := arrowLog(t, false)
	for name, in := range map[string][]byte{
		"stream": stream, "file": arrowLog(t, true), "LZ4": arrowLog(t, true, ipc.WithLZ4()), "zstd": arrowLog(t,
			true, ipc.WithZstd()),
		"in gzip": gzipped(t, stream),
	} {
		got, err := io.ReadAll(&archiveReader{in: countingReader{r: bytes.NewReader(in)}})
		if lines := strings.SplitAfter(string(got), "\n"); err != nil || len(lines) != 5 || lines[0] != first ||
			lines[2] != first {
			t.Errorf("%s: %q, %v", name, lines, err)
		}
	}
	_, err := io.ReadAll(&archiveReader{in: countingReader{r: bytes.NewReader(stream[:len(stream)-200])}})
	if err == nil || !strings.HasPrefix(err.Error(), "Arrow stream: ") {
		t.Error(err)
	}
}

// gzipped packs some bytes.
func gzipped(t testing.TB, in []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(in); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
