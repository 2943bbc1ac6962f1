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
		{100, 4, 2 * time.Second, "fit: about N left, at 4 of 100 rows\n"},
		{100, 50, 2 * time.Second, ""},
		{100, 1, time.Second, ""},
		{0, 4, 3 * time.Second, ""},
		{0, 4, 11 * time.Second, "fit: 4 rows\n"},
		{100, 99, 11 * time.Second, ""},
	} {
		var out strings.Builder
		p := &Progress{w: &out}
		p.Start("fit", "rows", c.total)
		p.begin = time.Now().Add(-c.passed)
		p.last = p.begin
		p.Set(c.done)
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
