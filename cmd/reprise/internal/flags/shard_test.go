package flags

import (
	"testing"
	"time"
)

// A start is as it is written, or ten seconds are rounded up, so that processes that are started
// together start together.
func TestStartClock(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 3, 250e6, time.UTC)
	for text, want := range map[string]string{
		"2026-05-01T14:00:00.5+02:00": "2026-05-01T12:00:00.5Z",
		"+30s":                        "2026-05-01T12:00:40Z",
		"+6.75s":                      "2026-05-01T12:00:10Z",
		"+6.751s":                     "2026-05-01T12:00:20Z",
		"+10min":                      "2026-05-01T12:10:10Z",
	} {
		at, err := parseStartClock(text, now)
		if got := at.Format(time.RFC3339Nano); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, err)
		}
	}
	for _, text := range []string{"", "30s", "+", "+0s", "+-3s", "12:00", "2026-05-01"} {
		if at, err := parseStartClock(text, now); err == nil {
			t.Errorf("%q is %v", text, at)
		}
	}
}
