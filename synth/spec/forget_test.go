package spec_test

import (
	"runtime"
	"testing"

	"reprise/synth/spec"
	"reprise/trace"
	"reprise/trace/profile"
)

// manyBlocks are specifications of more than half a million blocks each, so that some are
// forgotten several times, with everything by which a row can begin with earlier blocks.
var manyBlocks = map[string]string{
	"alone":      "requests: 4500\narrivals: poisson:10\nlengths: {input: 'uniform:500..5000', output: 'constant:1'}\n",
	"global":     "requests: 4500\narrivals: poisson:10\nprefix: {global: 640}\nlengths: {own: 'uniform:500..5000', output: 'constant:1'}\n",
	"warm":       "requests: 4500\narrivals: poisson:2\nwarm: lognormal:100s,sigma=1\nlengths: {input: 'uniform:500..8000', output: 'constant:1'}\n",
	"groups":     "requests: 4500\narrivals: poisson:10\nprefix: {global: 640, groups: [{share: 0.5, count: 40, depth: 'uniform:100..3000', popularity: 'zipf:1', turnover: 'lognormal:50s,sigma=1'}]}\nlengths: {own: 'uniform:500..5000', output: 'constant:1'}\n",
	"sessions":   "requests: 10000\narrivals: poisson:1\nprefix: {global: 100}\nlengths: {own: 'uniform:300..2000', output: 'uniform:1..500'}\nsessions: {turns: 'uniform:1..12', think: 'lognormal:300s,sigma=1'}\n",
	"categories": "requests: 5000\narrivals: poisson:10\nprefix: {global: 64, groups: [{share: 1, count: 8, depth: 'constant:128'}]}\nlengths: {own: 'uniform:500..5000', output: 'uniform:1..500'}\ncategories: {cold: 20, template: 30, branch: 20, continuation: 20, duplicate: 10}\n",
	"few at a time": "requests: 8000\narrivals: poisson:0.001\nprefix: {global: 1024}\nlengths: {own: 'uniform:200..9000', output: 'constant:1'}\nanswer: constant:1s\n" +
		"sessions: {turns: 'constant:1', added: 'constant:1', think: 'constant:1s', calls: 'constant:2', result: 'constant:10', tool: 'constant:1s', agents: {share: 1, count: 'constant:2', calls: 'constant:1', global: 2100, own: 'constant:100'}}\n",
	"agents": "requests: 6000\narrivals: poisson:0.5\nprefix: {global: 1500}\nlengths: {own: 'lognormal:1800,sigma=1,200..9000', output: 'uniform:1..900'}\nanswer: 'lognormal:10s,sigma=1'\n" +
		"sessions: {turns: 'uniform:1..4', added: 'uniform:50..2000', think: 'lognormal:500s,sigma=1', calls: 'uniform:1..9', result: 'uniform:10..3000', tool: 'lognormal:20s,sigma=1', compact: {above: 20000, to: 'constant:3000'}, agents: {share: 0.01, count: 'uniform:1..4', calls: 'uniform:1..6', global: 700, own: 'uniform:100..900'}}\n",
}

// TestForgottenBlocks holds categories to those of a profile.Categorizer that forgets nothing.
func TestForgottenBlocks(t *testing.T) {
	for name, text := range manyBlocks {
		rows, s := rowsOf(t, text, 5)
		c, most := profile.NewCategorizer(s.Block, false), uint64(0)
		for i := range rows {
			for _, b := range rows[i].Blocks {
				most = max(most, b)
			}
		}
		if most < 1<<19 {
			t.Errorf("%s: %d blocks: perhaps none was forgotten", name, most)
		}
		for i := range rows {
			if want := c.Category(&rows[i]); rows[i].Category != want {
				t.Errorf("%s: row %d is %s, want %s", name, i, rows[i].Category, want)
				break
			}
		}
	}
}

// TestMemoryOfRows makes ten million blocks; for each of them the annotation of a trace
// takes 12 bytes.
func TestMemoryOfRows(t *testing.T) {
	s, err := spec.Parse("test.yaml", []byte("requests: 20000\narrivals: poisson:10\nlengths: {input: 'constant:8000', output: 'constant:1'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	src, err := s.Rows(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Each(src, func(int64, *trace.Request) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if took := int64(heap() - before); took > 32<<20 {
		t.Errorf("%d bytes", took)
	}
	runtime.KeepAlive(src)
}
