package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/longtest"
	"reprise/trace/textpage"
)

// tinyTrace is an output on disk with a few rows and such metadata.
func tinyTrace(t *testing.T, meta trace.Meta, rows ...trace.Request) *Output {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write(rows)
		return meta, err
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// textOutput is an output on disk of such text.
func textOutput(t *testing.T, text string) *Output {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// Each check that lacks something says what it lacks, in the order of the checks.
func TestRunSaysWhatChecksLack(t *testing.T) {
	longtest.Skip(t)
	why := func(r Result) (out []string) {
		for _, f := range r.Findings {
			if f.Status == Skipped {
				out = append(out, f.Check+": "+f.Why)
			}
		}
		return out
	}
	run := func(c *Case) Result {
		var told []string
		c.Progress = func(check string) { told = append(told, check) }
		r, err := Run(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range r.Findings {
			names = append(names, f.Check)
		}
		if want := []string{"card", "times", "ids", "container", "free-text", "canaries", "numbers", "linkage",
			"composition"}; !slices.Equal(names, want) || !slices.Equal(told, want) {
			t.Errorf("ran %v and told of %v, want %v", names, told, want)
		}
		return r
	}
	const (
		noTrace   = ": the output is no trace"
		unsourced = ": it needs the source log (--source) or a trace of tier internal (--internal)"
		noPlanted = ": it needs the list of planted canaries (--canaries)"
		alone     = "composition: it needs other outputs of the same source: audit OUTPUT OTHER …"
	)
	o := tinyTrace(t, trace.Meta{Tier: anonymize.Partner}, trace.Request{InputTokens: 1})
	r := run(&Case{Output: o, Version: "3"})
	if got, want := why(r), []string{"times" + unsourced, "canaries" + noPlanted, "numbers" + noPlanted,
		alone}; !slices.Equal(got, want) {
		t.Errorf("a trace alone lacks\n%q, want\n%q", got, want)
	}
	r.Findings = nil
	d := trace.NewDigest()
	d.Add([]trace.Request{{InputTokens: 1}})
	if want := (Result{Schema: "audit/1", Version: "3", Kind: "trace", Tier: "partner", Digest: d.Sum(), FileSHA256: r.FileSHA256}); !reflect.DeepEqual(r, want) || len(r.FileSHA256) != 64 {
		t.Errorf("%+v, want %+v", r, want)
	}
	r = run(&Case{Output: textOutput(t, `{"tier":"partner"}`), Canaries: []string{"12345"}})
	if got, want := why(r), []string{"times" + noTrace, "ids" + noTrace, "container: the output is no Parquet",
		"canaries: no strings were planted", "linkage" + noTrace, alone}; !slices.Equal(got, want) {
		t.Errorf("a document lacks\n%q, want\n%q", got, want)
	}
	house := run(&Case{Output: tinyTrace(t, trace.Meta{Tier: anonymize.Internal}), Internal: linkTrace(t, trace.Meta{}, nil)})
	if got, want := why(house)[:1], []string{
		"times: it is of tiers partner and public: tier internal keeps exact times, and says so"}; !slices.Equal(got, want) {
		t.Errorf("a trace of tier internal lacks\n%q, want\n%q", got, want)
	}
	if _, err := Run(t.Context(), &Case{Output: o}, []string{"card", "cards"}); !errors.Is(err, ErrNoCheck) ||
		err.Error() != "unknown check: want one or more of card, times, ids, container, free-text, canaries, "+
			"numbers, linkage, composition" {
		t.Errorf("an unknown check: %v", err)
	}
	some, err := Run(t.Context(), &Case{Output: o}, []string{"ids", "card"})
	if err != nil || len(some.Findings) != 2 || some.Findings[0].Check != "card" || some.Findings[1].Check != "ids" {
		t.Errorf("of two checks: %+v, %v", some.Findings, err)
	}
}

// A run that is stopped is an error, with what was found before.
func TestRunStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &Case{Output: textOutput(t, `{"tier":"partner"}`), Progress: func(check string) {
		if check == "ids" {
			stop()
		}
	}}
	r, err := Run(ctx, c, nil)
	if !errors.Is(err, context.Canceled) || len(r.Findings) != 3 {
		t.Errorf("%d checks, %v", len(r.Findings), err)
	}
	c = &Case{Output: textOutput(t, `{"tier":"partner"}`), Progress: func(string) { stop() }}
	if _, err := Run(ctx, c, []string{"composition"}); !errors.Is(err, context.Canceled) {
		t.Errorf("in the last check: %v", err)
	}
	closed := tinyTrace(t, trace.Meta{}, trace.Request{})
	closed.Close()
	if r, err := Run(t.Context(), &Case{Output: closed}, nil); err == nil || len(r.Findings) != 0 {
		t.Errorf("of a closed file: %+v, %v", r.Findings, err)
	}
}

// A result tells what an error ended.
func TestUnsettled(t *testing.T) {
	for name, c := range map[string]struct {
		findings []Finding
		want     string
	}{
		"nothing":             {nil, ""},
		"few rows":            {[]Finding{{Check: "times", Status: Inconclusive}}, ""},
		"a check that failed": {[]Finding{{Check: "times", Status: Fail}}, ""},
		"an error ended one": {[]Finding{{Check: "card", Status: Pass}, {Check: "times", Status: Inconclusive,
			broken: true}}, "times"},
	} {
		if got := (&Result{Findings: c.findings}).Unsettled(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if f := broken(io.ErrUnexpectedEOF); !reflect.DeepEqual(f, Finding{Status: Inconclusive, Why: "it could not be run to its end: unexpected EOF", broken: true}) {
		t.Errorf("%+v", f)
	}
}

// The answer as text: what failed or was inconclusive is whole, and the others are named. As many
// findings as there are checks fit a screen.
func TestAnswerAsText(t *testing.T) {
	write := func(findings ...Finding) string {
		var b strings.Builder
		p, err := Page(t.Context(), &Case{Output: &Output{}}, &Result{Kind: kindTrace, Tier: "partner", Findings: findings})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.WriteText(&b, textpage.Options{Width: 60, Rest: "Every check: --details."}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := `Do not share this: 2 of 4 checks that ran failed, 1
inconclusive, 2 skipped.
ids failed: Computed.
times failed: Exact to the second in three of four requests.
container was inconclusive: No source.

Checks
✕ failed        ids, times
? inconclusive  container
✓ passed        linkage
– skipped       noise: of no model
– skipped       canaries: of no tier

Tier          partner (sessions drawn from noisy counts,
              none of them real; for a partner under
              contract)
Kind of file  trace

Every check: --details.
`
	if got := write(Finding{Check: "linkage", Status: Pass, Why: "few"}, Finding{Check: "container",
		Status: Inconclusive, Why: "no source"},
		Finding{Check: "noise", Status: Skipped, Why: "of no model"}, Finding{Check: "canaries", Status: Skipped, Why: "of no tier"},
		Finding{Check: "ids", Status: Fail, Why: "computed"}, Finding{Check: "times", Status: Fail, Why: "exact to the second in three of four requests"}); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := write(); !strings.HasPrefix(got, "No check was run.\n") {
		t.Errorf("of no check:\n%s", got)
	}
	for _, status := range []Status{Pass, Skipped, Inconclusive, Fail} {
		var all []Finding
		for _, c := range Checks() {
			all = append(all, Finding{Check: c.Name, Status: status, Why: strings.Repeat("because ", 40)})
		}
		text := write(all...)
		if n := strings.Count(text, "\n"); n > textpage.AnswerLines && (status == Pass || status == Skipped) {
			t.Errorf("%d lines:\n%s", n, text)
		}
		if n := strings.Count(strings.ToLower(text), "because"); n != 40*len(Checks()) && (status == Fail || status == Inconclusive) {
			t.Errorf("%d of %d words:\n%s", n, 40*len(Checks()), text)
		}
	}
}

// Names of files are taken out of what is found, wherever they stand.
func TestFindingsWithoutPaths(t *testing.T) {
	c := &Case{Paths: []string{"", "/a/log", "/b"}, Output: &Output{path: "/out.parquet"}}
	if got := c.withoutPaths("/a/log:3 and /a/log:4 of /b in /out.parquet"); got != "the source:3 and the source:4 of the source in the output" {
		t.Error(got)
	}
	if got := (&Case{Output: &Output{}}).withoutPaths("as it is"); got != "as it is" {
		t.Error(got)
	}
}

// A source log is imported once, whatever asks for it, and a trace of tier internal in
// its place is taken as it is.
func TestBefore(t *testing.T) {
	log := logOf(t, traffic(30, 3, 10))
	opened, open := 0, log.Open
	log.Open = func() (*Opened, error) { opened++; return open() }
	c := &Case{Log: log}
	for range 2 {
		src, err := c.Before(t.Context())
		if err != nil || src.Meta.Digest == "" {
			t.Fatal(src.Meta, err)
		}
	}
	if opened != 1 {
		t.Errorf("the log was read %d times", opened)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	house := &Case{Log: log, Internal: linkTrace(t, trace.Meta{Timing: "of the house"}, nil)}
	if src, err := house.Before(t.Context()); err != nil || src.Meta.Timing != "of the house" || opened != 1 {
		t.Errorf("%+v, %v, read %d times", src.Meta, err, opened)
	}
	if err := house.Close(); err != nil {
		t.Error(err)
	}
	log.Open = func() (*Opened, error) { return nil, errors.New("no log") }
	if _, err := (&Case{Log: log}).Before(t.Context()); err == nil || err.Error() != "no log" {
		t.Errorf("of a log that does not open: %v", err)
	}
}
