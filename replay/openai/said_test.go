package openai

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var saidBodies = map[string]string{
	`{"error":{"message":"too long","type":"x","code":400}}`:                                                                          "too long",
	`{"error":"Request failed during generation","error_type":"generation"}`:                                                          "Request failed during generation",
	`{"object":"error","message":"no such model","code":404}`:                                                                         "no such model",
	`{"detail":"Unexpected fields in the request: {'min_tokens', 'ignore_eos'}"}`:                                                     "Unexpected fields in the request: {'min_tokens', 'ignore_eos'}",
	`{"detail":[{"type":"extra_forbidden","loc":["body","min_tokens"],"msg":"Extra inputs are not permitted","input":"the secret"}]}`: "min_tokens: Extra inputs are not permitted",
	`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`:                                                     "Overloaded",
	`{"type":"response.failed","response":{"error":{"code":"server_error","message":"gone"}}}`:                                        "gone",
	`{"error":{"error":{"error":{"error":{"message":"deep"}}}}}`:                                                                      "",
	"<html><body>502</body></html>":                                                                                                   "",
	"upstream connect error\n\tor disconnect":                                                                                         "upstream connect error or disconnect",
	"{}": "", "": "", "null": "", "[]": "", "7": "",
}

func TestSaid(t *testing.T) {
	for body, want := range saidBodies {
		if got := Said([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	if got := Said([]byte(strings.Repeat("é", 1000))); utf8.RuneCountInString(got) != maxSaid || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}

func FuzzSaid(f *testing.F) {
	for body := range saidBodies {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if got := Said(body); utf8.RuneCountInString(got) > maxSaid || strings.ContainsAny(got, "\r\n") || !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
	})
}
