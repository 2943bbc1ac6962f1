package cli

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// A long step says how long the rest of it takes once that can be known, and then each ten seconds; a short one, or one
// whose length is unknown, says nothing of it.
func TestProgressSaysHowLong(t *testing.T) {
	for _, c := range []struct {
		total, done int64
		passed      time.Duration
		says        string
	}{
		{100, 4, 2 * time.Second, "fit: 4 of 100 rows, about N left\n"},
		{100, 50, 2 * time.Second, ""},
		{100, 1, time.Second, ""},
		{0, 4, 3 * time.Second, ""},
		{0, 4, 11 * time.Second, "fit: 4 rows\n"},
		{100, 99, 11 * time.Second, ""},
	} {
		var out strings.Builder
		p := &Progress{w: &out}
		p.Start("fit", "rows", c.total)
		p.mu.Lock() // a clock looks each second
		p.begin = time.Now().Add(-c.passed)
		p.last = p.begin
		p.mu.Unlock()
		p.Set(c.done)
		p.End()
		said := regexp.MustCompile(`about \S+ left`).ReplaceAllString(out.String(), "about N left") // by the clock
		if said != c.says {
			t.Errorf("%d of %d rows after %v: %q, want %q", c.done, c.total, c.passed, said, c.says)
		}
	}

	p := &Progress{begin: time.Now(), total: 100, done: 4}
	if left, known := p.left(p.begin.Add(2 * time.Second)); !known || left != 48*time.Second {
		t.Errorf("%v left, and 4 of 100 rows took two seconds", left)
	}
}

// The time that is left is that of all steps of a plan. A step that counts nothing takes as long as its part says,
// and one that is made again is estimated by itself.
func TestProgressOfAPlan(t *testing.T) {
	p := &Progress{w: new(strings.Builder), quiet: true, plan: []Step{{Name: "read", Part: 1}, {Name: "swap", Part: 2},
		{Name: "write", Part: 1, Done: func() float64 { return 0.5 }}}}
	at := time.Now()
	left := func(step string, total, done int64, begun, passed time.Duration) string {
		p.Start(step, "rows", total)
		p.start, p.begin, p.done = at, at.Add(begun), done
		if left, known := p.left(at.Add(passed)); known {
			return left.String()
		}
		return "unknown"
	}
	for _, c := range []struct {
		step          string
		total, done   int64
		begun, passed time.Duration
		want          string
	}{
		{"read", 100, 0, 0, 5 * time.Second, "unknown"},
		{"read", 100, 50, 0, 5 * time.Second, "35s"},
		{"swap", 0, 0, 10 * time.Second, 20 * time.Second, "20s"},
		{"swap", 0, 0, 10 * time.Second, 100 * time.Second, "43s"}, // over its part: nine tenths of it at most
		{"write", 0, 7, 30 * time.Second, 35 * time.Second, "5s"},
		{"read", 100, 50, 40 * time.Second, 45 * time.Second, "5s"},
		{"swap", 0, 0, 50 * time.Second, 60 * time.Second, "unknown"},
	} {
		if got := left(c.step, c.total, c.done, c.begun, c.passed); got != c.want {
			t.Errorf("%+v: %s left", c, got)
		}
	}
}
