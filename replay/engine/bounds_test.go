package engine

import (
	"testing"

	"reprise/trace/fleet"
)

// The limits of a job are the last values that its keys have room for.
func TestJobLimits(t *testing.T) {
	for name, c := range map[string]struct {
		job Job
		ok  bool
	}{
		"the highest number":        {Job{ID: maxJobID}, true},
		"a number above":            {Job{ID: maxJobID + 1}, false},
		"a negative number":         {Job{ID: -1}, false},
		"no tokens at all":          {Job{}, true},
		"the most tokens":           {Job{Prompt: maxJobTokens - 1, Output: 1}, true},
		"one token more":            {Job{Prompt: maxJobTokens, Output: 1}, false},
		"a negative prompt":         {Job{Prompt: -1, Output: 2}, false},
		"a negative answer":         {Job{Prompt: 2, Output: -1}, false},
		"blocks of the largest":     {Job{BlockSize: maxBlockSize}, true},
		"blocks above":              {Job{BlockSize: maxBlockSize + 1}, false},
		"blocks of a negative size": {Job{BlockSize: -1}, false},
		"blocks without a size":     {Job{Blocks: []uint64{1}}, false},
		"output without a size":     {Job{OutputBlocks: []uint64{1}}, false},
		"the highest block id":      {Job{BlockSize: 16, Blocks: []uint64{maxBlockID}}, true},
		"a block id above":          {Job{BlockSize: 16, Blocks: []uint64{0, maxBlockID + 1}}, false},
		"an output block id above":  {Job{BlockSize: 16, OutputBlocks: []uint64{maxBlockID + 1}}, false},
	} {
		if err := c.job.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A turn finds what the turn before it generated: with the engine's blocks smaller than
// the trace's, too, every full block has the key that the next prompt gives it.
func TestBlockKeysContinueOverTheAnswer(t *testing.T) {
	// Blocks of 16: the prompt is 20 tokens long, the answer 28. The answer completes
	// block 8, a partial one in the prompt, as block 9, and fills block 10.
	turn := Job{ID: 1, Prompt: 20, Output: 28, BlockSize: 16, Blocks: []uint64{7, 8}, OutputBlocks: []uint64{9, 10}}
	next := Job{ID: 2, Prompt: 64, BlockSize: 16, Blocks: []uint64{7, 9, 10, 11}}
	for _, size := range []int{4, 8, 16} {
		keys := map[uint64]bool{}
		for k := range 48 / size {
			a, b := turn.blockKey(k, size), next.blockKey(k, size)
			if a != b || keys[a] || a >= privateKey {
				t.Errorf("block %d of %d tokens has key %d, and %d in the next turn", k, size, a, b)
			}
			keys[a] = true
		}
	}
	if a, b := turn.blockKey(3, 16), next.blockKey(4, 16); a < privateKey || b < privateKey || a == b {
		t.Errorf("what no id tells has keys %x and %x, not keys of its own", a, b)
	}
}

// A pool uses the room of evicted blocks again, and counts what sequences hold.
func TestPoolUsesNodesAgain(t *testing.T) {
	p := newPool(2, 1)
	for key := range uint64(50) {
		p.allocate()
		n := p.publish(key)
		if p.used() != 1 {
			t.Fatalf("block %d: %d blocks in use, want 1", key, p.used())
		}
		if p.nodes[n].users == 0 {
			t.Fatalf("block %d is in use and counts as kept", key)
		}
		p.release([]int32{n})
		if p.nodes[n].users != 0 || p.find(key) != n || p.used() != 0 || p.available() != 2 {
			t.Fatalf("block %d: found %d, %d in use, %d available", key, p.find(key), p.used(), p.available())
		}
	}
	if len(p.nodes) != 3 { // the ring's head and two blocks
		t.Errorf("%d nodes for two blocks", len(p.nodes))
	}
	if p.find(47) != keyless || p.find(48) == keyless || p.find(49) == keyless {
		t.Error("the pool does not keep the last two blocks and no more")
	}
}

// Costs print in the largest unit that keeps them at 1 or more, and 0 in picoseconds.
func TestCostsInUnits(t *testing.T) {
	c := Costs{Step: 1_500_000_000, KVToken: 40_000, PrefillToken: 500, DecodeSeq: 2_500_000, Request: 3_000_000_000_000}
	if got, want := c.String(), "step=1.5ms,kv-token=40ns,prefill-token=500ps,decode-seq=2.5us,request=3s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := (Costs{}).String(), "step=0ps,kv-token=0ps,prefill-token=0ps,decode-seq=0ps,request=0ps"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := (Costs{Step: 1000, KVToken: 999}).String(),
		"step=1ns,kv-token=999ps,prefill-token=0ps,decode-seq=0ps,request=0ps"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Each limit of a configuration holds at its last value, and not beyond.
func TestConfigLimits(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		ok     bool
	}{
		"as it is":               {func(*Config) {}, true},
		"a block of one token":   {func(c *Config) { c.BlockSize = 1 }, true},
		"a block of none":        {func(c *Config) { c.BlockSize = 0 }, false},
		"the largest block":      {func(c *Config) { c.BlockSize, c.KVTokens = maxBlockSize, 0 }, true},
		"a block above":          {func(c *Config) { c.BlockSize, c.KVTokens = maxBlockSize+1, 0 }, false},
		"memory for one block":   {func(c *Config) { c.KVTokens = c.BlockSize }, true},
		"memory for less":        {func(c *Config) { c.KVTokens = c.BlockSize - 1 }, false},
		"memory below nothing":   {func(c *Config) { c.KVTokens = -1 }, false},
		"one sequence":           {func(c *Config) { c.MaxSeqs = 1 }, true},
		"no sequence":            {func(c *Config) { c.MaxSeqs = 0 }, false},
		"one token a step":       {func(c *Config) { c.MaxBatchTokens = 1 }, true},
		"no token a step":        {func(c *Config) { c.MaxBatchTokens = 0 }, false},
		"nobody waits":           {func(c *Config) { c.MaxWaiting = 0 }, true},
		"less than nobody waits": {func(c *Config) { c.MaxWaiting = -1 }, false},
		"static batches":         {func(c *Config) { c.Batching = staticBatching }, true},
		"unknown batches":        {func(c *Config) { c.Batching = "both" }, false},
	} {
		config := DefaultConfig()
		c.change(&config)
		if err := config.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	server := DefaultServerConfig()
	if err := server.check(); err != nil || server.MaxModelLen != 1_048_576 {
		t.Errorf("the default server is refused (%v), or has another length than 2^20: %d", err, server.MaxModelLen)
	}
	for name, c := range map[string]struct {
		change func(*ServerConfig)
		ok     bool
	}{
		"a prompt and an answer of one token": {func(c *ServerConfig) { c.MaxModelLen = 2 }, true},
		"no room for an answer":               {func(c *ServerConfig) { c.MaxModelLen = 1 }, false},
		"no time":                             {func(c *ServerConfig) { c.Engine.Costs = Costs{} }, true},
		"an engine that cannot be":            {func(c *ServerConfig) { c.Engine.MaxSeqs = 0 }, false},
	} {
		config := DefaultServerConfig()
		c.change(&config)
		if err := config.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Imbalance is the most over the mean.
func TestImbalance(t *testing.T) {
	if got := fleet.Imbalance([]int64{30, 10, 20}); got == nil || *got != 1.5 {
		t.Errorf("got %v, want 1.5", got)
	}
	if got := fleet.Imbalance([]int64{0, 0}); got != nil {
		t.Errorf("replicas without work have an imbalance of %v", *got)
	}
}

// What an engine was asked for at most, of two prompts that share no block: the second enters
// when the first decodes.
func TestReached(t *testing.T) {
	c := DefaultConfig()
	c.Costs = Costs{Step: 1000}
	f, err := NewFleet(FleetConfig{Engine: c, Replicas: 2, Router: fleet.RoundRobin}, func(*Answer) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range []Arrival{{At: 0, Job: Job{Prompt: 100, Output: 10}}, {At: 0, Job: Job{Prompt: 7, Output: 3}},
		{At: 1, Job: Job{Prompt: 30, Output: 20}}} {
		a.Job.ID = int64(i)
		if err := f.Send(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Finish(); err != nil {
		t.Fatal(err)
	}
	// The first replica has the first and the third. Both decode from the third step to the
	// tenth, in which the first has 109 tokens of KV and the other 38.
	got, want := f.Reached(), Covers{MaxPromptTokens: 100, MaxOutputTokens: 20, MaxInFlight: 2, MaxDecoding: 2,
		MaxKVTokens: 147}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	covers := Covers{MaxPromptTokens: 96, MaxOutputTokens: 10, MaxInFlight: 2, MaxKVTokens: 140}
	// 4 % and 5 % beyond are within what another seed does, and what is not known bounds nothing.
	if got := covers.Beyond(want); len(got) != 1 || got[0].Bound != "max_output_tokens" || got[0].Covers != 10 ||
		got[0].Reached != 20 {
		t.Errorf("%+v", got)
	}
}
