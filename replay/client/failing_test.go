package client

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay"
	"reprise/replay/engine"
	"reprise/replay/openai"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/longtest"
)

// failingRun replays rows and returns the results in their order, one for each.
func failingRun(t *testing.T, r replay.Runner, rows []trace.Request) (result.Run, []result.Result) {
	t.Helper()
	var out trace.SliceWriter[result.Result]
	r.Prompter = words{}
	run, err := r.Run(t.Context(), reader(rows), &out)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out.Rows, func(a, b result.Result) int { return int(a.RowID - b.RowID) })
	if len(out.Rows) != len(rows) || run.Requests != int64(len(rows)) {
		t.Fatalf("%d results of %d, %d sent", len(out.Rows), len(rows), run.Requests)
	}
	for i, r := range out.Rows {
		if r.RowID != int64(i) || r.DoneNS == nil {
			t.Fatalf("result %d is of row %d, done %v", i, r.RowID, r.DoneNS)
		}
	}
	return run, out.Rows
}

func failingRows(n int, gap time.Duration) []trace.Request {
	rows := workload(every(gap, n)...)
	for i := range rows {
		rows[i].InputTokens = 5
	}
	return rows
}

// Ten thousand refused connections are ten thousand results that say so, and
// nothing hangs.
func TestServerThatRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	_, results := failingRun(t, replay.Runner{Endpoint: endpoint(t, Options{URL: url})},
		failingRows(10_000, 100*time.Microsecond))
	for _, r := range results {
		if r.Error != openai.KindConnect || r.SentNS != nil || r.HeadersNS != nil || r.Output != nil {
			t.Fatalf("row %d: %+v", r.RowID, r)
		}
	}
}

// An endpoint that goes away in the middle of a run: what was answered stays,
// what was in flight broke, and all that follows finds nobody.
func TestServerThatGoes(t *testing.T) {
	const n, gone = 400, 150
	s, err := engine.NewServer(quirkConfig())
	if err != nil {
		t.Fatal(err)
	}
	handler := s.Handler()
	var seen atomic.Int64
	left := make(chan struct{})
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) == gone {
			srv.Listener.Close()
			go func() {
				srv.CloseClientConnections()
				close(left)
			}()
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	_, results := failingRun(t, replay.Runner{Endpoint: endpoint(t, Options{URL: srv.URL})},
		failingRows(n, 5*time.Millisecond)) // a busy machine closes late
	<-left
	count := map[string]int{}
	for _, r := range results {
		count[r.Error]++
	}
	if count[""] == 0 || count[openai.KindConnect] < n/4 || count[""]+count[openai.KindConnect]+
		count[openai.KindReset] != n {
		t.Errorf("classes %v", count)
	}
	if last := results[n-1].Error; last != openai.KindConnect {
		t.Errorf("the last request: %q", last)
	}
}

// A server that never answers costs each request its time limit, and no more.
func TestServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := quirkConfig()
		c.Quirks = "hang"
		h, end := virtualEndpoint(t, c, Options{Timeout: 3 * time.Second})
		defer end()
		_, results := failingRun(t, replay.Runner{Endpoint: h, Pacer: sleeper}, failingRows(200, 10*time.Millisecond))
		for _, r := range results {
			if r.Error != openai.KindTimeout || *r.DoneNS != r.DueNS+int64(3*time.Second) || r.HeadersNS != nil ||
				r.SentNS == nil {
				t.Fatalf("row %d: %s, done %v after it was due", r.RowID, r.Error, time.Duration(*r.DoneNS-r.DueNS))
			}
		}
	})
}

// Faults at random: every request has one result, those that were spared are as
// exact as ever, and another run gives the same.
func TestServerThatFailsAtRandom(t *testing.T) {
	longtest.Skip(t)
	const n = 1000
	play := func(t *testing.T) (results []result.Result, odd result.Odd) {
		synctest.Test(t, func(t *testing.T) {
			c := truthConfig(20*time.Millisecond, time.Millisecond)
			c.FaultSeed = 5
			c.Faults = "error=503+retry-after=1:5%,error=429:5%,reset:4%,cut:3%,hang:2%,stall=5s:3%,error-mid-stream:3%,no-done:6%,crlf+split-writes:10%,multi-token-events:10%"
			h, end := virtualEndpoint(t, c, Options{Timeout: 10 * time.Second, ForceOutput: true})
			defer end()
			_, results = failingRun(t, replay.Runner{Endpoint: h, Pacer: sleeper}, failingRows(n, 7*time.Millisecond))
			odd = h.odd.counts()
		})
		return results, odd
	}
	results, odd := play(t)
	count := map[string]int{}
	var fates strings.Builder
	for _, r := range results {
		count[r.Error]++
		fmt.Fprintln(&fates, quirkSummary(&r, result.Odd{}), quirkInstants(&r))
		if r.Error == "" && r.Events == 7 && *r.SentNS != r.DueNS {
			t.Errorf("row %d was sent %d ns late", r.RowID, *r.SentNS-r.DueNS)
		}
		if r.Error == "" && *r.LastTokenNS-*r.SentNS != int64(26*time.Millisecond) &&
			*r.LastTokenNS-*r.SentNS < int64(5*time.Second) {
			t.Errorf("row %d took %v", r.RowID, time.Duration(*r.LastTokenNS-*r.SentNS))
		}
	}
	for _, class := range []string{"", openai.KindUnavailable, openai.KindRateLimited, openai.KindReset,
		openai.KindTimeout, openai.KindStream} {
		if count[class] == 0 {
			t.Errorf("no result of class %q in %v", class, count)
		}
		delete(count, class)
	}
	if len(count) > 0 {
		t.Errorf("other classes: %v", count)
	}
	if odd.RetryAfter == 0 || odd.NoDone == 0 || odd.Uncounted == 0 || odd.Malformed+odd.NoUsage+odd.Choices != 0 {
		t.Errorf("odd answers: %+v", odd)
	}
	again, oddAgain := play(t)
	var other strings.Builder
	for _, r := range again {
		fmt.Fprintln(&other, quirkSummary(&r, result.Odd{}), quirkInstants(&r))
	}
	if other.String() != fates.String() || oddAgain != odd {
		t.Error("another run has other results")
	}
}

// A client that hangs up frees the server's place with the step under way, through TCP's end:
// the request behind it is answered as if it had come then.
func TestHangingUpFreesThePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := truthConfig(20*time.Millisecond, 10*time.Millisecond)
		c.Engine.MaxSeqs = 1
		h, end := virtualEndpoint(t, c, Options{ForceOutput: true})
		defer end()
		gone := make(chan struct{})
		go func() {
			fire(t, h, trace.Request{InputTokens: 5, OutputTokens: trace.Ptr[int32](100_000)}, 1003*time.Millisecond)
			close(gone)
		}()
		synctest.Wait()
		r := fire(t, h, trace.Request{InputTokens: 5, OutputTokens: trace.Ptr[int32](1)}, 0)
		<-gone
		if want := int64(1020 * time.Millisecond); r.Error != "" || *r.FirstTokenNS-*r.SentNS != want {
			t.Errorf("%q, first token after %v", r.Error, time.Duration(*r.FirstTokenNS-*r.SentNS))
		}
	})
}
