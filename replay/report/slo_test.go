package report

import (
	"strings"
	"testing"
	"time"
)

func TestParseSLO(t *testing.T) {
	for in, want := range map[string]string{
		"ttft:200ms":                            "ttft:200ms",
		"e2e:5s,tpot:50ms,itl:1.5ms,ttft:200ms": "ttft:200ms,tpot:50ms,itl:1.5ms,e2e:5s",
		"ttft:200ms tpot:50ms e2el:5s":          "ttft:200ms,tpot:50ms,e2e:5s",
		"ttft:1m0.5s, ":                         "ttft:1m0.5s",
	} {
		s, err := ParseSLO(in)
		if err != nil || s.String() != want {
			t.Errorf("%q: %q, %v; want %q", in, s, err, want)
		}
	}
	s, err := ParseSLO("tpot:50ms")
	if err != nil || *s.TPOT != 50*time.Millisecond || s.TTFT != nil || s.ITL != nil || s.E2E != nil {
		t.Errorf("%+v, %v", s, err)
	}
	for in, want := range map[string]string{
		"":                       "at least one",
		" , ":                    "at least one",
		"ttft":                   "objective 1 of the SLO: write it as name:duration",
		"ttft:200":               "unit",
		"ttft:secret":            "unit",
		"e2e:1s,ttft:":           "objective 2",
		"ttft:0s":                "above zero",
		"ttft:-1s":               "unit",
		"ttft:1s,ttft:2s":        "already",
		"e2e:1s,e2el:2s":         "already",
		"TTFT:1s,first_token:1s": "already",
		"secret:1s":              "not one of",
		"headers:1s":             "not one of",
		"ttft:99999999999999h":   "unit",
	} {
		_, err := ParseSLO(in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	for _, seed := range []string{"ttft:200ms,tpot:50ms", "e2el:5s itl:3us", "ttft:200", ":,:", "ttft::1s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseSLO(in)
		if err != nil {
			if s != (SLO{}) {
				t.Error("an error with objectives")
			}
			return
		}
		if s.Empty() || s.check() != nil {
			t.Errorf("%q gives %+v", in, s)
		}
		back, err := ParseSLO(s.String())
		if err != nil || back.String() != s.String() {
			t.Errorf("%q reads back as %q: %v", s, back, err)
		}
	})
}
