package fleet_test

import (
	"slices"
	"testing"

	"reprise/trace"
	"reprise/trace/fleet"
)

// Eight requests of two sessions, all with one first block and a second of their own,
// over two replicas. Package profile holds the routers against a direct simulation.
func TestRouters(t *testing.T) {
	for _, c := range []struct {
		limit int64 // blocks of a replica
		hits  map[string]int64
		most  map[string]int64 // prompt tokens of the fullest replica
	}{
		{0, map[string]int64{fleet.RoundRobin: 6, "session": 6, fleet.Prefix: 7, fleet.PrefixWeighted: 6},
			map[string]int64{fleet.RoundRobin: 32, "session": 32, fleet.Prefix: 64, fleet.PrefixWeighted: 32}},
		// One block: the first of a prompt, which is touched last.
		{1, map[string]int64{fleet.RoundRobin: 6, "session": 6, fleet.Prefix: 7, fleet.PrefixWeighted: 6},
			map[string]int64{fleet.RoundRobin: 32, "session": 32, fleet.Prefix: 64, fleet.PrefixWeighted: 32}},
	} {
		sim, err := fleet.New(fleet.Options{BlockSize: 4, ServerBlock: 4, Replicas: []int{2}, ReplicaBlocks: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint32(8) {
			sim.Add(&trace.Request{InputTokens: 8, Session: trace.Ptr(int64(i / 4))}, []uint32{0, i + 1})
		}
		s := sim.Summary(fleet.Traffic{Requests: 8, Blocks: 16, PromptTokens: 64}, 0, "source")
		if len(s.Fleets) != 1 || len(s.Fleets[0].Routers) != 4 || s.SessionRequests != 8 {
			t.Fatalf("limit %d: %+v", c.limit, s)
		}
		for _, r := range s.Fleets[0].Routers {
			if most := slices.Max(r.Sent); r.HitBlocks != c.hits[r.Router] || most != c.most[r.Router] || r.Sent[0]+r.Sent[1] != 64 {
				t.Errorf("limit %d, %s: %d hits and at most %d tokens; want %d and %d", c.limit, r.Router, r.HitBlocks, most, c.hits[r.Router], c.most[r.Router])
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, o := range []fleet.Options{{Replicas: []int{0}}, {Replicas: []int{fleet.MaxReplicas + 1}}, {Replicas: []int{2, -1}}, {ReplicaBlocks: -1}} {
		o.BlockSize, o.ServerBlock = 4, 4
		if _, err := fleet.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if sim, err := fleet.New(fleet.Options{BlockSize: 4, ServerBlock: 4}); sim != nil || err != nil {
		t.Errorf("nothing to simulate gives %v, %v", sim, err)
	}
}
