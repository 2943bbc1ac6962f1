package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// wholeRun is a run with everything that can happen to requests, of sessions, and its rows.
func wholeRun(t *testing.T, seed uint64, n int) (result.Run, []result.Result) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	rows := resulttest.Messy(rng, n)
	values := []string{"a", "b", "c", "d"}
	last := map[int64]int64{}
	for i := range rows {
		r := &rows[i]
		session := rng.Int64N(int64(n/5 + 1))
		r.Session, r.ArrivalNS = &session, trace.Ptr(int64(i)*1e8)
		if before, ok := last[session]; ok {
			r.Parents = []int64{before}
		}
		last[session] = r.RowID
		if r.SentNS != nil {
			r.ReleasedNS = r.SentNS
			if r.DoneNS == nil {
				r.DoneNS = trace.Ptr(*r.SentNS + 5)
			}
		}
		r.Served = []int32{rng.Int32N(5) - 1}
		r.Endpoint = trace.Ptr(rng.Int32N(2))
	}
	run := result.Run{Version: "v1", Started: "2026-05-01T12:00:00Z"}
	run.Workload, run.Timing, run.Speed = "0123456789abcdef", result.Causal, 1
	run.Endpoints, run.Served = []string{"http://a", "http://b"}, []result.Served{{Header: "X-Pod", Values: values}}
	run.ClientCPU, run.Cores = 0.5, 2
	run.Stalls = &result.Stalls{AboveNS: 5e6}
	for i := range int64(40) {
		run.Stalls.Add(result.Stall{FromNS: i * 1e9, ToNS: i*1e9 + 7e6})
	}
	run.Beyond, run.Skipped, run.ShortTails, run.Odd.NoDone = 3, 4, 5, 6
	run.Wire = &result.Wire{Dials: 7, DialsMinute: 7, Waited: 2, LocalPorts: 28232, Note: "n"}
	run.Window = &result.Window{From: &result.Place{DueNS: 2e9}, To: &result.Place{DueNS: 55e9}}
	return run, rows
}

// counted fills in what a run counts of its rows, by brute force.
func counted(run result.Run, rows []result.Result) result.Run {
	run.Requests, run.Unprepared, run.PlannedNS, run.MaxInFlight, run.Drift = 0, 0, 0, 0, nil
	var turns []time.Duration
	least, most, sum := rows[0].DueNS, rows[0].DueNS, 0.
	for i := range rows {
		r := &rows[i]
		least, most = min(least, r.DueNS), max(most, r.DueNS)
		if r.Error == result.KindPrepare {
			run.Unprepared++
		} else {
			run.Requests++
		}
		if r.ReleasedNS == nil {
			continue
		}
		if len(r.Parents) > 0 {
			turns = append(turns, time.Duration(r.DueNS-*r.ArrivalNS))
			sum += float64(r.DueNS - *r.ArrivalNS)
		}
		at := 0
		for k := range rows {
			if o := &rows[k]; o.ReleasedNS != nil && *o.ReleasedNS <= *r.ReleasedNS && *o.DoneNS > *r.ReleasedNS {
				at++
			}
		}
		run.MaxInFlight = max(run.MaxInFlight, at)
	}
	run.PlannedNS = most - least
	if len(turns) > 0 {
		run.Drift = result.DriftOf(int64(len(turns)), sum, slices.Max(turns), turns)
	}
	return run
}

// split writes the results of a run as those of shards, by whole sessions, and returns where.
func split(t *testing.T, run result.Run, rows []result.Result, of int) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	settings, err := result.SettingsDigest(run)
	if err != nil {
		t.Fatal(err)
	}
	number := map[int64]int{}
	shares := make([][]result.Result, of)
	for i, r := range rows {
		session := int64(-1 - i) // one without is one by itself
		if r.Session != nil {
			session = *r.Session
		}
		if _, seen := number[session]; !seen {
			number[session] = len(number)
		}
		k := number[session] % of
		shares[k] = append(shares[k], r)
	}
	for i := range of {
		own := counted(run, shares[i])
		own.Shard = &result.Shard{Share: result.Share{Index: i, Of: of}, Settings: settings, StartClock: run.Started}
		if i > 0 { // what no row tells is counted once
			own.Excluded, own.NotSent, own.Beyond, own.Skipped, own.ReadLate, own.ShortTails, own.HeldBack = 0, 0, 0, 0, 0, 0, 0
			own.Odd, own.Cut, own.Server = result.Odd{}, nil, nil
			if own.Wire != nil {
				own.Wire = &result.Wire{LocalPorts: own.Wire.LocalPorts, Note: own.Wire.Note, ServerCloses: own.Wire.ServerCloses}
			}
		}
		if run.Served == nil {
			paths = append(paths, written(t, dir, i, own, shares[i]))
			continue
		}
		// Each shard has seen values of its own, in its own order.
		perm := rand.New(rand.NewPCG(uint64(i), 1)).Perm(4)
		own.Served = []result.Served{{Header: "X-Pod"}}
		to := map[int32]int32{-1: -1}
		for k, p := range perm {
			own.Served[0].Values = append(own.Served[0].Values, run.Served[0].Values[p])
			to[int32(p)] = int32(k)
		}
		mine := slices.Clone(shares[i])
		for k := range mine {
			mine[k].Served = []int32{to[mine[k].Served[0]]}
		}
		paths = append(paths, written(t, dir, i, own, mine))
	}
	return paths
}

func written(t *testing.T, dir string, i int, run result.Run, rows []result.Result) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("s%d.parquet", i))
	if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return path
}

func summaryOf(t *testing.T, path string) report.Summary {
	t.Helper()
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := report.Summarise(f.Run, f.Reader(), report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// difference is the first place in which two values differ.
func difference(a, b reflect.Value, at string) string {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return ""
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !a.Type().Field(i).IsExported() {
				continue
			}
			if d := difference(a.Field(i), b.Field(i), at+"."+a.Type().Field(i).Name); d != "" {
				return d
			}
		}
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			return difference(a.Elem(), b.Elem(), at)
		}
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if d := difference(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
	}
	return fmt.Sprintf("%s: %+v, want %+v", at, a.Interface(), b.Interface())
}

// The report of a run that was split into shards and merged is that of the run itself, and so
// are its rows and its metrics.
func TestMergeIsTheWhole(t *testing.T) {
	for seed := range uint64(12) {
		run, rows := wholeRun(t, seed, 300)
		run = counted(run, rows)
		of := []int{2, 3, 8}[seed%3]
		paths := split(t, run, rows, of)
		dir := filepath.Dir(paths[0])
		metrics := []result.Metric{{AtNS: -1, Target: "s", Name: "m", Kind: "gauge", Value: 1}, {AtNS: 5, Target: "s", Name: "m", Kind: "gauge", Value: 2}}
		for i, path := range paths { // the second measured the same server, a third another run
			started := run.Started
			if i == 2 {
				started = "x"
			}
			if err := result.WriteMetrics(result.MetricsName(path), &result.Run{Started: started}, &trace.SliceReader[result.Metric]{Rows: slices.Clone(metrics)}); err != nil {
				t.Fatal(err)
			}
		}
		set, err := Open([]string{dir}, false)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "r.parquet")
		merged, err := set.Merge(out)
		if err != nil {
			t.Fatal(err)
		}
		set.Close()
		whole := filepath.Join(t.TempDir(), "w.parquet")
		if err := result.Write(whole, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
			t.Fatal(err)
		}
		got, want := summaryOf(t, out), summaryOf(t, whole)
		if len(merged.Shards) != of || merged.Shards[1].Index != 1 || len(got.Run.Shards) != of {
			t.Fatalf("%d shards are said", len(merged.Shards))
		}
		got.Run.Shards = nil
		got.Verdict.Checks = slices.DeleteFunc(got.Verdict.Checks, func(c report.Check) bool { return c.Code == "shards_apart" })
		// Values of headers are numbered in the order of the shards.
		got.Run.Served, want.Run.Served = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("seed %d: the reports differ: %s", seed, difference(reflect.ValueOf(got), reflect.ValueOf(want), "summary"))
		}
		m, err := result.OpenMetrics(out)
		if err != nil {
			t.Fatal(err)
		}
		var read []result.Metric
		if err := trace.Each(m.Reader(), func(_ int64, x *result.Metric) error { read = append(read, *x); return nil }); err != nil || !reflect.DeepEqual(read, metrics) || m.Started != merged.Started {
			t.Errorf("metrics %+v, %v", read, err)
		}
		m.Close()
	}
}

// What is no whole set is refused, each shard that is at fault by name.
func TestRefusals(t *testing.T) {
	run, rows := wholeRun(t, 1, 200)
	paths := split(t, run, rows, 4)
	rewrite := func(change func(*result.Run)) string {
		f, err := result.Open(paths[1])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		path := filepath.Join(t.TempDir(), "x.parquet")
		own := f.Run
		shard := *own.Shard
		own.Shard = &shard
		change(&own)
		if err := result.Write(path, own, f.Reader()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(path string) []string { return []string{paths[0], path, paths[2], paths[3]} }
	foreign := rewrite(func(r *result.Run) { r.Workload = "fedcba9876543210" })
	faster := rewrite(func(r *result.Run) { r.Speed, r.Shard.Settings = 2, "other" })
	older := rewrite(func(r *result.Run) { r.Version = "v0" })
	more := rewrite(func(r *result.Run) { r.Shard.Of = 5 })
	whole := rewrite(func(r *result.Run) { r.Shard = nil })
	twice := rewrite(func(r *result.Run) {})
	stolen := rewrite(func(r *result.Run) { r.Shard.Index = 2 })
	stopped := rewrite(func(r *result.Run) { r.EndedEarly = "interrupted" })
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{paths[:3], []string{"shard 3/4 is missing"}},
		{[]string{paths[0], paths[3]}, []string{"shard 1/4 is missing", "shard 2/4 is missing"}},
		{with(foreign), []string{foreign + " is of another load: its workload has the digest fedcba987654, the " +
			"others' is 0123456789ab", "shard 1/4 is missing"}},
		{with(faster), []string{faster + " is of another load: its settings have the digest other, the others' is ",
			"(speed: 2, not 1)"}},
		{with(older), []string{older + " is of another load: Reprise v0 sent it, and v1 the others"}},
		{with(more), []string{more + " is of another load: it is one of 5, the others are of 4"}},
		{with(stopped), []string{"shard 1/4 ended early: interrupted"}},
		{with(whole), []string{whole + " is no shard"}},
		{append(slices.Clone(paths), twice), []string{"shard 1/4 is there twice: " + paths[1] + " and " + twice}},
		{[]string{paths[0], paths[1], stolen, paths[3]}, nil},
		{[]string{t.TempDir()}, []string{"there are no results in"}},
	} {
		set, err := Open(c.paths, false)
		if c.want == nil { // its index says that it is the set's, and its rows that they are another's
			if err == nil {
				_, err = set.Merge(filepath.Join(t.TempDir(), "r.parquet"))
			}
			if !errors.Is(err, ErrNoSet) || !strings.Contains(err.Error(), "was sent by shards 1/4 and 2/4") {
				t.Errorf("rows that two shards have: %v", err)
			}
			continue
		}
		for _, want := range c.want {
			if !errors.Is(err, ErrNoSet) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v\nwant %s", c.paths, err, want)
			}
		}
	}
}

// A shard that was killed has left a journal: it is named, and taken only where that is asked for.
func TestUnfinishedShard(t *testing.T) {
	run, rows := wholeRun(t, 3, 200)
	paths := split(t, run, rows, 4)
	f, err := result.Open(paths[2])
	if err != nil {
		t.Fatal(err)
	}
	j, err := result.CreateJournal(result.JournalName(paths[2]), f.Run)
	if err != nil {
		t.Fatal(err)
	}
	half := make([]result.Result, 20)
	n, err := f.Reader().Read(half)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if _, err := j.Write(half[:n]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Close(), f.Close(), os.Remove(paths[2])); err != nil {
		t.Fatal(err)
	}
	for _, inputs := range [][]string{paths, {filepath.Dir(paths[0])}} {
		_, err = Open(inputs, false)
		if want := "shard 2/4 did not finish: " + result.JournalName(paths[2]) + " is its journal"; !errors.Is(err, ErrNoSet) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", inputs, err, want)
		}
	}
	set, err := Open(append(paths[:1:1], paths[2]), true)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	merged, err := set.Merge(filepath.Join(t.TempDir(), "r.parquet"))
	if err != nil || len(set.Gaps()) != 3 || !strings.Contains(merged.EndedEarly, "shard 1/4 is missing") ||
		!strings.Contains(merged.EndedEarly, "shard 2/4: it did not finish") {
		t.Errorf("%v, gaps %q, ended early: %s", err, set.Gaps(), merged.EndedEarly)
	}
}

// Two processes of one machine have one clock, and a peer that is ahead is measured to be.
func TestMeasureClock(t *testing.T) {
	clock, err := ListenClock("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	got, err := MeasureClock(t.Context(), clock.conn.LocalAddr().String())
	off, uncertain := time.Duration(got.OffsetNS).Abs(), time.Duration(got.UncertaintyNS)
	if err != nil || got.Exchanges != exchanges || off > uncertain || uncertain > time.Second {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := MeasureClock(ctx, "127.0.0.1:9"); err == nil {
		t.Error("nobody answers there")
	}
}

// The offset and its error follow from the four instants of an exchange, whatever the ways there
// and back are, and the instants of the year 2036 and later are read too.
func TestExchange(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 1000 {
		sent := time.Unix(rng.Int64N(4e9), rng.Int64N(1e9)) // to the year 2096
		offset := time.Duration(rng.Int64N(20e9) - 10e9)
		there, back, within := time.Duration(rng.Int64N(5e6)), time.Duration(rng.Int64N(5e6)), time.Duration(rng.Int64N(1e6))
		request := make([]byte, packetSize)
		token := rng.Uint64()
		request[0] = modeClient
		binary.BigEndian.PutUint64(request[transmitAt:], token)
		packet := answer(request, sent.Add(there+offset), func() time.Time { return sent.Add(there + offset + within) })
		e, err := readAnswer(packet, token, sent, sent.Add(there+within+back))
		wrong := (e.offset - offset).Abs()
		if want := (there + back) / 2; err != nil || wrong > e.uncertainty || (e.uncertainty-want).Abs() > 3 || (wrong-(there-back).Abs()/2).Abs() > 3 {
			t.Fatalf("%v: %v ± %v, truly %v, there in %v and back in %v (%v)", sent, e.offset, e.uncertainty, offset, there, back, err)
		}
		if _, err := readAnswer(packet, token+1, sent, sent.Add(time.Second)); err == nil {
			t.Fatal("the answer to another request is taken")
		}
	}
}

// Whatever a peer sends is an error or an offset, and no panic.
func FuzzReadAnswer(f *testing.F) {
	sent := time.Unix(1.7e9, 0)
	request := make([]byte, packetSize)
	request[0] = modeClient
	f.Add(answer(request, sent, time.Now), uint64(0))
	f.Add([]byte{modeServer}, uint64(1))
	f.Fuzz(func(t *testing.T, packet []byte, token uint64) {
		e, err := readAnswer(packet, token, sent, sent.Add(time.Millisecond))
		if err == nil && e.uncertainty <= 0 {
			t.Errorf("an offset of %v is certain", e.offset)
		}
	})
}
