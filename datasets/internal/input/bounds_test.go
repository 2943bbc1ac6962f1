package input

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"reprise/trace/arrowipc"
	"reprise/trace/bombtest"
)

// SECURITY.md states the bounds of what is unpacked as they are.
func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../../SECURITY.md",
		fmt.Sprintf("| a batch of Arrow | %d MiB, or four times its size in the file where that is more, and %d GiB "+
			"in the file; in an archive %d MiB |",
			arrowipc.MaxBatch>>20, arrowipc.MaxPlainBatch>>30, arrowipc.MaxBatch>>20),
		fmt.Sprintf("| what comes out of gzip or zstd | %d,000 times what went in, beyond %d MiB; a window of %d "+
			"MiB |", bombRatio/1000, bombBytes>>20, maxWindow>>20),
	)
}

// heapOfSystem is how much memory the heap has had of the system.
func heapOfSystem() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys)
}

// Lists that overlap and hold one another are counted before a row is written out, and a batch that
// claims or unpacks to more than its bound is refused.
func TestArrowBombs(t *testing.T) {
	stream := func(column arrow.Array, options ...ipc.Option) []byte {
		schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: column.DataType()}}, nil)
		var b bytes.Buffer
		w := ipc.NewWriter(&b, append(options, ipc.WithSchema(schema))...)
		if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))); err != nil ||
			w.Close() != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	// Each level has a hundred lists of which each is the whole level below it.
	nested := func(levels int) arrow.Array {
		b := array.NewInt8Builder(memory.DefaultAllocator)
		b.AppendValues(make([]int8, 100), nil)
		var below arrow.Array = b.NewArray()
		for range levels {
			offsets, sizes := array.NewInt32Builder(memory.DefaultAllocator), array.NewInt32Builder(memory.DefaultAllocator)
			for range 100 {
				offsets.Append(0)
				sizes.Append(int32(below.Len()))
			}
			data := array.NewData(arrow.ListViewOf(below.DataType()), 100,
				[]*memory.Buffer{nil, offsets.NewArray().Data().Buffers()[1],
					sizes.NewArray().Data().Buffers()[1]}, []arrow.ArrayData{below.Data()}, 0, 0)
			below = array.MakeFromData(data)
		}
		return below
	}
	nothing := array.NewFixedSizeListData(array.NewData(arrow.FixedSizeListOf(1<<28, arrow.Null), 1,
		[]*memory.Buffer{nil}, []arrow.ArrayData{array.NewNull(1 << 28).Data()}, 0, 0))
	zeros := array.NewInt64Builder(memory.DefaultAllocator)
	zeros.AppendValues(make([]int64, 20<<20), nil)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"lists of lists":         {stream(nested(2)), ""},
		"lists of lists of more": {stream(nested(8)), errArrowRow.Error()},
		"a list of nothing":      {stream(nothing), errArrowRow.Error()},
		"a batch that unpacks":   {stream(zeros.NewArray(), ipc.WithZstd()), arrowipc.ErrBatch.Error()},
	} {
		before := heapOfSystem()
		r, err := newArrowReader(bufio.NewReader(bytes.NewReader(c.file)), arrowipc.MaxPlainBatch)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if said := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if grown := heapOfSystem() - before; grown > 400<<20 {
			t.Errorf("%s: %d MiB of memory", name, grown>>20)
		}
	}
}
