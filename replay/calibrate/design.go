package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"reprise/replay/engine"
	"reprise/trace/doc"
)

// A Design is the loads that the records lack for a good fit: those that make the
// intervals of the costs narrowest, one after another, by what the fitted engine says that
// they would show (a D-optimal design, Fedorov, 1972, greedily).
type Design struct {
	Rates []float64 `json:"rates_per_s"`  // of the loads that are missing; none where the records suffice
	Long  bool      `json:"long_prompts"` // some need longer prompts than were recorded
	Why   []string  `json:"why"`
	// Commands would record them. WORKLOAD stands for the workload of the records.
	Commands []string `json:"commands"`
}

const (
	wanted      = 0.05 // half width of an interval, as a logarithm, from which on a cost is known well
	mostMissing = 3    // loads that are asked for at once
	levelTime   = 60.0 // seconds of a load of a sweep
	leastLevel  = 60   // requests of a candidate
	mostLevel   = 400
)

// candidateLoads are rates as shares of what the engine can do.
var candidateLoads = []float64{0.1, 0.3, 0.5, 0.7, 0.85, 0.95, 1.2}

// A candidate is a load that could be recorded.
type candidate struct {
	rate float64
	long bool
	past bool // the server cannot follow
	info *mat.SymDense
}

// design finds the loads that are missing.
func (f *fitted) design() (Design, error) {
	d := Design{Rates: []float64{}, Why: []string{}, Commands: []string{}}
	names := f.config.Costs.Names()
	c := f.config // costs that were not identified stand at a third of the most that they may be
	for name, most := range f.most {
		*c.Costs.Of(name) = max(most/3, 1000)
	}
	known := mat.NewSymDense(len(names), nil)
	for _, r := range f.records {
		info, err := f.information(r, c, names)
		if err != nil {
			return d, err
		}
		known.AddSym(known, info)
	}
	capacity, err := f.capacity(c)
	if err != nil {
		return d, err
	}
	all, err := f.candidates(c, names, capacity)
	if err != nil {
		return d, err
	}
	var taken []candidate
	for len(taken) < mostMissing {
		half := halfOf(known)
		if slices.Max(half) <= wanted {
			break
		}
		best, gain := -1, 0.05 // what hardly helps is not asked for
		for i := range all {
			var with mat.SymDense
			with.AddSym(known, all[i].info)
			if g := narrower(half, halfOf(&with)); g > gain {
				best, gain = i, g
			}
		}
		if best < 0 {
			break
		}
		known.AddSym(known, all[best].info)
		taken = append(taken, all[best])
		all = slices.Delete(all, best, best+1)
	}
	f.explain(&d, names, taken)
	f.askForLimits(&d, &taken, capacity)
	d.command(f.records, taken)
	return d, nil
}

// explain says which costs are not known well.
func (f *fitted) explain(d *Design, names []string, taken []candidate) {
	for _, name := range names {
		_, dropped := f.most[name]
		switch half := f.half[name]; {
		case dropped:
			d.Why = append(d.Why, name+": its effect in these loads cannot be separated from the others'")
		case half > wanted:
			d.Why = append(d.Why, fmt.Sprintf("%s is known to a factor of %s", name, doc.Number(math.Exp(half))))
		}
	}
	if len(d.Why) > 0 && len(taken) == 0 {
		d.Why = append(d.Why, "no load of these lengths would tell more")
	}
}

// askForLimits asks for a load past saturation where none shows what makes requests wait.
func (f *fitted) askForLimits(d *Design, taken *[]candidate, capacity float64) {
	if f.told["max_num_seqs"] || f.told["kv_tokens"] || f.stated["max_num_seqs"] && f.stated["kv_tokens"] {
		return
	}
	for _, r := range f.records {
		if p := r.peak(); p.inFlight > 2*p.decoding {
			return
		}
	}
	d.Why = append(d.Why, "no load is past saturation, so max_num_seqs and kv_tokens could not be determined")
	if !slices.ContainsFunc(*taken, func(c candidate) bool { return c.past }) {
		*taken = append(*taken, candidate{rate: 1.2 * capacity, past: true})
	}
}

// command writes the loads as sweeps.
func (d *Design) command(records []*Record, taken []candidate) {
	url := "URL"
	if e := records[0].About.Endpoints; len(e) == 1 {
		url = e[0]
	}
	for _, long := range []bool{false, true} {
		var rates []float64
		past := false
		for _, c := range taken {
			if c.long == long {
				rates = append(rates, digits2(c.rate))
				past = past || c.past
			}
		}
		if len(rates) == 0 {
			continue
		}
		slices.Sort(rates)
		d.Rates, d.Long = append(d.Rates, rates...), d.Long || long
		workload := "WORKLOAD"
		if long {
			workload = "summarization"
		}
		var list []string
		for _, r := range slices.Compact(rates) {
			list = append(list, strconv.FormatFloat(r, 'g', -1, 64))
		}
		line := fmt.Sprintf("reprise sweep %s --url %s --rates %s --no-confirm -o more", workload, url,
			strings.Join(list, ","))
		if long {
			line += "-long"
		}
		if past {
			line += " --set past-saturation"
		}
		d.Commands = append(d.Commands, line)
	}
}

// digits2 keeps two digits of a rate.
func digits2(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 2, 64), 64)
	if err != nil {
		return 0
	}
	return v
}

// capacity is about how many requests per second the engine can do: all recorded ones at
// once, over the time that they take.
func (f *fitted) capacity(c engine.Config) (float64, error) {
	r := f.draw(mostLevel, math.Inf(1), false)
	p, err := r.play(c, false)
	if err != nil || p.over == 0 {
		return 1, err
	}
	return float64(len(r.requests)) / secondsOf(p.over), nil
}

// draw is a load that was not recorded, of requests with recorded lengths, or with prompts
// eight times as long.
func (f *fitted) draw(n int, rate float64, long bool) *Record {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	r := &Record{Name: "candidate"}
	at := 0.0
	for range n {
		from := f.records[rng.IntN(len(f.records))]
		q := from.requests[rng.IntN(len(from.requests))]
		one := request{sent: engine.Picos(at * 1e12), input: q.input, output: q.output,
			reused: q.reused, measured: true}
		if long {
			one.input, one.reused = 8*q.input, 0
		}
		r.requests = append(r.requests, one)
		at += rng.ExpFloat64() / rate
	}
	return r
}

// candidates are loads with what they would show.
func (f *fitted) candidates(c engine.Config, names []string, capacity float64) ([]candidate, error) {
	var all []candidate
	for _, long := range []bool{false, true} {
		for _, share := range candidateLoads {
			one := candidate{rate: share * capacity, long: long, past: share > 1}
			if long {
				one.rate /= 4 // of prompts that are eight times as long, beside answers as long as before
			}
			r := f.draw(int(min(max(one.rate*levelTime, leastLevel), mostLevel)), one.rate, long)
			p, err := r.play(c, false)
			if err != nil {
				return nil, err
			}
			for i := range r.requests { // what the engine gives stands for what is measured
				q := &r.requests[i]
				q.ttft, q.e2e, q.gap = p.ttft[i], p.e2e[i], p.gap[i]
				q.measured = p.ttft[i] > 0
			}
			if one.info, err = f.information(r, c, names); err != nil {
				return nil, err
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// information is what a record tells of the logarithms of costs, with the misses that the
// fit has.
func (f *fitted) information(r *Record, c engine.Config, names []string) (*mat.SymDense, error) {
	slopes, err := sensitivity([]*Record{r}, c, names, whole)
	if err != nil {
		return nil, err
	}
	out := mat.NewSymDense(len(names), nil)
	scale := batches / (float64(max(len(slopes[0]), 1)) * max(f.loss, exact*100))
	for _, row := range slopes[0] {
		out.SymRankOne(out, scale, mat.NewVecDense(len(names), row))
	}
	return out, nil
}

// halfOf are half widths of 95 % intervals from information; 1e3 at most, so that what is
// not told at all can be compared.
func halfOf(info *mat.SymDense) []float64 {
	n := info.SymmetricDim()
	with := mat.NewSymDense(n, nil)
	with.CopySym(info)
	for i := range n {
		with.SetSym(i, i, with.At(i, i)+1e-5)
	}
	half := make([]float64, n)
	var inverse mat.Dense
	if err := inverse.Inverse(with); err != nil {
		for i := range half {
			half[i] = 1e3
		}
		return half
	}
	for i := range half {
		half[i] = min(1.96*math.Sqrt(max(inverse.At(i, i), 0)), 1e3)
	}
	return half
}

// narrower is by how much intervals shrink, as the mean of logarithms over those that are
// not narrow enough yet.
func narrower(before, after []float64) float64 {
	sum, n := 0.0, 0
	for i := range before {
		if before[i] > wanted {
			sum += math.Log(before[i] / max(after[i], wanted))
			n++
		}
	}
	return sum / float64(max(n, 1))
}
