package audit

import (
	"context"
	"fmt"

	"reprise/anonymize/dp"
	"reprise/trace"
)

const (
	gameRuns    = 2000 // of each side; half of them choose the event
	gameUnits   = 300  // drawn from the source
	gameRows    = 3000 // and no more units after so many rows
	gamePerUnit = 500  // rows of a unit that are kept
	leastUnits  = 20

	// A control counts the unit so many times: what a mechanism would do that bounds no
	// unit.
	unbounded = 43
)

// gameEpsilons are the claims that are played.
var gameEpsilons = []float64{1, 2, 4}

// game plays the membership game: a small log of the source is measured again and again
// with and without one unit, by the code that makes releases, and an attacker who knows
// every other row, and this unit too, tells from the noisy tables which it was.
func game(ctx context.Context, c *Case) Finding {
	if !c.Game {
		return skipped("it takes minutes: ask for it (--game)")
	}
	if c.Log == nil && c.Internal == nil {
		return skipped(noSource)
	}
	return playGame(ctx, c, gameRuns, func(r *terms, rows []trace.Request, epsilon float64) (rehearsal, error) {
		return r.rehearse(ctx, rows, epsilon)
	})
}

// A rehearsal measures a log as a release does, as often as it is asked to.
type rehearsal interface {
	// Measure draws all noise anew.
	Measure() (dp.Measured, error)
	// Exact counts without noise, in the cells that a measurement chose.
	Exact(chosen string) ([][]int64, error)
}

// playGame plays every unit at every claim, each with as many runs a side.
func playGame(ctx context.Context, c *Case, runs int, rehearse func(*terms, []trace.Request, float64) (rehearsal, error)) Finding {
	if !c.Output.drawn() {
		return c.notDrawn("it is about releases with noise, and the output is none")
	}
	r, err := termsOf(c)
	if err != nil {
		return broken(err)
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	if r.meta = src.Meta; int64(src.Meta.Capture.Length()) != r.statement.CaptureNS {
		return inconclusive(nil, "the source has another capture window than the card: give the source that the output was made of")
	}
	log, err := r.draw(ctx, src, c.Seed)
	if err != nil {
		return broken(err)
	}
	fig := Figures{"units": log.units, "requests": len(log.rows)}
	if log.units < leastUnits {
		return inconclusive(fig, "the source has %d units, and the game wants %d", log.units, leastUnits)
	}
	bounds, err := playAll(ctx, c, log, runs, r.statement.Budget.Delta, func(rows []trace.Request, epsilon float64) (rehearsal, error) { return rehearse(r, rows, epsilon) })
	if err != nil {
		return broken(err)
	}
	fig["bounds"] = lines[gameBound](bounds)
	return judged(bounds, fig, r.statement.Unit)
}

// judged is what the bounds say together.
func judged(bounds []gameBound, fig Figures, unit string) Finding {
	var said, control string
	for _, b := range bounds {
		if !b.Control && b.Lower > b.Claimed {
			return failed(fig, "one %s more or less is told apart: %s", unit, b)
		}
	}
	for _, epsilon := range gameEpsilons {
		worst := 0.0
		for _, b := range bounds {
			switch {
			case b.Claimed != epsilon:
			case !b.Control:
				worst = max(worst, b.Lower)
			case b.Lower <= epsilon:
				return inconclusive(fig, "counted %d times, a %s is not told apart either (empirical ε ≥ %.2f at a claimed ε of %g): the game sees too little", unbounded, unit, b.Lower, epsilon)
			default:
				control += fmt.Sprintf(", %.2f", b.Lower)
			}
		}
		said += fmt.Sprintf(", ε ≥ %.2f at a claimed ε of %g", worst, epsilon)
	}
	return passed(fig, "empirical %s, %d runs a side, the worst of %d units each; a %s that counts %d times is seen (%s)", said[2:], bounds[0].Runs,
		len(bounds)/len(gameEpsilons)-1, unit, unbounded, control[2:])
}

// A gameBound is a lower bound of the ε that a release really has for one unit.
type gameBound struct {
	Claimed   float64 `json:"claimed_epsilon"`
	Unit      string  `json:"unit"` // which one came and went
	Control   bool    `json:"control,omitempty"`
	Runs      int     `json:"runs_a_side"`
	Lower     float64 `json:"epsilon_lower"` // 97.5 % sure on each side
	Statistic string  `json:"statistic"`
	Threshold float64 `json:"threshold"`
	With      float64 `json:"with"` // share of the runs with the unit in which the statistic was so high
	Without   float64 `json:"without"`
}

// String is a line for people.
func (b gameBound) String() string {
	of := "the " + b.Unit + " one"
	if b.Control {
		of += fmt.Sprintf(", counted %d times", unbounded)
	}
	return fmt.Sprintf("empirical ε ≥ %.3f at a claimed ε of %g, %d runs a side: %s (%s of %.4g or more: %.4f with it, %.4f without)",
		b.Lower, b.Claimed, b.Runs, of, b.Statistic, b.Threshold, b.With, b.Without)
}
