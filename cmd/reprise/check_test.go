package main

import (
	"encoding/json"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/check"
)

// The exit code of check says whether a replay can measure the server.
func TestCheck(t *testing.T) {
	long(t)
	url := simulate(t)
	t.Setenv("OPENAI_API_KEY", "")
	out, errs, code := reprise(t, "check", "--url", url, "--json")
	var r check.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.Good || r.Schema != check.Schema || len(r.Findings) < 12 || !r.Tokenizer.Guessed {
		t.Errorf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	out, errs, code = reprise(t, "check", "--url", url, "--tokenizer", "cl100k_base", "--details")
	if code != cli.Check || errs != "reprise: the server is not ready for a replay: Tokenizer\n" || !strings.HasPrefix(out, "Not ready for a replay, for 1 reason: reprise serve at ") || !strings.Contains(out, "│ digits ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	locked := only(t, "/v1/chat/completions", "sk-planted", "{}")
	if _, errs, code = reprise(t, "check", "--url", locked.URL); code != cli.Failure || errs != "reprise: GET "+locked.URL+"/v1/models: HTTP 401: \"You didn't provide an API key.\"\nSet OPENAI_API_KEY to the API key, or name another variable with --api-key-env.\n" {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	t.Setenv("OPENAI_API_KEY", "sk-planted")
	if out, errs, code = reprise(t, "check", "--url", locked.URL); code != cli.Good || !strings.Contains(out, "Auth           a key is needed\n") || strings.Contains(out+errs, "sk-planted") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = reprise(t, "check", "--url", locked.URL, "--api", "completions"); code != cli.Failure || !strings.HasSuffix(errs, "reprise: the server has no completions API below the path of its URL\n") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
	if out, errs, code = reprise(t, "check", "--url", url, "--api", "chat"); code != cli.Good || !strings.Contains(out, "Template       tokens added to a prompt: chat 22 ") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	if _, errs, code = reprise(t, "check", "--url", url, "--url", url); code != cli.Usage || !strings.HasPrefix(errs, "reprise: check asks one server: give --url once\n") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
