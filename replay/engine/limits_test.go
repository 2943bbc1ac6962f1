package engine

import (
	"errors"
	"fmt"
	"math"
	"reprise/trace/fleet"
	"testing"
	"time"
)

// What is said of a configuration, a job or an arrival that an engine does not take.
func TestWhatAnEngineRefusesToTake(t *testing.T) {
	const memory = "simulated engine: the KV memory is negative or above 2^31 blocks"
	const step = "simulated engine: the limits of a step must be positive, and the queue's not negative"
	const above = "simulated engine: a limit of a step or of the queue is above 2^31"
	for _, row := range []struct {
		want   string
		change func(*Config)
	}{
		{"simulated engine: a block has 1 to 524,288 tokens", func(c *Config) { c.BlockSize = 0 }},
		{memory, func(c *Config) { c.KVTokens = -1 }},
		{memory, func(c *Config) { c.BlockSize, c.KVTokens = 1, maxBlocks+1 }},
		{"simulated engine: a KV memory of 1 tokens holds no block of 2", func(c *Config) { c.BlockSize, c.KVTokens = 2, 1 }},
		{"simulated engine: a KV memory of 15 tokens holds no block of 16", func(c *Config) { c.KVTokens = 15 }},
		{step, func(c *Config) { c.MaxSeqs = 0 }},
		{step, func(c *Config) { c.MaxBatchTokens = 0 }},
		{step, func(c *Config) { c.MaxWaiting = -1 }},
		{above, func(c *Config) { c.MaxSeqs = math.MaxInt }},
		{above, func(c *Config) { c.MaxBatchTokens = math.MaxInt }},
		{above, func(c *Config) { c.MaxWaiting = math.MaxInt }},
		{"simulated engine: batching is continuous or static", func(c *Config) { c.Batching = "" }},
		{"simulated engine: a cost is negative", func(c *Config) { c.Costs.Request = -1 }},
		{"simulated engine: a cost is above 1,000 s", func(c *Config) { c.Costs.KVToken = maxStep + 1 }},
	} {
		want := row.want
		c := DefaultConfig()
		row.change(&c)
		if e, err := newEngineCore(c); e != nil || err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if l, err := newLive(c); l != nil || err == nil || err.Error() != want {
			t.Errorf("by the clock: got %v, want %s", err, want)
		}
		if f, err := NewFleet(FleetConfig{Engine: c, Replicas: 1, Router: fleet.Random}, nil); f != nil || err == nil || err.Error() != want {
			t.Errorf("in a fleet: got %v, want %s", err, want)
		}
	}
	for _, n := range []int{1, maxBlocks - 1, maxBlocks} {
		c := DefaultConfig()
		c.BlockSize, c.KVTokens = 1, n
		if got := mustEngine(t, c).Stats().CapacityBlocks; got != n {
			t.Errorf("%d tokens of KV in blocks of one are %d blocks", n, got)
		}
	}
	for _, costs := range []Costs{{Step: maxStep}, {KVToken: maxStep}, {PrefillToken: maxStep}, {DecodeSeq: maxStep}, {Request: maxStep}} {
		if err := costs.check(); err != nil {
			t.Errorf("%v: %v", costs, err)
		}
	}
	e := mustEngine(t, DefaultConfig())
	if got := e.Stats(); got != (Stats{CapacityBlocks: 1<<31 - 2}) {
		t.Errorf("an engine without bound counts %+v at first", got)
	}
	twice := &Job{Prompt: 1}
	for i, row := range []struct {
		job  *Job
		at   Picos
		want string
	}{
		{&Job{ID: -1}, 0, "simulated engine: a job's number is out of range"},
		{&Job{Prompt: -1}, 0, "simulated engine: a job has a negative length, or more than 16,777,216 tokens"},
		{&Job{BlockSize: -1}, 0, "simulated engine: a job's blocks have no size, or one above 524,288 tokens"},
		{&Job{BlockSize: 1, Blocks: []uint64{1<<43 + 1}}, 0, "simulated engine: a block id is above 2^43; ids of a trace are dense"},
		{&Job{}, -1, "simulated engine: an arrival is before 0 or after 26 days"},
		{&Job{}, Never / 2, "simulated engine: an arrival is before 0 or after 26 days"},
		{twice, 0, "<nil>"},
		{twice, 0, "simulated engine: a job was added twice"},
		{&Job{}, Never/2 - 1, "<nil>"},
	} {
		if err := e.Add(row.job, row.at); fmt.Sprint(err) != row.want {
			t.Errorf("job %d: got %v, want %s", i, err, row.want)
		}
	}
	if got := e.Load(); got != (Load{Waiting: 2}) {
		t.Errorf("of the jobs, %+v were taken", got)
	}
}

func mustEngine(t *testing.T, c Config) *engineCore {
	t.Helper()
	e, err := newEngineCore(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The queue takes as many as run and wait, and the KV memory a request whose last token,
// which is not computed, would no longer fit.
func TestLastRequestThatIsTaken(t *testing.T) {
	for _, row := range []struct {
		seqs, waiting, tokens int
		want                  []error
	}{
		{1, 0, 0, []error{nil, ErrBusy}},
		{2, 1, 0, []error{nil, nil, nil, ErrBusy}},
		{9, 9, 32, []error{nil, ErrTooLong}},
	} {
		c := DefaultConfig()
		c.MaxSeqs, c.MaxWaiting, c.KVTokens = row.seqs, row.waiting, row.tokens
		e := mustEngine(t, c)
		for i, want := range row.want {
			j := &Job{ID: int64(i), Prompt: 30, Output: 3 + i}
			if err := e.Add(j, 0); !errors.Is(err, want) || (want == nil) != (err == nil) {
				t.Errorf("%+v: job %d: got %v, want %v", row, i, err, want)
			}
		}
	}
	c := DefaultConfig()
	c.KVTokens = 16
	e := mustEngine(t, c)
	if err := e.Add(&Job{Prompt: 0, Output: 16}, 0); err != nil {
		t.Errorf("no prompt counts as one token: %v", err)
	}
	if err := e.Add(&Job{ID: 1, Prompt: 0, Output: 17}, 0); err != ErrTooLong {
		t.Errorf("17 tokens of KV in 16: %v", err)
	}
	if err := e.Add(&Job{ID: 2, Prompt: 16}, 0); err != nil {
		t.Errorf("without an answer: %v", err)
	}
}

// Durations keep their nanoseconds as picoseconds, up to the end of time, and come back
// rounded half up.
func TestPicos(t *testing.T) {
	for d, want := range map[time.Duration]Picos{0: 0, 1: 1000, time.Second: 1e12, time.Duration(Never/1000) - 1: (Never/1000 - 1) * 1000,
		time.Duration(Never / 1000): Never, time.Duration(Never/1000) + 1: Never, math.MaxInt64: Never} {
		if got := picosOf(d); got != want {
			t.Errorf("%d ns are %d ps, want %d", d, got, want)
		}
	}
	for p, want := range map[Picos]time.Duration{0: 0, 499: 0, 500: 1, 999: 1, 1000: 1, 1499: 1, 1500: 2, 1e12: time.Second, Never: time.Duration(Never/1000) + 1} {
		if got := p.Duration(); got != want {
			t.Errorf("%d ps are %d ns, want %d", p, got, want)
		}
	}
}

// What is said of costs that cannot be read: which part, or which name.
func TestParseCostsSaysWhat(t *testing.T) {
	const part = " is not one of step, kv-token, prefill-token, decode-seq and request, with = and a time"
	const time = ": not a time such as 40ns, 2.5us or 5ms, of at most 1,000 s"
	for text, want := range map[string]string{"": "part 1" + part, "step=1ns,wait=1ns": "part 2" + part, "step=1ns,step": "part 2" + part,
		"step=1": "step" + time, "step=1ns,request=1e4s": "request" + time, "kv-token=-1ps": "kv-token" + time, "step=x1s": "step" + time, "step=1000.000000000001s": "step" + time,
		"step=ps": "step" + time} {
		if got, err := ParseCosts(text, Costs{}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]Costs{"step=1000s": {Step: maxStep}, "step=0ps": {}, "kv-token=1.4ps": {KVToken: 1}, "kv-token=1.5ps": {KVToken: 2},
		" request=1ms , decode-seq=2µs": {Request: 1e9, DecodeSeq: 2e6}} {
		if got, err := ParseCosts(text, Costs{}); err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := ParseCosts("step=1ns", Costs{KVToken: -1}); err == nil || err.Error() != "simulated engine: a cost is negative" {
		t.Errorf("beside a cost that is negative: %v", err)
	}
}

// What a step takes: the longer of reading and computing, and at most 1,000 s.
func TestStepTime(t *testing.T) {
	c := Costs{Step: 1000, KVToken: 3, PrefillToken: 500, DecodeSeq: 70}
	for _, row := range []struct {
		kv, prefill, decode int64
		want                Picos
	}{{0, 0, 0, 1000}, {10, 0, 1, 1030}, {10, 2, 1, 1070}, {10, 2, 0, 1030}, {500, 5, 1, 2570}, {600, 5, 1, 2800}, {1 << 60, 0, 0, maxStep}, {0, 1 << 60, 1 << 60, maxStep}} {
		if got := c.stepTime(row.kv, row.prefill, row.decode); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
	for _, row := range []struct {
		p    Picos
		n    int64
		want Picos
	}{{maxStep, 1, maxStep}, {maxStep, 2, maxStep}, {maxStep / 4, 4, maxStep}, {maxStep/4 + 1, 4, maxStep}, {maxStep/4 - 1, 4, maxStep - 4}, {5, 0, 0}, {0, 7, 0}} {
		if got := times(row.p, row.n); got != row.want {
			t.Errorf("%d × %d: %d, want %d", row.n, row.p, got, row.want)
		}
	}
	// Runs of steps are added up 4,096 at a time, and at least one begins.
	s := decodeRun{costs: &Costs{Step: 10}, seqs: 1}
	for _, row := range []struct {
		k      int64
		within Picos
		want   int64
	}{{5, math.MaxInt64, 5}, {4096, Never, 4096}, {4097, math.MaxInt64, 4096}, {5000, Never, 4096}, {5, -100, 1}, {5, 0, 1}, {5, 10, 1}, {5, 11, 2}, {5, 41, 5}, {5, 1000, 5}} {
		if got := s.stepsBegunWithin(row.k, row.within); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}
