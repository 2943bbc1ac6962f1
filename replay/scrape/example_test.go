package scrape_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"reprise/replay/scrape"
)

func Example() {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",pod="team-a-7f9c"} 3
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.5
`)
	}))
	defer engine.Close()

	s, err := scrape.New(scrape.Options{Targets: []scrape.Target{{Name: "engine", URL: engine.URL}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sample := range s.Once(context.Background()) {
		fmt.Printf("%s: %s{%s} = %g\n", sample.Series.Target, sample.Series.Metric, sample.Series.Labels, sample.Value)
	}
	// Output: engine: vllm:num_requests_running{engine=0} = 3
}
