package trace_test

import (
	"fmt"
	"os"
	"path/filepath"

	"reprise/trace"
)

// A trace is written whole, and read back as often as one likes.
func Example() {
	dir, err := os.MkdirTemp("", "reprise")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "t.parquet")

	err = trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{
			{ArrivalNS: 0, InputTokens: 1024, OutputTokens: trace.Ptr[int32](20), Blocks: []uint64{0, 1}},
			{ArrivalNS: 3e9, InputTokens: 1500, OutputTokens: trace.Ptr[int32](8), Blocks: []uint64{0, 1, 2}},
		})
		return trace.Meta{BlockSize: 512}, err
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	t, err := trace.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = trace.Each(rows, func(row int64, r *trace.Request) error {
		fmt.Println(row, r.ArrivalNS, r.InputTokens, r.Blocks)
		return nil
	})
	fmt.Println(t.Meta.BlockSize, err)
	// Output:
	// 0 0 1024 [0 1]
	// 1 3000000000 1500 [0 1 2]
	// 512 <nil>
}
