package arrival_test

import (
	"fmt"

	"reprise/trace/arrival"
)

func Example() {
	spec, err := arrival.ParseProcess("poisson:2.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	sessions := spec.New(arrival.Stream(42, "sessions"))
	for range 3 {
		fmt.Println(sessions.Next())
	}
	// Output:
	// 36.575ms
	// 450.966ms
	// 93.657ms
}
