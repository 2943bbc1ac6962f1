package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"reprise/anonymize/dp"
	"reprise/trace"
	"reprise/trace/crash"
)

// playAll plays each unit at each claim, and the heaviest one as a control, on all
// processors.
func playAll(ctx context.Context, c *Case, l *gameLog, runs int, delta float64, rehearse func([]trace.Request, float64) (rehearsal, error)) ([]gameBound, error) {
	type cell struct {
		epsilon float64
		unit    extremeUnit
		control bool
	}
	var cells []cell
	heaviest := l.leave[len(l.leave)-1]
	for _, u := range l.leave {
		if u.name == "heaviest" {
			heaviest = u
		}
	}
	for _, epsilon := range gameEpsilons {
		for _, u := range l.leave {
			cells = append(cells, cell{epsilon, u, false})
		}
		cells = append(cells, cell{epsilon, heaviest, true})
	}
	bounds, errs := make([]gameBound, len(cells)), make([]error, len(cells))
	play := func(i int) error {
		x := cells[i]
		var sides [2]rehearsal
		for j, rows := range [][]trace.Request{l.rows, l.without(x.unit.unit)} {
			var err error
			if sides[j], err = rehearse(rows, x.epsilon); err != nil {
				return err
			}
		}
		p := gamePlay{with: sides[0], without: sides[1], weight: 1, seen: map[string]*gameCounts{}}
		if x.control {
			p.weight = unbounded
		}
		for range 2 { // by chance a right one is above its claim once in some hundred plays
			b, err := p.play(ctx, runs, delta)
			if err != nil {
				return err
			}
			bounds[i] = gameBound{x.epsilon, x.unit.name, x.control, runs, b.Lower, b.Statistic, b.Threshold, b.With, b.Without}
			if x.control || b.Lower <= x.epsilon {
				break
			}
		}
		return nil
	}
	todo, done := make(chan int), make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			defer crash.Caught()
			for i := range todo {
				errs[i] = play(i)
				done <- i
			}
		})
	}
	go func() {
		defer crash.Caught()
		for i := range cells {
			todo <- i
		}
		close(todo)
		all.Wait()
		close(done)
	}()
	n := 0
	for range done {
		if n++; c.Progress != nil && n < len(cells) {
			c.Progress(fmt.Sprintf("game, %d of %d", n+1, len(cells)))
		}
	}
	return bounds, errors.Join(errs...)
}

// A gamePlay is one unit at one claim.
type gamePlay struct {
	with, without rehearsal
	weight        int64 // how many times the unit counts; 1 but for a control
	seen          map[string]*gameCounts
}

// gameCounts are the exact counts that the attacker knows, of both sides.
type gameCounts struct {
	with, without [][]float64
}

// samples of units are averaged over so many draws.
const samplesKnown = 32

// known are the counts in cells that a measurement chose.
func (p *gamePlay) known(chosen string) (*gameCounts, error) {
	if k := p.seen[chosen]; k != nil {
		return k, nil
	}
	k := &gameCounts{}
	for range samplesKnown {
		with, err := p.with.Exact(chosen)
		if err != nil {
			return nil, err
		}
		without, err := p.without.Exact(chosen)
		if err != nil {
			return nil, err
		}
		add(&k.with, with)
		add(&k.without, without)
	}
	for t := range k.with {
		for i := range k.with[t] {
			k.with[t][i] = k.without[t][i] + float64(p.weight)*(k.with[t][i]-k.without[t][i])
		}
	}
	if len(p.seen) > 256 {
		clear(p.seen)
	}
	p.seen[chosen] = k
	return k, nil
}

// add takes one sample into a mean.
func add(mean *[][]float64, sample [][]int64) {
	for t, cells := range sample {
		if t == len(*mean) {
			*mean = append(*mean, make([]float64, len(cells)))
		}
		for i, x := range cells {
			(*mean)[t][i] += float64(x) / samplesKnown
		}
	}
}

// run is what one measurement tells: the likelihood of its tables with the unit over that
// without, and how many cells there are.
func (p *gamePlay) run(side rehearsal, present bool) (ratio, cells float64, err error) {
	m, err := side.Measure()
	if err != nil {
		return 0, 0, err
	}
	k, err := p.known(m.Chosen)
	if err != nil {
		return 0, 0, err
	}
	for t, table := range m.Tables {
		cells += float64(len(table.Cells))
		for i, n := range table.Cells {
			with, without := k.with[t][i], k.without[t][i]
			if with == without {
				continue
			}
			x := float64(n)
			if present { // the rest of what a control adds
				x += (with - without) * (1 - 1/float64(p.weight))
			}
			ratio += logRatio(table.Spec, x, with, without)
		}
	}
	return ratio, cells, nil
}

// logRatio is by how much x is likelier around one count than around another.
func logRatio(s dp.NoiseSpec, x, with, without float64) float64 {
	return ((x-without)*(x-without) - (x-with)*(x-with)) * dp.Denominator / (2 * float64(s.Variance))
}

// play runs both sides, and bounds what tells them apart: either may be the likelier one,
// by much or by little of a quantity.
func (p *gamePlay) play(ctx context.Context, runs int, delta float64) (dpBound, error) {
	names := [2]string{"likelihood ratio", "number of cells"}
	var values [2][2][]float64 // quantity, side
	for range runs {
		if err := ctx.Err(); err != nil {
			return dpBound{}, err
		}
		for side, of := range []rehearsal{p.with, p.without} {
			ratio, cells, err := p.run(of, side == 0)
			if err != nil {
				return dpBound{}, err
			}
			values[0][side], values[1][side] = append(values[0][side], ratio), append(values[1][side], cells)
		}
	}
	var duels []duel
	for i, v := range values {
		with, without := v[0], v[1]
		less := "negative " + names[i]
		duels = append(duels, duel{names[i], with, without}, duel{less, negative(without), negative(with)},
			duel{less, negative(with), negative(without)}, duel{names[i], without, with})
	}
	b, told := won(duels, delta)
	if told%2 == 1 { // likelier without the unit
		b.With, b.Without = b.Without, b.With
	}
	return b, nil
}

func negative(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = -x
	}
	return out
}
