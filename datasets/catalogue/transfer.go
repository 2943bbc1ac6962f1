package catalogue

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A transfer brings the bytes of one file to its part.
type transfer struct {
	*Fetcher
	file        File
	url         string
	part, state string // names of the part and of what is known of it
	out         *os.File
	have        int64 // bytes of the part
	resumed     int64 // of them from an earlier call
	whole       bool  // ask for all of it
	known       version
	total       int64 // bytes of the file, 0 if not known
	arrived     bool  // something, in this call
}

// A version is what a server says of the file that a part is of (RFC 9110, section 8.8).
type version struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// validator is what If-Range takes: a strong ETag, or else a date.
func (v version) validator() string {
	if v.ETag != "" && !strings.HasPrefix(v.ETag, "W/") {
		return v.ETag
	}
	return v.LastModified
}

// A brokenError is of a transfer that another try may continue.
type brokenError struct {
	err   error
	after time.Duration // that the server asks to wait
}

func (e *brokenError) Error() string { return e.err.Error() }
func (e *brokenError) Unwrap() error { return e.err }

// begin looks at the part of an earlier call. Where nothing would tell that it is of
// another version of the file, it is not continued.
func (t *transfer) begin() error {
	info, err := t.out.Stat()
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(t.state); err == nil {
		_ = json.Unmarshal(text, &t.known) // half a file is as good as none
	}
	if t.known.URL != t.url {
		t.known = version{}
	}
	t.have = info.Size()
	certain := t.file.SHA256 != "" || t.file.GitBlob != "" || t.known.validator() != ""
	if t.have > 0 && (!certain || t.file.Size > 0 && t.have > t.file.Size) {
		t.note("the part that was there may be of another version: it is fetched from the beginning")
		return t.restart()
	}
	if t.resumed = t.have; t.resumed > 0 {
		t.note(fmt.Sprintf("continued at byte %d", t.resumed))
	}
	return nil
}

// restart drops what has arrived.
func (t *transfer) restart() error {
	t.have, t.resumed = 0, 0
	return t.out.Truncate(0)
}

// drop removes the part and what is known of it.
func (t *transfer) drop() error {
	var all error
	for _, name := range []string{t.part, t.state} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// run makes requests until the part is whole.
func (t *transfer) run(ctx context.Context) error {
	if t.file.Size > 0 && t.have == t.file.Size {
		return nil // the sum says whether it is
	}
	most, pause := cmp.Or(t.Tries, 5), cmp.Or(t.Pause, time.Second)
	for failed, wait := 0, pause; ; {
		before := t.have
		err := t.request(ctx)
		var broken *brokenError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("interrupted: %s", t.kept())
		case !errors.As(err, &broken):
			return err
		}
		if t.have > before {
			failed, wait = 0, pause
		}
		if failed++; failed >= most {
			return fmt.Errorf("%w, %d times: %s", err, failed, t.kept())
		}
		wait = max(wait, min(broken.after, time.Minute))
		t.note(fmt.Sprintf("%v: another try in %v", err, wait))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("interrupted: %s", t.kept())
		}
		wait *= 2
	}
}

// kept says what is there to continue with.
func (t *transfer) kept() string {
	of := ""
	if t.total > 0 {
		of = fmt.Sprintf(" of %d", t.total)
	}
	return fmt.Sprintf("%d%s bytes are in %s; run the same command again to continue", t.have, of, t.part)
}

// request asks for the rest of the file, and writes what comes.
func (t *transfer) request(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := cmp.Or(t.Stall, time.Minute)
	stalled := fmt.Errorf("%s sent nothing for %v", hostOf(t.url), stall)
	timer := time.AfterFunc(stall, func() { cancel(stalled) })
	defer timer.Stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return fmt.Errorf("%s is no URL of a file: want http:// or https://", plain(t.url))
	}
	req.Header.Set("User-Agent", "reprise")
	req.Header.Set("Accept-Encoding", "identity") // bytes of a range are then those of the file
	if t.have > 0 && !t.whole {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.have))
		if v := t.known.validator(); v != "" {
			req.Header.Set("If-Range", v)
		}
	}
	client := t.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(req)
	if err != nil {
		return t.unreachable(ctx, err)
	}
	defer answer.Body.Close()
	body, err := t.accept(answer)
	if err != nil || body == nil {
		return err
	}
	if err := t.remember(answer.Header); err != nil {
		return err
	}
	err = t.write(body, func() { timer.Reset(stall) })
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return &brokenError{err: cause}
	}
	return err
}

// accept decides what an answer means. A nil body is of a part that is whole.
func (t *transfer) accept(answer *http.Response) (io.Reader, error) {
	packed := strings.EqualFold(answer.Header.Get("Content-Encoding"), "gzip")
	switch answer.StatusCode {
	case http.StatusOK:
		if t.have > 0 {
			t.note("the server has another version of it, or sends no parts: it is fetched from the beginning")
		}
		if err := t.restart(); err != nil {
			return nil, err
		}
		t.total = max(0, answer.ContentLength)
		if packed { // though nobody asked
			t.total = 0
			return gzip.NewReader(answer.Body)
		}
		return answer.Body, t.fits()
	case http.StatusPartialContent:
		first, total, ok := contentRange(answer.Header.Get("Content-Range"))
		etag := answer.Header.Get("ETag")
		changed := t.known.ETag != "" && etag != "" && etag != t.known.ETag
		if !ok || first != t.have || packed || changed || t.whole {
			if t.whole {
				return nil, fmt.Errorf("%s answers a request for the whole file with a part of it", hostOf(t.url))
			}
			t.note("the server sent another part than the one that was asked for: it is fetched from the beginning")
			t.whole = true
			return nil, errors.Join(t.restart(), &brokenError{err: errors.New("a part that does not fit")})
		}
		t.total = total
		return answer.Body, t.fits()
	case http.StatusRequestedRangeNotSatisfiable:
		_, total, _ := contentRange(answer.Header.Get("Content-Range"))
		if total == t.have && total > 0 {
			t.total = total
			return nil, t.fits()
		}
		if t.whole {
			break
		}
		t.whole = true
		return nil, errors.Join(t.restart(), &brokenError{err: errors.New("the server has no such part")})
	}
	return nil, t.refused(answer)
}

// fits compares the length that the server states with the one of the list.
func (t *transfer) fits() error {
	if t.file.Size > 0 && t.total > 0 && t.total != t.file.Size {
		return fmt.Errorf("%s has %d bytes there, and %d in the list: it was changed since, or is another file; "+
			"nothing was fetched", plain(t.url), t.total, t.file.Size)
	}
	return nil
}

// refused is the error for an answer without a file.
func (t *transfer) refused(answer *http.Response) error {
	at := plain(t.url)
	switch code := answer.StatusCode; {
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("there is no file %s any more (%s): its makers may have moved it; --from takes "+
			"another address", at, answer.Status)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%s refuses %s (%s): it may want a login or an agreement; fetch it with a browser, or from "+
			"a copy with --from", hostOf(t.url), at, answer.Status)
	case code == http.StatusTooManyRequests || code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return &brokenError{fmt.Errorf("%s answered %s", hostOf(t.url), answer.Status),
			time.Duration(seconds) * time.Second}
	}
	return fmt.Errorf("%s answered %s for %s", hostOf(t.url), answer.Status, at)
}

// unreachable is the error for no answer. A server that nothing came from is not tried
// again where that cannot help: no such name, nobody listens.
func (t *transfer) unreachable(ctx context.Context, err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // without the URL, which may hold a password
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return &brokenError{err: cause}
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		// without the address of the resolver
		err = &net.DNSError{Err: dns.Err, Name: dns.Name, IsTimeout: dns.IsTimeout, IsNotFound: dns.IsNotFound}
	}
	if !t.arrived && (errors.As(err, &dns) && !dns.IsTimeout || errors.Is(err, syscall.ECONNREFUSED) ||
		strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "unsupported protocol")) {
		return fmt.Errorf("cannot reach %s: %w. Is this machine offline? A proxy is named by HTTPS_PROXY, a copy "+
			"elsewhere by --from", hostOf(t.url), err)
	}
	return &brokenError{err: fmt.Errorf("cannot reach %s: %w", hostOf(t.url), err)}
}

// remember writes down which version of the file the part is of.
func (t *transfer) remember(h http.Header) error {
	v := version{URL: t.url, ETag: h.Get("ETag"), LastModified: h.Get("Last-Modified")}
	if v == t.known {
		return nil
	}
	t.known = v
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(t.state, append(text, '\n'), 0o600)
}

// write puts what comes behind what is there. moved is called for every piece.
func (t *transfer) write(body io.Reader, moved func()) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			moved()
			t.arrived = true
			if t.file.Size > 0 && t.have+int64(n) > t.file.Size {
				return errors.Join(fmt.Errorf("%s sends more than the %d bytes of the list: it was changed since, or "+
					"is another file", plain(t.url), t.file.Size), t.restart())
			}
			if _, err := t.out.WriteAt(buf[:n], t.have); err != nil {
				if errors.Is(err, syscall.ENOSPC) {
					return fmt.Errorf("the disk is full: %s", t.kept())
				}
				return err
			}
			t.have += int64(n)
			if t.Progress != nil {
				t.Progress(t.have, cmp.Or(t.total, t.file.Size))
			}
		}
		want := cmp.Or(t.total, t.file.Size)
		switch {
		case err == io.EOF && (want == 0 || t.have == want):
			return nil
		case err == io.EOF:
			return &brokenError{err: fmt.Errorf("%s ended early, at byte %d of %d", hostOf(t.url), t.have, want)}
		case err != nil:
			return &brokenError{err: fmt.Errorf("%s broke off at byte %d: %w", hostOf(t.url), t.have, err)}
		}
	}
}

// contentRange reads "bytes 5-9/10", and "bytes */10" as of no part.
func contentRange(s string) (first, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	part, of, slash := strings.Cut(s, "/")
	if !ok || !slash {
		return 0, 0, false
	}
	total, _ = strconv.ParseInt(of, 10, 64) // "*" is not known
	from, to, dash := strings.Cut(part, "-")
	first, err := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	return first, total, dash && err == nil && err2 == nil && first <= last && (total == 0 || last < total)
}

// plain is a URL as it may stand in a message: without a password and what follows the
// path, where signatures are.
func plain(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "that address"
	}
	u.RawQuery, u.Fragment, u.User = "", "", nil
	return u.String()
}

func hostOf(raw string) string {
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		return u.Host
	}
	return plain(raw)
}
