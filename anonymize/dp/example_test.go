package dp_test

import (
	"fmt"

	"reprise/anonymize/dp"
)

func Example() {
	c := dp.DefaultContribution
	plan, err := dp.NewPlan(dp.Budget{Epsilon: 1, Delta: 1e-6}, []dp.Measurement{
		c.Measurement("input", 64, 1), c.Measurement("output", 64, 1),
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s, ±%.1f in each cell\n", plan.Mechanism, plan.Noise[0].SD)
	counts := make([]int64, 64)
	fmt.Println(plan.Noise[0].Add(dp.NewNoise(), counts))
	// Output:
	// discrete Laplace, ±22.6 in each cell
	// <nil>
}
