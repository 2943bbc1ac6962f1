package flags

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/replay/report"
)

// parse reads a command line with --trust.
func parse(keys []string, args ...string) (*Trust, *cobra.Command, error) {
	var t Trust
	cmd := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
	t.Register(cmd, keys...)
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	return &t, cmd, cmd.Execute()
}

// Each key of --trust sets its limit, as its old flag does, and nothing else.
func TestTrustKeys(t *testing.T) {
	values := map[string]struct {
		value string
		set   func(*report.Limits)
	}{
		"max-lag":              {"7s", func(l *report.Limits) { l.LagP99 = 7 * time.Second }},
		"max-lag-p50":          {"0", func(l *report.Limits) { l.LagP50 = 0 }},
		"max-lag-p999":         {"1h", func(l *report.Limits) { l.LagP999 = time.Hour }},
		"max-lag-drift":        {"-1ns", func(l *report.Limits) { l.LagDrift = -1 }},
		"max-errors":           {"0.07", func(l *report.Limits) { l.Errors = 0.07 }},
		"max-refused":          {"0", func(l *report.Limits) { l.Refused = 0 }},
		"max-connect-failures": {"-1", func(l *report.Limits) { l.Connect = -1 }},
		"max-held-back":        {"12.5%", func(l *report.Limits) { l.HeldBack = 0.125 }},
		"max-cpu":              {"0.5", func(l *report.Limits) { l.CPU = 0.5 }},
		"max-gc-pause":         {"1m", func(l *report.Limits) { l.GCPause = time.Minute }},
		"max-stall":            {"off", func(l *report.Limits) { l.Stall = -1 }},
		"max-stall-ttft":       {"30%", func(l *report.Limits) { l.StallTTFT = 0.3 }},
		"max-stall-gap":        {"0.2", func(l *report.Limits) { l.StallGap = 0.2 }},
		"max-prompt-error":     {"3%", func(l *report.Limits) { l.Prompt = 0.03 }},
		"max-output-error":     {"off", func(l *report.Limits) { l.Output = -1 }},
		"max-extra-hits":       {"0.5", func(l *report.Limits) { l.ExtraHits = 0.5 }},

		"max-impossible-counts": {"2%", func(l *report.Limits) { l.Impossible = 0.02 }},
		"max-clock-jump":        {"9ms", func(l *report.Limits) { l.ClockJump = 9 * time.Millisecond }},
	}
	if len(values) != len(report.LimitList()) {
		t.Errorf("%d values for %d keys", len(values), len(report.LimitList()))
	}
	for _, l := range report.LimitList() {
		v := values[l.Key]
		want := report.DefaultLimits()
		v.set(&want)
		if old, _, err := parse(nil, "--"+l.Key+"="+v.value); err != nil || old.Limits != want {
			t.Errorf("--%s=%s: %+v and %v", l.Key, v.value, old.Limits, err)
		}
		trust, cmd, err := parse(nil, "--trust", l.Key+"="+v.value)
		if err != nil || trust.Limits != want {
			t.Errorf("--trust %s=%s: %+v and %v", l.Key, v.value, trust.Limits, err)
		}

		// A command line that is written down reads back as the same limits.
		again, _, err := parse(nil, "--trust", cmd.Flags().Lookup("trust").Value.String())
		if err != nil || again.Limits != want {
			t.Errorf("%s: %+v and %v, read back from %q", l.Key, again.Limits, err, cmd.Flags().Lookup("trust").Value)
		}
		if !cmd.Flags().Lookup(l.Key).Hidden {
			t.Errorf("--%s is in the help", l.Key)
		}
		if def := report.DefaultLimits(); !strings.Contains(cmd.Flags().FlagUsages(), " "+l.Key+"="+limit(l).text(&def)+" ") {
			t.Errorf("the help of --trust has no line for %s=%s", l.Key, limit(l).text(&def))
		}
	}
}

func TestTrustValues(t *testing.T) {
	want := report.DefaultLimits()
	want.Errors, want.LagP99, want.CPU, want.Stall = 0.05, time.Second, -1, -1
	for _, args := range [][]string{
		{"--trust", "max-errors=5%,max-lag=1s,max-cpu=off,max-stall=off"},
		{"--trust", "max-errors=0.05, max-lag=1000ms", "--trust", "max-cpu=off,max-stall=off"},
		{"--max-errors", "0.05", "--max-lag", "2s", "--max-lag", "1s", "--trust", "max-stall=off", "--max-cpu", "-1"},
	} {
		if got, _, err := parse(nil, args...); err != nil || got.Limits != want {
			t.Errorf("%v: %+v, %v", args, got.Limits, err)
		}
	}
}

func TestTrustRefuses(t *testing.T) {
	all := []string(nil)
	for _, c := range []struct {
		keys []string
		args string
		want string
	}{
		{all, "--trust max-lagg=1s", `no limit "max-lagg"; there are max-lag, max-lag-p50,`},
		{all, "--trust =1s", `no limit ""`},
		{all, "--trust max-lag", "KEY=LIMIT"},
		{all, "--trust max-lag=1s,", "KEY=LIMIT"},
		{all, "--trust max-lag=1", `max-lag: "1" is not a time with its unit: write 100ms, 1s or off`},
		{all, "--trust max-lag=5%", "is not a time with its unit"},
		{all, "--trust max-errors=5ms", `max-errors: "5ms" is not a share: write 1%, 0.01 or off`},
		{all, "--trust max-errors=NaN", "is not a share"},
		{all, "--trust max-errors=", "is not a share"},
		{all, "--trust max-errors=Off", "is not a share"},
		{all, "--trust max-errors=5", "at most 100%"},
		{all, "--trust max-cpu=150%", "at most 100%"},
		{all, "--trust max-lag=1s,max-lag=2s", "max-lag is given twice"},
		{all, "--trust max-lag=1s --trust max-lag=1s", "max-lag is given twice"},
		{all, "--trust max-lag=1s --max-lag 1s", "max-lag is given by --trust and by --max-lag; give it once"},
		{all, "--max-lag 1s --trust max-lag=1s", "give it once"},
		{all, "--max-lag 1", "is not a time with its unit"},
		{[]string{"max-errors"}, "--trust max-lag=1s", "there are max-errors"},
		{[]string{"max-errors"}, "--max-lag 1s", "unknown flag"},
	} {
		if _, _, err := parse(c.keys, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
}
