package engine

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"reprise/replay/hardware"
)

// recorded is a request of LLMServingSim's public data, through a real vLLM: tokens, and
// seconds since the first came into its queue.
type recorded struct {
	In, Out             int
	Queued, First, Last float64
}

// readRecorded reads the requests of one setup in order of arrival; it skips without them.
func readRecorded(t testing.TB, name string) (all []recorded) {
	t.Helper()
	in, err := os.Open(filepath.Join("../../../../shared/data/llmservingsim", name+".requests.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		in, err = os.Open(filepath.Join("../../../shared/data/llmservingsim", name+".requests.jsonl"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no shared/data/llmservingsim beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r struct {
			In     int     `json:"input_toks"`
			Out    int     `json:"output_toks"`
			Queued float64 `json:"queued_ts"`
			First  float64 `json:"first_token_ts"`
			Last   float64 `json:"last_token_ts"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, recorded{r.In, r.Out, r.Queued, r.First, r.Last})
	}
	slices.SortFunc(all, func(a, b recorded) int { return int(math.Copysign(1, a.Queued-b.Queued)) })
	first := all[0].Queued
	for i := range all {
		all[i].Queued, all[i].First, all[i].Last = all[i].Queued-first, all[i].First-first, all[i].Last-first
	}
	return all
}

// latencies are what a table shows of a run: mean, p50, p99 of each, in ms; and its end.
type latencies struct {
	TTFT, TPOT, E2E [3]float64
	PerS            float64
}

func latenciesOf(all []recorded) (l latencies) {
	var ttft, tpot, e2e []float64
	end, tokens := 0.0, 0
	for _, r := range all {
		ttft, e2e = append(ttft, 1e3*(r.First-r.Queued)), append(e2e, 1e3*(r.Last-r.Queued))
		if r.Out > 1 {
			tpot = append(tpot, 1e3*(r.Last-r.First)/float64(r.Out-1))
		}
		end, tokens = max(end, r.Last), tokens+r.Out
	}
	for _, of := range []struct {
		list []float64
		into *[3]float64
	}{{ttft, &l.TTFT}, {tpot, &l.TPOT}, {e2e, &l.E2E}} {
		slices.Sort(of.list)
		sum := 0.0
		for _, v := range of.list {
			sum += v
		}
		at := func(p float64) float64 { return of.list[int(p*float64(len(of.list)-1))] }
		*of.into = [3]float64{sum / float64(len(of.list)), at(0.5), at(0.99)}
	}
	l.PerS = float64(tokens) / end
	return l
}

// lastTokens keeps when the first and the last token of each job came.
type lastTokens []recorded

func (l lastTokens) Tokens(j *Job, at []Picos) {
	if l[j.ID].First == 0 {
		l[j.ID].First = float64(at[0]) / 1e12
	}
	l[j.ID].Last = float64(at[len(at)-1]) / 1e12
}
func (lastTokens) Finished(*Job, Picos) {}

// playRecorded plays the requests to an engine, at the instants at which they came.
func playRecorded(t testing.TB, c Config, all []recorded) latencies {
	t.Helper()
	e, err := newEngineCore(c)
	if err != nil {
		t.Fatal(err)
	}
	out := make(lastTokens, len(all))
	for i, r := range all {
		at := Picos(r.Queued * 1e12)
		e.Run(at, out)
		out[i] = recorded{In: r.In, Out: r.Out, Queued: r.Queued}
		if err := e.Add(&Job{ID: int64(i), Prompt: r.In, Output: r.Out}, at); err != nil {
			t.Fatal(err)
		}
	}
	e.Run(Never, out)
	return latenciesOf(out)
}

// What the roofline predicts of two real servers of vLLM 0.19, beside what was measured
// request by request, and the efficiency at which it takes as long: the table of
// docs/engines.md, and the figures of [measuredEngines].
func TestRooflineAgainstRealServers(t *testing.T) {
	llama := hardware.Model{Name: "Llama-3.1-8B", Layers: 32, Hidden: 4096, Heads: 32,
		Attention: hardware.Attention{KVHeads: 8, HeadDim: 128}, Intermediate: 14336, Vocab: 128256}
	for _, row := range []struct {
		data, gpu string
		seqs, kv  int // tokens of KV by its metadata; 0 is not known
	}{{"RTX4090_Llama-3.1-8B", "rtx4090", 256, 41_408}, {"RTXPRO6000_Llama-3.1-8B", "rtxpro6000", 128, 0}} {
		all := readRecorded(t, row.data)
		g, err := hardware.FindGPU(row.gpu)
		if err != nil {
			t.Fatal(err)
		}
		s := hardware.Setup{Model: llama, GPU: g, TP: 1, DType: "bf16", KVDType: "auto", Efficiency: 1, Utilization: 0.9}
		like := DefaultConfig()
		like.MaxSeqs, like.PrefixCaching = row.seqs, false
		at := func(efficiency float64) latencies {
			s.Efficiency = efficiency
			c, _, err := newRoofline(s, like)
			if err != nil {
				t.Fatal(err)
			}
			if row.kv > 0 {
				c.KVTokens = row.kv
			}
			return playRecorded(t, c, all)
		}
		real, bound := latenciesOf(all), at(1)
		if bound.TTFT[0] > real.TTFT[0] || bound.TPOT[1] > real.TPOT[1] || bound.E2E[0] > real.E2E[0] || bound.PerS < real.PerS {
			t.Errorf("%s is faster than its bound: %+v, bound %+v", row.data, real, bound)
		}
		low, high := 0.05, 1.0
		for range 30 {
			if mid := (low + high) / 2; at(mid).E2E[0] > real.E2E[0] {
				low = mid
			} else {
				high = mid
			}
		}
		same := at(high)
		t.Logf("%s (TTFT, TPOT, E2E: mean, p50, p99 in ms)\nmeasured %.4g %.4g %.4g, %.4g tokens/s\nbound    %.4g %.4g %.4g, %.4g tokens/s\nat %.3f  %.4g %.4g %.4g, %.4g tokens/s",
			row.data, real.TTFT, real.TPOT, real.E2E, real.PerS, bound.TTFT, bound.TPOT, bound.E2E, bound.PerS, high, same.TTFT, same.TPOT, same.E2E, same.PerS)
		for _, m := range measuredEngines() {
			if m.GPU == row.gpu && math.Abs(m.Efficiency-high) > 0.006 {
				t.Errorf("%s reaches %.3f of its bound; the table says %.3f", m.Name, high, m.Efficiency)
			}
		}
	}
}
