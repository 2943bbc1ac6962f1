package main

import (
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace"
)

func TestPrintHours(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{
			{ArrivalNS: 0, InputTokens: 100, OutputTokens: trace.Ptr[int32](7), Blocks: []uint64{0, 1}},
			{ArrivalNS: 1e9, InputTokens: 150, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 1, 2}},
			{ArrivalNS: 2 * 3600e9, InputTokens: 50, OutputTokens: trace.Ptr[int32](9)},
		})
		return trace.Meta{BlockSize: 64}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printHours(&out, path); err != nil {
		t.Fatal(err)
	}
	want := "hour,requests,input_tokens,output_tokens,blocks_seen_before\n0,2,250,15,0.400\n2,1,50,9,\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
