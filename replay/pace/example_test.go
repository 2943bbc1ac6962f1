package pace_test

import (
	"context"
	"fmt"
	"time"

	"reprise/replay/pace"
)

// Requests are sent when they are due, counted from one start.
func Example() {
	start := time.Now()
	thread, err := pace.NewThread(start)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer thread.Close()
	for _, due := range []time.Duration{0, 2 * time.Millisecond, 3 * time.Millisecond} {
		if err := thread.WaitUntil(context.Background(), due); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(due, "early:", time.Since(start) < due)
	}
	// Output:
	// 0s early: false
	// 2ms early: false
	// 3ms early: false
}
