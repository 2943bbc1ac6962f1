package datasets

import (
	"strings"
	"testing"
)

func TestEvalscope(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"whole seconds from 0": {`{"body":{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":16,"stream":true},"timestamp":0,"request_id":"r","headers":{"Authorization":"secret"}}` + "\n" +
			`{"body":{"prompt":"b","cache_salt":"s","user":"u","temperature":0.5},"timestamp":2.25,"completion_tokens":9}`,
			`0s model=m user:"a" max=16 stream=true chat|2.25s user=u salt=s user:"b" out=9 temperature=0.5 completion`},
		"a body that is a string": {`{"body":"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}","timestamp":"1.5"}`, `1.5s user:"a" chat`},
		"epoch":                   {`{"body":{"prompt":"b"},"timestamp":1760000000.25}`, `488888h53m20.25s user:"b" completion`},
		"dates":                   {`{"body":{"prompt":"b"},"timestamp":"2026-01-02T03:04:05Z"}`, `490923h4m5s user:"b" completion`},
	} {
		got, info := summaries(t, c.in, Options{})
		if got != c.want || info.Format != "evalscope" {
			t.Errorf("%s: %s\n%s\n%s", name, got, c.want, info.Format)
		}
	}
	in := `{"body":{"prompt":"b"},"timestamp":0}` + "\n" + `{"body":"{","timestamp":1}` + "\n" + `{"body":{"prompt":"b"}}` + "\n" + `{"body":[],"timestamp":1}`
	all, info, err := read(strings.NewReader(in), Options{MaxBad: 1})
	if err != nil || len(all) != 1 || info.Bad != 3 || info.FirstBad[0].Error() != "log:2:9: the request is not JSON, plain or as Base64" {
		t.Errorf("%d entries, %+v, %v", len(all), info.FirstBad, err)
	}
}
