package block_test

import (
	"fmt"
	"log"

	"reprise/trace/block"
)

func Example() {
	key, err := block.NewKey()
	if err != nil {
		log.Fatal(err)
	}
	h, err := block.NewHasher(key, "o200k_base", 4)
	if err != nil {
		log.Fatal(err)
	}
	prompts := [][]uint32{
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13},
		{0, 2, 3, 4, 5, 6, 7, 8},
	}
	dense := block.NewDense[block.ID]()
	cutter := h.Cutter(block.ID{})
	for _, p := range prompts {
		cutter.Reset(h.Root("model-a"))
		cutter.Write(p)
		var row []uint64
		for _, id := range cutter.Append(nil) {
			row = append(row, dense.ID(id))
		}
		fmt.Println(len(p), "tokens:", row)
	}

	known := block.Known(2, 10, 4)
	fmt.Println(known, "tokens known;", block.Reusable(known, 10, 16), "of them reusable in blocks of 16")
	// Output:
	// 10 tokens: [0 1 2]
	// 12 tokens: [0 1 3]
	// 8 tokens: [4 5]
	// 8 tokens known; 0 of them reusable in blocks of 16
}
