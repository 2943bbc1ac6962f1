package fleet_test

import (
	"fmt"

	"reprise/trace"
	"reprise/trace/fleet"
)

// Two chats of two turns each, with a request of its own between them, over two replicas.
// That request makes round-robin send each second turn to the other replica.
func Example() {
	sim, err := fleet.New(fleet.Options{BlockSize: 16, ServerBlock: 16, Replicas: []int{2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var whole fleet.Traffic
	for _, path := range [][]uint32{{0}, {1}, {2}, {0, 3}, {1, 4}} {
		tokens := 16*len(path) + 1
		sim.Add(&trace.Request{InputTokens: int32(tokens)}, path)
		whole.Requests++
		whole.Blocks += int64(len(path))
		whole.PromptTokens += int64(tokens)
	}
	f := sim.Summary(whole, 0, "").Fleets[0]
	fmt.Println("one cache hits", f.OneCache.HitBlocks, "blocks")
	for _, r := range f.Routers {
		fmt.Println(r.Router, "hits", r.HitBlocks, "and sends", r.Sent, "tokens")
	}
	// Output:
	// one cache hits 2 blocks
	// round-robin hits 0 and sends [67 50] tokens
	// prefix hits 2 and sends [67 50] tokens
	// prefix-weighted hits 2 and sends [67 50] tokens
}
