package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// agentWorkload writes sessions of an agent that calls three others at once, each of two
// turns, joins them, and goes on: nine requests each.
func agentWorkload(t testing.TB, sessions int) (path string, rows []trace.Request) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	next := uint64(1)
	for s := range sessions {
		first := int64(len(rows))
		chain := [][]uint64{{0}}
		for i, parents := range [][]int64{nil, {0}, {0}, {0}, {1}, {2}, {3}, {0, 4, 5, 6}, {7}} {
			// A sub-agent begins with block 0; every other turn goes on with a prompt before it.
			blocks := []uint64{0}
			if from := map[int]int{4: 1, 5: 2, 6: 3, 7: 0, 8: 7}[i]; i >= 4 {
				blocks = chain[from+1]
			}
			blocks = append(slices.Clone(blocks), next)
			next++
			chain = append(chain, blocks)
			r := trace.Request{Session: trace.Ptr(int64(s)), Kind: "chat", Model: "m", Category: trace.Cold, Status: trace.StatusOK,
				ArrivalNS: int64(s) * 1e9, InputTokens: int32(16 * len(blocks)), OutputTokens: trace.Ptr(1 + rng.Int32N(6)), Blocks: blocks}
			for _, p := range parents {
				r.Parents = append(r.Parents, first+p)
			}
			if len(parents) > 0 {
				r.ArrivalNS += int64(i) * 1e8
				if r.ToolNS = trace.Ptr(int64(rng.ExpFloat64() * 2e7)); i%3 == 0 {
					r.ToolNS, r.ThinkNS = nil, r.ToolNS
				}
			}
			rows = append(rows, r)
		}
	}
	path = filepath.Join(t.TempDir(), "agents.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write(rows)
		return trace.Meta{Tier: "internal", BlockSize: 16}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, rows
}

// A sessionServer notes when each request came and when its answer ended, by the session
// and the row that its headers name.
type sessionServer struct {
	url   string
	mu    sync.Mutex
	log   []sessionCall
	stall time.Duration // the longest that this process did not run when it was due
}

type sessionCall struct {
	session, row int64
	from, to     time.Time // to is zero where the client was gone
}

func newSessionServer(t testing.TB) *sessionServer {
	t.Helper()
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Step: 1e9}
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	w := &sessionServer{}
	rng := rand.New(rand.NewPCG(3, 4))
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		call := sessionCall{from: time.Now()}
		session := strings.TrimPrefix(r.Header.Get("X-Session"), "s")
		call.session, _ = strconv.ParseInt(session, 10, 64)
		call.row, _ = strconv.ParseInt(rowOfRequest(r.Header), 10, 64)
		w.mu.Lock()
		late := time.Duration(rng.ExpFloat64() * 2e7)
		w.mu.Unlock()
		if session != "" {
			time.Sleep(late)
		}
		s.Handler().ServeHTTP(rw, r)
		if session == "" {
			return
		}
		if r.Context().Err() == nil {
			call.to = time.Now()
		}
		w.mu.Lock()
		w.log = append(w.log, call)
		w.mu.Unlock()
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	go w.watchStalls(t.Context())
	return w
}

// watchStalls notes how late a sleep ends at worst, which is what other work on the machine does to all times here.
func (w *sessionServer) watchStalls(ctx context.Context) {
	const pause = 5 * time.Millisecond
	for ctx.Err() == nil {
		begin := time.Now()
		time.Sleep(pause)
		w.mu.Lock()
		w.stall = max(w.stall, time.Since(begin)-pause)
		w.mu.Unlock()
	}
}

// checkOrder holds by the server's own log that no request came before all of its parents
// were answered.
func (w *sessionServer) checkOrder(t *testing.T, rows []trace.Request) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := map[int64]time.Time{}
	for _, c := range w.log {
		if at, ok := ended[c.row]; !c.to.IsZero() && (!ok || c.to.Before(at)) {
			ended[c.row] = c.to
		}
	}
	for _, c := range w.log {
		for _, p := range rows[c.row].Parents {
			if at, ok := ended[p]; !ok || c.from.Before(at.Add(-time.Millisecond)) { // the log is a moment behind the answer
				t.Errorf("row %d came at %v, its parent %d was over at %v", c.row, c.from, p, at)
			}
		}
	}
	if len(ended) != len(rows) {
		t.Errorf("%d of %d rows were answered", len(ended), len(rows))
	}
}

// checkLive holds by the server's own log that so many sessions are live at every instant:
// the next starts when one is over, and no sooner.
func (w *sessionServer) checkLive(t *testing.T, live int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	type span struct{ from, to time.Time }
	spans := map[int64]span{}
	for _, c := range w.log {
		s, ok := spans[c.session]
		if !ok || c.from.Before(s.from) {
			s.from = c.from
		}
		if c.to.After(s.to) {
			s.to = c.to
		}
		spans[c.session] = s
	}
	var starts, ends []time.Time
	for _, s := range spans {
		starts, ends = append(starts, s.from), append(ends, s.to)
	}
	slices.SortFunc(starts, time.Time.Compare)
	slices.SortFunc(ends, time.Time.Compare)
	var gaps []time.Duration
	for i := live; i < len(starts); i++ {
		gap := starts[i].Sub(ends[i-live])
		if gaps = append(gaps, gap); gap < -time.Millisecond {
			t.Errorf("session %d in order starts %v before a place is free", i, -gap)
		}
	}
	slices.Sort(gaps)
	worst := gaps[len(gaps)-1]
	if worst > 250*time.Millisecond+w.stall {
		t.Errorf("a place stayed empty for %v, and the machine stalled for %v at most", worst, w.stall)
	}
	if most := gaps[len(gaps)*9/10]; most > 250*time.Millisecond {
		t.Errorf("nine of ten places stayed empty for up to %v", most)
	}
	t.Logf("%d sessions in %d places; the longest that a place stayed empty is %v, and the longest stall %v", len(starts), live, worst, w.stall)
}

// 200 sessions of an agent that calls three others, over a server of random latency: its
// own log shows the causal order and so many live sessions.
func TestSessionsAtAServer(t *testing.T) {
	long(t)
	w, rows := agentWorkload(t, 200)
	server, out := newSessionServer(t), filepath.Join(t.TempDir(), "r.parquet")
	must(t, "replay", w, "--url", server.url, "-o", out, "--quiet", "--sessions", "20", "--set", "affinity-header=X-Session")
	server.checkOrder(t, rows)
	server.checkLive(t, 20)
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := f.Run.Sessions.Counts
	if live := c.LiveTrees; live.Min != 20 || live.Max != 20 || c.Started != 200 || c.Finished != 200 || f.Run.Timing != result.ClosedLoop {
		t.Errorf("%+v, live %+v", c, live)
	}
	threads := []int32{0, 1, 2, 3, 1, 2, 3, 0, 0}
	turns := []int32{0, 0, 0, 0, 1, 1, 1, 1, 2}
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		i := r.RowID % 9
		if r.Thread == nil || *r.Thread != threads[i] || *r.Turn != turns[i] || *r.Play != 0 || !slices.Equal(r.Parents, rows[r.RowID].Parents) ||
			(r.ThinkNS == nil) != (rows[r.RowID].ThinkNS == nil) || (r.ToolNS == nil) != (rows[r.RowID].ToolNS == nil) {
			t.Errorf("row %d: %+v", r.RowID, r)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// With --thread a turn's prompt is that of the turn before, the server's reply, and new text
// such as tool results, as long as recorded in all; what is expected in the cache is there.
func TestSessionsThread(t *testing.T) {
	long(t)
	w, rows := agentWorkload(t, 30)
	server, out := newSessionServer(t), filepath.Join(t.TempDir(), "r.parquet")
	must(t, "replay", w, "--url", server.url, "-o", out, "--quiet", "--sessions", "5", "--set", "affinity-header=X-Session", "--thread", "--server-block-size", "1")
	server.checkOrder(t, rows)
	f, err := result.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// In each session the second turns of three sub-agents, the join and the turn after it.
	if th := f.Run.Thread; th == nil || th.Threaded != 30*5 || th.Apart != 30*3 || th.Joined != 30*3 || th.NoReply+th.NoRoom+th.Longer != 0 {
		t.Errorf("%+v", th)
	}
	var known, cached int64
	err = trace.Each(f.Reader(), func(_ int64, r *result.Result) error {
		if r.Input == nil || *r.Input != r.WantInput {
			t.Errorf("row %d has a prompt of %v tokens, want %d", r.RowID, r.Input, r.WantInput)
		}
		known += int64(*r.Known)
		if r.Cached != nil {
			cached += int64(*r.Cached)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The server caches whole blocks of 16 tokens, and each of the turns may end in one.
	if lost := known - cached; lost < 0 || lost >= 16*30*5 || cached == 0 {
		t.Errorf("%d tokens known, %d cached", known, cached)
	}
}

// rowOfRequest is the row that a request is of, as its id says; "" where it says none.
func rowOfRequest(header http.Header) string {
	_, row, _ := strings.Cut(header.Get("X-Request-Id"), "-")
	row, _, _ = strings.Cut(row, "-")
	return row
}
