package fidelity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"reprise/synth"
	"reprise/trace"
	"reprise/trace/longtest"
)

// prototypeNames are the measures of the prototype of this gate, by ours. A share above chance is compared by its two
// parts: the share found is equal, and the expectation of chance within four standard errors of the prototype's, which
// takes it from three shuffles (ours deals outputs among similar ones), for linkage from 200 places away (ours from 41
// to 200). Its categories look at blocks alone, so that the two are near and not the same. Its sticky routing tries one
// hash, of sessions in the order in which they appear, and so do ours here.
var prototypeNames = map[string]struct {
	name   string
	within float64 // 1e-6 where 0
	draws  int     // of chance by the prototype, for each request; 0 where it is not compared by itself
}{
	"mrc_mae": {name: "mrc_mae"}, "mrc_max": {name: "mrc_max"}, "hit_inf": {name: "hit_by_block"}, "lru_1000": {name: "hit_at_1000_blocks"},
	"ks_in": {name: "input_ks"}, "ks_out": {name: "output_ks"}, "rho_in_out": {name: "rho_input_output"}, "categories": {"categories", 0.005, 0},
	"turns_ks": {name: "turns_ks"}, "turns_top10_log2": {name: "turns_top10_log2"}, "turns_max_log2": {name: "turns_max_log2"},
	"growth_ks": {name: "growth_ks"}, "gap_ks": {"turn_gap_ks", 0.003, 0}, "fanout": {name: "fanout"}, "top_block_log2": {name: "top_block_log2"},
	"route_rr": {name: "route_round_robin"}, "route_sticky": {name: "route_sticky"}, "route_prefix": {name: "route_prefix"}, "route_gain": {name: "route_sticky_gain"},
	"queue_log2_70": {name: "queue_70_log2"}, "queue_log2_85": {name: "queue_85_log2"}, "queue_log2_95": {name: "queue_95_log2"},
	"cv_tokens_log2": {name: "token_cv_log2"}, "acf_tokens": {name: "token_acf"}, "idc_log2": {name: "rate_idc_log2"}, "ticks": {name: "ticks"},
	"pair_above_chance": {name: pairMatchName, draws: 3}, "unique_pair_above_chance": {name: uniquePairMatchName, draws: 3},
	"linkage_above_chance": {name: linkageName, draws: 2}, "chain3_exact": {name: chainExactName}, "chain3_near_above_chance": {chainNearName, 0.002, 0},
}

// The measures and limits are those of the prototype, for a trace and its synthesis: the
// Mooncake conversation trace (with REPRISE_TEST_LONG), and its first 4,000 requests.
func TestFiguresOfThePrototype(t *testing.T) {
	longtest.Skip(t)
	python, err := exec.LookPath("python3")
	prototype := "../../../shared/prototypes/fidelity2.py"
	if _, missing := os.Stat(prototype); err != nil || missing != nil {
		t.Skip("there is no python3, or no prototype of the gate")
	}
	rows := conversation(t)
	sizes := []int{4000}
	if longtest.On() {
		sizes = append(sizes, len(rows))
	}
	meta := trace.Meta{BlockSize: 512, Convention: trace.PartialTail, Tier: "internal"}
	for _, n := range sizes {
		ref := rows[:n]
		model, err := synth.Fit(t.Context(), copied(ref), meta, synth.FitOptions{KSwap: synth.DefaultKSwap, Entropy: rand.NewChaCha8([32]byte{1})})
		if err != nil {
			t.Fatal(err)
		}
		w, err := model.Generate(t.Context(), synth.Options{Seed: 1, Users: 1, Speed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var cand trace.SliceWriter[trace.Request]
		if _, err := trace.Copy(&cand, w.Reader()); err != nil {
			t.Fatal(err)
		}
		for i := range cand.Rows { // as the file of the prototype has them
			cand.Rows[i].ArrivalNS = int64(math.Round(float64(cand.Rows[i].ArrivalNS)/1e6)) * 1e6
			cand.Rows[i].Session = nil
		}
		dir := t.TempDir()
		cmd := exec.Command(python, prototype, "--json", mooncakeFile(t, dir, "ref", ref), mooncakeFile(t, dir, "cand", cand.Rows))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3: limits are broken
			t.Fatal(err, stderr.String())
		}
		var want map[string]struct {
			Ref, Cand any
			Distance  *float64 `json:"dist_mean"`
			Limit     *float64
		}
		if err := json.Unmarshal(out, &want); err != nil {
			t.Fatal(err)
		}
		asPrototype := func(rows []trace.Request) *Signature {
			s := NewSignature(meta, Options{})
			s.limits.kept.hashes, s.limits.kept.asTheyAppear = 1, true
			if _, err := trace.Copy(s, copied(rows)); err != nil {
				t.Fatal(err)
			}
			return s
		}
		got, err := Compare(asPrototype(ref), asPrototype(cand.Rows))
		if err != nil {
			t.Fatal(err)
		}
		limits := DefaultThresholds(int64(n))
		seen := 0
		for name, w := range want {
			of, known := prototypeNames[name]
			if !known {
				if w.Limit != nil {
					t.Errorf("%s of the prototype is not gated", name)
				}
				continue
			}
			seen++
			m, _ := got.Measure(of.name)
			switch {
			case m.Distance == nil:
				t.Errorf("%d requests: %s is not measured, by the prototype it is %v", n, of.name, *w.Distance)
			case of.draws > 0:
				chance, found := w.Ref.(float64), w.Cand.(float64)
				if math.Abs(*m.Cand-found) > 1e-6 {
					t.Errorf("%d requests: %s finds %v, the prototype %v", n, of.name, *m.Cand, found)
				}
				if se := math.Sqrt(*m.Ref * (1 - *m.Ref) / float64(of.draws*n)); math.Abs(*m.Ref-chance) > 4*se {
					t.Errorf("%d requests: %s by chance is %v, by the prototype %v, more than four times %v apart", n, of.name, *m.Ref, chance, se)
				}
			case of.within > 0 && slices.Contains(copyMeasures, of.name): // ours is 0 for what chance may give
				if above := max(0, *m.Cand-*m.Ref); math.Abs(above-*w.Distance) > of.within {
					t.Errorf("%d requests: %s is %v above chance, by the prototype %v", n, of.name, above, *w.Distance)
				}
			case math.Abs(*m.Distance-*w.Distance) > max(of.within, 1e-6):
				t.Errorf("%d requests: %s is %v, by the prototype %v", n, of.name, *m.Distance, *w.Distance)
			}
			if n >= 5000 && limits[of.name] != *w.Limit { // of fewer requests ours grow as their sampling errors do
				t.Errorf("%d requests: the limit of %s is %v, of the prototype %v", n, of.name, limits[of.name], *w.Limit)
			}
		}
		if seen != len(prototypeNames) {
			t.Errorf("%d of %d measures were compared", seen, len(prototypeNames))
		}
	}
}

// mooncakeFile writes rows as the lines of the Mooncake release.
func mooncakeFile(t *testing.T, dir, name string, rows []trace.Request) string {
	t.Helper()
	var text bytes.Buffer
	for _, r := range rows {
		ids, err := json.Marshal(r.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": %s}`+"\n", r.ArrivalNS/1e6, r.InputTokens, *r.OutputTokens, ids)
	}
	path := filepath.Join(dir, name+".jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
