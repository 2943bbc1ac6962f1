package trace_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/bombtest"
)

// soundTrace is a trace file of some rows in which every kind of column has values.
func soundTrace(t *testing.T) []byte {
	var b bytes.Buffer
	w := trace.NewRequestWriter(&b)
	rows := make([]trace.Request, 8)
	for i := range rows {
		rows[i] = trace.Request{ArrivalNS: int64(i), InputTokens: 32, OutputTokens: trace.Ptr[int32](4), Model: "m", Blocks: []uint64{1, 2},
			Temperature: trace.Ptr[float32](0.5), Stream: trace.Ptr(true), Session: trace.Ptr[int64](1)}
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(trace.Meta{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// heap is how much memory the heap has had of the system: it never becomes less.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}

// No file makes its reader take memory that it has no use for.
func TestParquetBombs(t *testing.T) {
	sound := soundTrace(t)
	bombs := append(bombtest.Parquet(sound), bombtest.Parquet(sound, "blocks", "model", "output_tokens")...)
	for _, bomb := range bombs {
		before := heap()
		if _, err := trace.OpenParquet(bytes.NewReader(bomb.Data), int64(len(bomb.Data))); err != nil && !strings.HasPrefix(bomb.Name, "footer: ") {
			t.Errorf("%s: only its pages should be bad: %v", bomb.Name, err)
		}
		rows, err := trace.NewRowsReader[trace.Request](bytes.NewReader(bomb.Data), int64(len(bomb.Data)))
		for batch := make([]trace.Request, 1024); err == nil; {
			_, err = rows.Read(batch)
		}
		if err == io.EOF {
			t.Errorf("%s: it was read to its end", bomb.Name)
		}
		if grown := int64(heap()) - int64(before); grown > 400<<20 {
			t.Errorf("%s: %d MiB of memory, then %v", bomb.Name, grown>>20, err)
		}
	}
	if rows, err := trace.NewRowsReader[trace.Request](bytes.NewReader(sound), int64(len(sound))); err != nil || rows.Rows() != 8 {
		t.Errorf("the sound file: %v", err)
	}
}
