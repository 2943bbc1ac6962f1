package audit

import (
	"context"
	"fmt"
	"math"

	"reprise/anonymize/dp"
)

// dpRuns is how many times each side is played: enough to show 0.8 of ε and a
// third of it in some ten seconds.
const dpRuns = 200_000

// noise plays the mechanism that public models are made by. It judges the build
// and not the file: of the file only the claim matters, that it is one.
func noise(ctx context.Context, c *Case) Finding {
	switch o := c.Output; {
	case o.Tier() != tierPublic:
		return skipped("it is about the noise of tier %s, and the output is of tier %s", tierPublic, orNone(o.Tier()))
	case o.Kind != kindModel:
		return skipped("noise is in models of tier %s: what is generated of one adds nothing that could be told apart", tierPublic)
	}
	return playNoise(ctx, publish, dp.NewNoise, dpRuns)
}

const kindModel = "model"

// dpGames are the games: a histogram of Laplace noise where all records of a user
// may fall in one bucket, and one of Gaussian noise with the bounds of a release.
func dpGames() ([]dpGame, error) {
	budget := dp.Budget{Epsilon: 1, Delta: 1e-6}
	// Of Gaussian noise for an ε of 1 so many runs would show too little to tell:
	// its most telling events are rare.
	larger := dp.Budget{Epsilon: 4, Delta: 1e-6}
	c := dp.DefaultContribution.Records
	laplace := newDPGame(dp.Contribution{Records: c, PerCell: c}, budget)
	plan, err := dp.NewPlan(budget, []dp.Measurement{laplace.measurement()})
	if err != nil {
		return nil, err
	}
	laplace.spec = plan.Noise[0]
	gaussian := newDPGame(dp.DefaultContribution, larger)
	gaussian.spec = gaussianSpec(gaussian.measurement(), larger)
	return []dpGame{laplace, gaussian}, nil
}

// gaussianSpec is the Gaussian noise that a plan would give one measurement, also
// where Laplace noise is less.
func gaussianSpec(m dp.Measurement, b dp.Budget) dp.NoiseSpec {
	v := math.Ceil(float64(m.L2Squared) / (2 * dp.Rho(b.Epsilon, b.Delta)) * dp.Denominator)
	return dp.NoiseSpec{Measurement: m, Variance: uint64(v), SD: math.Sqrt(v / dp.Denominator)}
}

// String is a line for people.
func (b DPBound) String() string {
	return fmt.Sprintf("ε of %.3f or more, claimed %g, at most %.3f; %.3f can be shown in %d runs a side (%s of %g or more: %.4f with the user, %.4f without)",
		b.Lower, b.Epsilon, b.Limit, b.Achievable, b.Runs, b.Statistic, b.Threshold, b.With, b.Without)
}

// playNoise judges a mechanism by all games.
func playNoise(ctx context.Context, m dpMechanism, noise func() *dp.Noise, runs int) Finding {
	games, err := dpGames()
	if err != nil {
		return broken(err)
	}
	var all lines[DPBound]
	var blind bool
	for i := range games {
		if err := ctx.Err(); err != nil {
			return broken(err)
		}
		b, err := games[i].play(m, noise, runs)
		if err != nil {
			return broken(err)
		}
		all = append(all, b)
		if b.Broken() {
			return failed(Figures{"bounds": all}, "with one user more or less an event is told apart with an %s", b)
		}
		blind = blind || b.Blind()
	}
	fig := Figures{"bounds": all}
	if blind {
		return inconclusive(fig, "the play shows less than it should of a mechanism that is right: it might have missed one that is not")
	}
	return passed(fig, "one user more or less cannot be told apart with more than the ε that is claimed: of 1, %.3f shows through Laplace noise; of %g, %.3f through Gaussian noise, of which %.3f can", all[0].Lower, all[1].Epsilon, all[1].Lower, all[1].Achievable)
}
