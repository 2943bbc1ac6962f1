package client

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reprise/replay"
	"reprise/replay/host"
	"reprise/replay/pace"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/longtest"
)

// poisson is a workload of n short requests at a rate.
func poisson(n int, rate float64) *trace.SliceReader[trace.Request] {
	r := rand.New(rand.NewPCG(5, 6))
	rows := make([]trace.Request, n)
	at := 0.0
	for i := range rows {
		at += r.ExpFloat64() / rate * 1e9
		rows[i] = trace.Request{ArrivalNS: int64(at), InputTokens: 100, OutputTokens: trace.Ptr[int32](50)}
	}
	return &trace.SliceReader[trace.Request]{Rows: rows}
}

// lags keeps what a run's judgement needs.
type lags struct {
	sent, released []float64 // µs after due
	requests       int64
	events         int64
	failed         int64
	why            string
	unanswered     bool // requests that fail for want of an answer count
}

func (l *lags) Write(rows []result.Result) (int, error) {
	for i := range rows {
		r := &rows[i]
		l.requests++
		l.events += int64(r.Events)
		if r.Error != "" && !l.unanswered || r.SentNS == nil {
			l.failed++
			l.why = r.Error
			continue
		}
		l.sent = append(l.sent, float64(*r.SentNS-r.DueNS)/1e3)
		l.released = append(l.released, float64(*r.ReleasedNS-r.DueNS)/1e3)
	}
	return len(rows), nil
}

func (l *lags) report(b *testing.B) {
	slices.Sort(l.sent)
	slices.Sort(l.released)
	at := func(v []float64, p float64) float64 { return v[min(int(p*float64(len(v))), len(v)-1)] }
	for _, p := range []float64{50, 99, 99.9} {
		b.ReportMetric(at(l.sent, p/100), fmt.Sprintf("p%v-µs", p))
	}
	b.ReportMetric(at(l.released, 0.99), "p99-released-µs")
	b.ReportMetric(at(l.sent, 1), "max-µs")
}

// tuned sets what the command sets for a run.
func tuned(b testing.TB) {
	b.Cleanup(replay.FewCollections())
	b.Cleanup(replay.SpareProcessors())
}

// BenchmarkSendLag reports how late requests are sent: 800 a second with 50 token
// events each, 40,000 events a second, and 5,000 a second that are answered at
// once. The server is on the same cores, in a process of its own. A pacer that only
// sleeps is there for comparison. b.N is the number of requests, 10,000 at least
// since fewer have no percentiles: a minute is -benchtime 48000x and 300000x.
func BenchmarkSendLag(b *testing.B) {
	for _, load := range []struct {
		name string
		rate float64
		wireAnswers
	}{
		{"800x50", 800, wireAnswers{Tokens: 50, ITL: 20 * time.Millisecond}},
		{"5000x0", 5000, wireAnswers{}},
	} {
		for _, conns := range []string{PerRequest, Pooled} {
			for _, pacer := range []string{"thread", "realtime", "sleep"} {
				b.Run(load.name+"/"+conns+"/"+pacer, func(b *testing.B) {
					sendLag(b, load.rate, load.wireAnswers, conns, pacer)
				})
			}
		}
	}
}

func sendLag(b *testing.B, rate float64, a wireAnswers, conns, pacer string) {
	tuned(b)
	server := startWireServer(b, a)
	h := endpoint(b, Options{URL: server.url, Connections: conns, Timeout: time.Minute})
	r := paced(b, h, pacer)
	n := max(b.N, 10_000)
	var out lags
	cpu := host.CPUTime()
	b.ResetTimer()
	if _, err := r.Run(b.Context(), poisson(n, rate), &out); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	cores := (host.CPUTime() - cpu).Seconds() / b.Elapsed().Seconds()
	if got := server.stop(); out.failed > 0 || got.Requests != int64(n) || got.Events != out.events {
		b.Fatalf("%d of %d failed (%s); %d events of %d", out.failed, n, out.why, out.events, got.Events)
	}
	out.report(b)
	b.ReportMetric(cores, "cores")
	if out.events > 0 {
		b.ReportMetric(cores*b.Elapsed().Seconds()*1e6/float64(out.events), "µs/event")
	}
}

// BenchmarkSendLagSilent reports how late 5,000 requests a second are sent to a
// server that reads them and answers nothing, so that no answer stands in the way:
// 15,000, each on a connection of its own that was dialled before. It takes the same
// time whatever b.N is.
func BenchmarkSendLagSilent(b *testing.B) {
	const n = 15_000
	for _, pacer := range []string{"thread", "realtime", "sleep"} {
		b.Run(pacer, func(b *testing.B) {
			if err := CheckFiles(n); err != nil {
				b.Skip(err)
			}
			tuned(b)
			server := startWireServer(b, wireAnswers{Silent: true})
			h := endpoint(b, Options{URL: server.url, Connections: fmt.Sprintf("pooled:%d", n), Timeout: time.Duration(n)*time.Second/5000 + 2*time.Second})
			r := paced(b, h, pacer)
			r.Ahead = 10 * time.Second // all are prepared, and their connections there
			rows := poisson(n, 5000)
			for i := range rows.Rows {
				rows.Rows[i].ArrivalNS += 5e9
			}
			out := lags{unanswered: true}
			if _, err := r.Run(b.Context(), rows, &out); err != nil {
				b.Fatal(err)
			}
			if got := server.stop(); got.Requests != int64(n) || len(out.sent) != n {
				b.Fatalf("%d requests came, %d of %d were sent (%s)", got.Requests, len(out.sent), n, out.why)
			}
			out.report(b)
		})
	}
}

// paced is a Runner with one of the pacers.
func paced(b *testing.B, h *HTTP, pacer string) *replay.Runner {
	r := &replay.Runner{Prompter: words{}, Endpoint: h}
	switch pacer {
	case "sleep":
		r.Pacer = sleeper
	case "realtime":
		thread, err := pace.NewRealtime(time.Now())
		if err != nil {
			b.Skip(err)
		}
		thread.Close()
		r.Realtime = true
	}
	return r
}

// BenchmarkEvents is what an event costs the client, all that it does included, on
// the client's side alone: as fast as a server in another process sends, when one
// read finds many; and paced, when each is a wake-up of its own. b.N is the number
// of streams.
func BenchmarkEvents(b *testing.B) {
	for _, load := range []struct {
		name        string
		concurrency int
		wireAnswers
	}{
		{"unpaced", 64, wireAnswers{Tokens: 1000}},
		{"paced", 1000, wireAnswers{Tokens: 200, ITL: 20 * time.Millisecond}}, // 50,000 a second
	} {
		b.Run(load.name, func(b *testing.B) {
			tuned(b)
			server := startWireServer(b, load.wireAnswers)
			h := endpoint(b, Options{URL: server.url, Connections: Pooled})
			rows := &trace.SliceReader[trace.Request]{Rows: make([]trace.Request, max(b.N, 1000))}
			for i := range rows.Rows {
				rows.Rows[i] = trace.Request{InputTokens: 10, OutputTokens: trace.Ptr(int32(load.Tokens))}
			}
			var out lags
			cpu := host.CPUTime()
			b.ResetTimer()
			if _, err := (&replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{Concurrency: load.concurrency}}).Run(b.Context(), rows, &out); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			used := host.CPUTime() - cpu
			if got := server.stop(); out.failed > 0 || out.events != got.Events {
				b.Fatalf("%d failed (%s), %d events of %d", out.failed, out.why, out.events, got.Events)
			}
			b.ReportMetric(float64(out.events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(out.events)/used.Seconds(), "events/s-core")
			b.ReportMetric(used.Seconds()*1e6/float64(out.events), "µs/event")
		})
	}
}

// BenchmarkStreams is the memory of many streams at once: 16,000, or as many as
// may be open, each with an event now and then. It takes the same time whatever
// b.N is, which is therefore best 1.
func BenchmarkStreams(b *testing.B) {
	n := min(16000, int(host.FileLimit())-200)
	for b.Loop() {
		tuned(b)
		server := startWireServer(b, wireAnswers{Tokens: 4, ITL: 5 * time.Second})
		h := endpoint(b, Options{URL: server.url, Timeout: 2 * time.Minute})
		runtime.GC()
		debug.FreeOSMemory()
		before := residentBytes(b)
		peak := before
		rows := &trace.SliceReader[trace.Request]{Rows: make([]trace.Request, n)}
		for i := range rows.Rows { // all begin within the time to the first event
			rows.Rows[i] = trace.Request{ArrivalNS: int64(i) * 4e9 / int64(n), InputTokens: 100, OutputTokens: trace.Ptr[int32](4)}
		}
		var out lags
		run, err := (&replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{Progress: func(replay.Progress) {
			peak = max(peak, residentBytes(b))
		}}}).Run(b.Context(), rows, &out)
		if err != nil || out.failed > 0 {
			b.Fatalf("%d failed (%s), %v", out.failed, out.why, err)
		}
		b.ReportMetric(float64(run.MaxInFlight), "streams")
		b.ReportMetric(float64(peak-before)/float64(run.MaxInFlight), "B/stream-RSS")
		server.stop()
	}
}

// residentBytes is the memory of this process.
func residentBytes(b *testing.B) int64 {
	s, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("needs /proc/self/statm")
	}
	pages, err := strconv.ParseInt(strings.Fields(string(s))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// No event is lost: the client's counts are the server's, on every kind of
// connection.
func TestWireCounts(t *testing.T) {
	longtest.Skip(t)
	for _, conns := range []string{PerRequest, Pooled, "pooled:50", perSession} {
		server := startWireServer(t, wireAnswers{Tokens: 20, ITL: time.Millisecond})
		h := endpoint(t, Options{URL: server.url, Connections: conns})
		var out lags
		const n = 400
		run, err := (&replay.Runner{Prompter: words{}, Endpoint: h}).Run(t.Context(), poisson(n, 800), &out)
		got := server.stop()
		if err != nil || out.failed > 0 || run.Requests != n || got.Requests != n || got.Events != n*20 || out.events != got.Events {
			t.Errorf("%s: %d failed (%s); %d requests, %d events; the server's %+v; %v", conns, out.failed, out.why, out.requests, out.events, got, err)
		}
	}
}
