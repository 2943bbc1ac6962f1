package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

func TestLiveFlag(t *testing.T) {
	long(t)
	w, url := killWorkload(t, 30, 40*time.Millisecond), killServer(t).url
	out := filepath.Join(t.TempDir(), "r.parquet")
	for _, c := range []struct {
		args []string
		code int
		says string // on stderr
		not  string
	}{
		{[]string{"--set", "live=on"}, cli.Usage, "not both a terminal", ""},
		{[]string{"--set", "live=on", "--quiet"}, cli.Usage, "cannot be used together", ""},
		{[]string{"--set", "live=yes"}, cli.Usage, "auto, on or off", ""},
		{[]string{"--max-lag", "1h", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1"}, cli.Good, "cache: prompts no earlier run has sent", "of 30 ("},
		{[]string{"--set", "live=off", "--quiet", "--max-lag", "1h", "--max-lag-p50", "1h", "--max-lag-drift", "1h", "--max-stall-ttft", "-1", "--max-stall-gap", "-1"}, cli.Good, "", "of 30 ("}, // a line is due every ten seconds
	} {
		_, errs, code := reprise(t, append([]string{"replay", w, "--url", url, "-o", out}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) || c.not != "" && strings.Contains(errs, c.not) {
			t.Errorf("%v: exit code %d: %s", c.args, code, errs)
		}
	}
}
