package arrival_test

import (
	"fmt"
	"time"

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

func ExampleParseProcess() {
	spec, err := arrival.ParseProcess("ramp:1-50,60s,burstiness=0.5")
	if err != nil {
		fmt.Println(err)
		return
	}
	p := spec.New(arrival.Stream(42, "sessions"))
	arrivals := make([]int, 4) // in each 20 s
	for at := p.Next(); at < 80*time.Second; at += p.Next() {
		arrivals[at/(20*time.Second)]++
	}
	fmt.Println(arrivals)
	// Output:
	// [223 465 817 1021]
}

func ExampleCascade() {
	// Bursts of five requests, 10 ms apart, each minute of an hour.
	var times []int64
	for burst := range int64(60) {
		for i := range int64(5) {
			times = append(times, burst*60e9+i*10e6)
		}
	}
	c, err := arrival.FitCascade(times, 3600e9, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	close := 0
	made := c.Times(arrival.Stream(42, "arrivals"), len(times), c.Parts())
	for i := 1; i < len(made); i++ {
		if made[i]-made[i-1] < 50e6 {
			close++
		}
	}
	fmt.Printf("%d of %d requests follow another within 50 ms; in the source 240\n", close, len(made))
	// Output:
	// 234 of 300 requests follow another within 50 ms; in the source 240
}
