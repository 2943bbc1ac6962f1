package datasets

import (
	"io"
	"testing"
	"time"

	"reprise/trace"
)

func TestDemo(t *testing.T) {
	log, err := Demo()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	all, info, err := read(log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if info.Format != "openai-log" || info.Bad != 0 || info.Notes != nil || !info.HasTimes || !info.HasText || !info.HasUsers || !info.HasSessions {
		t.Errorf("%+v", info)
	}
	failed, sessions := 0, map[string]int{}
	for i := range all {
		e := &all[i]
		if i > 0 && e.Time.Before(all[i-1].Time) {
			t.Errorf("entry %d arrives before the one above it", i)
		}
		if e.Status == trace.StatusFailed {
			failed++
		} else if e.Reply == nil || e.InputTokens == nil || e.OutputTokens == nil || e.TTFT == nil || e.E2E == nil || *e.TTFT > *e.E2E {
			t.Errorf("entry %d lacks something", i)
		}
		sessions[e.Session.Reveal()]++
	}
	span := all[len(all)-1].Time.Sub(all[0].Time)
	if len(all) < 220 || failed == 0 || len(sessions) != 61 || span < 25*time.Second || span > 30*time.Second {
		t.Errorf("%d entries, %d failed, %d sessions, %v", len(all), failed, len(sessions), span)
	}
	if len(demoLog) > 400<<10 {
		t.Errorf("the log is %d bytes", len(demoLog))
	}
	if _, err := io.Copy(io.Discard, log); err != nil {
		t.Error(err)
	}
}
