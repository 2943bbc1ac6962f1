package runs

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/client"
	"reprise/replay/openai"
)

// A server that is full or loads its model is asked again for 31 s; what else is wrong is
// told at once.
func TestUntilFree(t *testing.T) {
	loading := &client.SetupError{Asked: "GET http://h/v1/models", Kind: openai.KindUnavailable, Status: http.StatusServiceUnavailable, Said: "Loading model"}
	full := &client.SetupError{Asked: "GET http://h/v1/models", Kind: openai.KindRateLimited, Status: http.StatusTooManyRequests}
	refused := &client.SetupError{Asked: "GET http://h/v1/models", Kind: openai.KindAuth, Status: http.StatusUnauthorized}
	for _, c := range []struct {
		name    string
		answers []error // then the last again
		want    error
		took    time.Duration
		said    string
	}{
		{"free", []error{nil}, nil, 0, ""},
		{"refused", []error{refused}, refused, 0, ""},
		{"loading, then full, then free", []error{loading, full, nil}, nil, 3 * time.Second, "endpoint: HTTP 503; trying again in 1s\nendpoint: HTTP 429; trying again in 2s\n"},
		{"loading for ever", []error{loading}, loading, 31 * time.Second, "endpoint: HTTP 503; trying again in 1s\nendpoint: HTTP 503; trying again in 2s\nendpoint: HTTP 503; trying again in 4s\n" +
			"endpoint: HTTP 503; trying again in 8s\nendpoint: HTTP 503; trying again in 16s\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var errs bytes.Buffer
			cmd := new(cobra.Command)
			cmd.SetErr(&errs)
			cmd.SetContext(context.Background())
			began, n := time.Now(), 0
			err := untilFree(cmd, func() error {
				answer := c.answers[min(n, len(c.answers)-1)]
				n++
				return answer
			})
			if took := time.Since(began); !errors.Is(err, c.want) || took != c.took || errs.String() != c.said {
				t.Errorf("%s: %v after %v, %q", c.name, err, took, errs.String())
			}
		})
	}
}

// What cannot be tried against a server of a test.
func TestAdvised(t *testing.T) {
	t.Setenv(flags.DefaultKeyEnv, "")
	target := flags.Target{URLs: []string{"http://gpu.example:8000"}}
	for _, c := range []struct {
		err  client.SetupError
		want string
	}{
		{client.SetupError{Asked: "GET http://gpu.example:8000/v1/models", Kind: openai.KindConnect, Failure: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "gpu.example", IsNotFound: true}}},
			"GET http://gpu.example:8000/v1/models: dial tcp: lookup gpu.example: no such host\n" +
				"Host not found: check the spelling of --url, and the network or VPN that it is in."},
		{client.SetupError{Asked: "GET http://gpu.example:8000/v1/models", Kind: openai.KindUnavailable, Status: http.StatusServiceUnavailable, Said: "Loading model"},
			"GET http://gpu.example:8000/v1/models: HTTP 503: \"Loading model\"\n" +
				"The server is full or still starting. Try again, or wait for it with --ready-check-timeout-sec 300."},
		{client.SetupError{Asked: "POST http://gpu.example:8000/v1/completions", API: "completions", Kind: openai.KindNotFound, Status: http.StatusNotFound, Model: "m", Models: []string{"a", "b"}},
			"POST http://gpu.example:8000/v1/completions: HTTP 404\n" +
				"The server has no model \"m\". It has: a, b. Name one with --model."},
		{client.SetupError{Asked: "POST http://gpu.example:8000/v1/completions", API: "completions", Kind: openai.KindBadRequest, Status: http.StatusBadRequest, Said: "no"},
			"POST http://gpu.example:8000/v1/completions: HTTP 400: \"no\""},
	} {
		if got := advised(&c.err, &target).Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
