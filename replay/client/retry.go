package client

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"reprise/replay/openai"
	"reprise/replay/result"
)

const (
	maxBackoff    = 30 * time.Second
	maxRetryAfter = time.Minute // a server may ask for more, and does not get it
)

// again says whether a failed request is to be sent once more, and after what time.
// These classes alone are: no connection, and a server that says that it is full, which
// has done no work; and a pooled connection that was dead when it was used, where not a
// byte has come back. Anything else may have been computed already.
func (h *HTTP) again(t *try, r *result.Result) (wait time.Duration, ok bool) {
	if int(r.Attempts) > h.opt.Retries {
		return 0, false
	}
	switch r.Error {
	case openai.KindConnect, openai.KindRateLimited, openai.KindUnavailable:
	case openai.KindReset:
		return 0, t.reused.Load() && !t.answered.Load()
	default:
		return 0, false
	}
	rounds := r.Attempts // in which all servers failed it that may be asked
	if h.opt.RetryOther {
		rounds /= int32(len(h.targets))
	}
	if rounds == 0 {
		return 0, true
	}
	wait = min(h.opt.Backoff<<min(rounds-1, 20), maxBackoff)
	if r.RetryAfterNS != nil && r.HTTPStatus != nil {
		wait = max(wait, min(time.Duration(*r.RetryAfterNS), maxRetryAfter))
	}
	return wait, true
}

// move gives a call to the next server. Its body is copied, since the connection on
// which it failed may still be reading. A header that cannot be written for that
// server, which none for the first can be, leaves the call where it is.
func (h *HTTP) move(c *httpCall) {
	next, body := *c, (*c.body)[c.at:]
	next.target, next.head, next.at = (c.target+1)%len(h.targets), "", 0
	if w := h.targets[next.target].wire; w != nil {
		var err error
		if next.head, err = w.headOf(&next); err != nil {
			return
		}
		next.at = len(next.head) + lengthRoom
	}
	next.body = new(append(make([]byte, next.at, next.at+len(body)), body...))
	*c = next
}

// pause waits before a retry and makes the Result ready for it. It is false when the
// request's time is up.
func (t *try) pause(ctx context.Context, wait time.Duration, s *result.Shot, r *result.Result) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		r.Error = openai.ClassifyError(ctx.Err())
		r.DoneNS = new(int64(time.Since(s.Start)))
		return false
	}
	if r.SentNS == nil {
		// There was no connection to write to: what waits from here on is the server's.
		r.SentNS = new(t.start)
	}
	r.Error, r.HTTPStatus, r.HeadersNS, r.DoneNS = "", nil, nil, nil
	return true
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110, 10.2.3).
func retryAfter(header interface{ Get(name string) string }, now time.Time) (ns int64, ok bool) {
	v := strings.TrimSpace(header.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(v, 10, 31); err == nil {
		return int64(seconds) * int64(time.Second), true
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	return max(int64(at.Sub(now)), 0), true
}
