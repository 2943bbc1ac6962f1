package main

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets/record"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/doc"
)

// shadowFlags are the flags of a candidate server.
type shadowFlags struct {
	url    string
	share  float64
	keyEnv string
}

// A shadowWriter writes the answers of both servers as the results of two runs of one
// workload, which compare reads.
type shadowWriter struct {
	pairs   chan record.Pair
	ended   chan struct{}
	side    [2]shadowSide
	written int64
	left    int64 // pairs that found no room
	err     error
}

// A shadowSide is the results of one of the two.
type shadowSide struct {
	path    string
	run     result.Run
	journal *result.Journal
	rows    []result.Result
}

// openShadow is the candidate of the flags, with a writer of results into the folder; both are
// nil where there is none.
func (f *recordFlags) openShadow(cmd *cobra.Command, begin time.Time,
	captureID string) (*record.Shadow, *shadowWriter, error) {
	if f.shadow.url == "" {
		return nil, nil, flags.Refuse(cmd, "needs --shadow", "shadow-share", "shadow-key-env")
	}
	u, err := url.Parse(f.shadow.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, nil, cli.Usagef("--shadow: want a URL such as http://candidate:8000, without a password")
	}
	if f.shadow.share <= 0 || f.shadow.share > 1 {
		return nil, nil, cli.Usagef("--shadow-share: want a share above 0 and at most 1, such as 5%%")
	}
	w := &shadowWriter{pairs: make(chan record.Pair, 1<<12), ended: make(chan struct{})}
	for i, name := range []string{"primary", "shadow"} {
		s := &w.side[i]
		s.path = filepath.Join(f.out, begin.UTC().Format("20060102T150405Z")+"-"+captureID[:8]+"-"+name+
			".results.parquet")
		s.run = result.Run{Schema: result.Schema, Version: cli.Version, Started: begin.UTC().Format(time.RFC3339Nano),
			Load:   result.Load{API: "auto", Prompts: "text", Speed: 1, Timing: result.OpenLoop, Connections: "pooled"},
			Source: result.Source{Workload: "recording:" + captureID, Tier: "internal"}}
		s.run.Endpoints = f.upstreams
		if i == 1 {
			s.run.Endpoints = []string{f.shadow.url}
			s.run.Started = begin.UTC().Add(time.Nanosecond).Format(time.RFC3339Nano) // it is another run
		}
		if s.journal, err = result.CreateJournal(result.JournalName(s.path), s.run); err != nil {
			return nil, nil, err
		}
	}
	go func() {
		defer crash.Caught()
		w.write()
	}()
	return &record.Shadow{URL: u, Share: f.shadow.share, Key: os.Getenv(f.shadow.keyEnv), Done: func(p record.Pair) {
		select {
		case w.pairs <- p:
		default:
			w.left++ // its caller takes one pair at a time
		}
	}}, w, nil
}

// write writes pairs as they come, each second, until there are no more.
func (w *shadowWriter) write() {
	defer close(w.ended)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case p, ok := <-w.pairs:
			if !ok {
				w.flush()
				return
			}
			for i, a := range []record.Answered{p.Primary, p.Shadow} {
				s := &w.side[i]
				s.rows = append(s.rows, shadowResult(p.Number, a))
			}
			if len(w.side[0].rows) >= 1000 {
				w.flush()
			}
		case <-tick.C:
			w.flush()
		}
	}
}

func (w *shadowWriter) flush() {
	n := int64(len(w.side[0].rows))
	if n == 0 {
		return
	}
	for i := range w.side {
		s := &w.side[i]
		if _, err := s.journal.Write(s.rows); err != nil {
			w.err = errors.Join(w.err, err)
		}
		s.rows = s.rows[:0]
	}
	w.written += n
}

// shadowResult is a side of a pair as a result. What the candidate was sent was due at that
// instant.
func shadowResult(number int64, a record.Answered) result.Result {
	sent := int64(a.Sent)
	after := func(d time.Duration) *int64 { return trace.Ptr(sent + int64(d)) }
	r := result.Result{RowID: number, DueNS: sent, SentNS: &sent, DoneNS: after(a.Done), Input: a.Input,
		Output: a.Output, Cached: a.Cached,
		FinishReason: trace.ClosedFinish(a.Finish), Attempts: 1}
	if a.Input != nil {
		r.WantInput = *a.Input
	}
	if a.Output != nil {
		r.WantOutput, r.OutputFrom = a.Output, result.FromUsage
	}
	if a.Status != 0 {
		r.HTTPStatus = trace.Ptr(int32(a.Status))
	}
	if a.First > 0 {
		r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.FirstContentNS = after(a.First), after(a.First),
			after(a.First), after(a.First)
		r.LastTokenNS, r.Events = after(a.Done), int32(len(a.Gaps))+1
		for _, gap := range a.Gaps {
			r.GapsNS = append(r.GapsNS, int64(gap))
		}
	}
	if a.Failed {
		r.Error = "other"
	}
	return r
}

// finish ends both files and says how to compare them. skipped are requests that the
// candidate did not get.
func (w *shadowWriter) finish(cmd *cobra.Command, skipped int64) error {
	close(w.pairs)
	<-w.ended
	if w.left += skipped; w.left > 0 {
		cli.Notef(cmd, "%s not sent to the shadow, or not written, since it did not keep up",
			doc.Many(w.left, "request"))
	}
	for i := range w.side {
		s := &w.side[i]
		if err := s.journal.Close(); err != nil {
			return err
		}
		s.run.Requests = w.written
		if err := result.Finish(result.JournalName(s.path), s.path, s.run); err != nil {
			return err
		}
	}
	if w.written == 0 {
		return errors.Join(w.err, os.Remove(w.side[0].path), os.Remove(w.side[1].path))
	}
	cli.Notef(cmd, "%s answered by both servers: reprise compare %s %s", doc.Many(w.written, "request"),
		w.side[0].path, w.side[1].path)
	return w.err
}
