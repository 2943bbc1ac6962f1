package shard

import (
	"fmt"
	"time"

	"reprise/replay/result"
)

// Apart says in words how far apart the shards of merged results were: their starts and, where
// they measured them, their clocks. It is empty where all of them were to start at one instant
// and none measured its clock.
func Apart(shards []result.SentShard) (says []string) {
	low, high := time.Duration(0), time.Duration(0)
	measured, peers := 0, map[string]bool{}
	for i := range shards {
		c := shards[i].Clock
		if c == nil {
			continue
		}
		least, most := time.Duration(c.OffsetNS-c.UncertaintyNS), time.Duration(c.OffsetNS+c.UncertaintyNS)
		if measured == 0 {
			low, high = least, most
		}
		low, high = min(low, least), max(high, most)
		measured++
		peers[c.Peer] = true
	}
	if measured > 0 && len(peers) == 1 {
		says = append(says, fmt.Sprintf("Clocks: differ by at most %v, uncertainty included (%d of %d shards "+
			"measured theirs)", (high-low).Round(time.Microsecond), measured, len(shards)))
	}
	if n, most := result.StartedApart(shards); n > 0 {
		says = append(says, fmt.Sprintf("warning: %d of %d shards started at another time than the others, by up to "+
			"%v: the load was never whole", n, len(shards), most.Round(time.Second)))
	}
	return says
}
