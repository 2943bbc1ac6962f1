package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A Pusher sends a summary to a Prometheus Pushgateway, where it takes the place of
// what was pushed for the same job before.
type Pusher struct {
	URL         string // of the gateway; or whole, with /metrics/job/… at its end
	Credentials string // user:password for basic authentication, else a bearer token; empty is none
}

// pushTimeout bounds a push, whose body is some ten kilobytes.
const pushTimeout = 30 * time.Second

// pushJob is the job of a push to a gateway's base.
const pushJob = "/metrics/job/reprise"

// Check refuses a URL that cannot be pushed to. Its errors do not quote the URL.
func (p *Pusher) Check() error {
	_, err := p.target()
	return err
}

func (p *Pusher) target() (string, error) {
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("the gateway's URL must be like http://localhost:9091")
	case u.User != nil:
		return "", errors.New("the gateway's URL must not hold a password: give it from the environment or a file")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the gateway's URL has no query")
	}
	if u.Path = strings.TrimRight(u.Path, "/"); !strings.Contains(u.Path, "/metrics/job/") {
		u.Path += pushJob
	}
	return u.String(), nil
}

// Push sends a summary. Its errors quote no credentials.
func (p *Pusher) Push(ctx context.Context, s Summary) error {
	target, err := p.target()
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := WritePrometheus(&body, s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pushTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, target, &body)
	if err != nil {
		return errors.New("report: the gateway's URL cannot be asked")
	}
	req.Header.Set("Content-Type", "text/plain; version=0.0.4")
	if user, password, basic := strings.Cut(p.Credentials, ":"); basic {
		req.SetBasicAuth(user, password)
	} else if p.Credentials != "" {
		req.Header.Set("Authorization", "Bearer "+p.Credentials)
	}
	// A redirect would take the credentials elsewhere, and lose the body.
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the URL
		}
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // what it says is a help, and no more
	return fmt.Errorf("the gateway refuses the push: HTTP %d%s", resp.StatusCode, quoted(said))
}

// quoted is what a server said, in one line; "" for a page or nothing.
func quoted(said []byte) string {
	line := Plain(strings.Join(strings.Fields(string(said)), " "))
	if line == "" || strings.HasPrefix(line, "<") {
		return ""
	}
	return ": " + line
}
