package catalogue

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// content is what a server has, and what the list says of it.
func content(n int) ([]byte, File) {
	text := make([]byte, n)
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range text {
		text[i] = byte(rng.Uint32())
	}
	whole, blob := sha256.Sum256(text), sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", n), text...))
	return text, File{Name: "f", Size: int64(n), SHA256: hex.EncodeToString(whole[:]), GitBlob: hex.EncodeToString(blob[:])}
}

// A place is a server with one file, and faults in its first answers.
type place struct {
	text []byte
	etag string

	mu     sync.Mutex
	faults []func(w http.ResponseWriter, r *http.Request) bool // false: it answers itself
	asked  []string                                            // the ranges
	ifs    []string
}

// well forgets the faults, and what was asked for.
func (p *place) well() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.asked = nil, nil
}

// ranges are those that were asked for.
func (p *place) ranges() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	var fault func(http.ResponseWriter, *http.Request) bool
	if n := len(p.asked); n < len(p.faults) {
		fault = p.faults[n]
	}
	p.asked, p.ifs = append(p.asked, r.Header.Get("Range")), append(p.ifs, r.Header.Get("If-Range"))
	p.mu.Unlock()
	if p.etag != "" {
		w.Header().Set("ETag", p.etag)
	}
	if fault != nil && fault(w, r) {
		return
	}
	http.ServeContent(w, r, "", time.Unix(1_700_000_000, 0), bytes.NewReader(p.text))
}

// cutAt breaks the connection off behind so many bytes of the file.
func (p *place) cutAt(end int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		from := 0
		if s := r.Header.Get("Range"); s != "" {
			fmt.Sscanf(s, "bytes=%d-", &from)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(p.text)-1, len(p.text)))
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(p.text)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		w.Write(p.text[from:end])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func fetcher(t *testing.T) *Fetcher {
	return &Fetcher{Pause: time.Millisecond, Note: func(s string) { t.Log(s) }}
}

// check fetches and compares the file with what the server has.
func check(t *testing.T, f *Fetcher, file File, url, path string, want []byte) Fetched {
	t.Helper()
	got, err := f.Fetch(t.Context(), file, url, path)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
		t.Fatalf("%d bytes, %v: want the %d of the server", len(b), err, len(want))
	}
	left, err := filepath.Glob(path + ".part*")
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if sum := sha256.Sum256(want); got.SHA256 != hex.EncodeToString(sum[:]) || got.Bytes != int64(len(want)) {
		t.Errorf("%+v", got)
	}
	return got
}

// A transfer that breaks off is continued in the same call, from the byte it has, and
// bound to the version of the file by If-Range.
func TestCutOff(t *testing.T) {
	text, file := content(3 << 20)
	p := &place{text: text, etag: `"v1"`}
	p.faults = []func(http.ResponseWriter, *http.Request) bool{p.cutAt(1 << 20), nil, nil}
	p.faults[1] = p.cutAt(2<<20 + 5)
	path := filepath.Join(t.TempDir(), "f")
	check(t, fetcher(t), file, serve(t, p), path, text)
	if want := []string{"", "bytes=1048576-", "bytes=2097157-"}; !slices.Equal(p.ranges(), want) {
		t.Errorf("asked for %q, want %q", p.ranges(), want)
	}
	if want := []string{"", `"v1"`, `"v1"`}; !slices.Equal(p.ifs, want) {
		t.Errorf("If-Range: %q, want %q", p.ifs, want)
	}
}

// A server that breaks off without a byte is given up, and the next call goes on from
// what there is.
func TestContinuedByTheNextCall(t *testing.T) {
	text, file := content(2 << 20)
	p := &place{text: text, etag: `"v1"`}
	dead := func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	p.faults = []func(http.ResponseWriter, *http.Request) bool{p.cutAt(1 << 20), dead, dead, dead}
	url, path := serve(t, p), filepath.Join(t.TempDir(), "f")
	f := fetcher(t)
	f.Tries = 3
	_, err := f.Fetch(t.Context(), file, url, path)
	if err == nil || !strings.Contains(err.Error(), "3 times: 1048576 of 2097152 bytes are in "+path+".part; run the same command again to continue") {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("a part has the name of the file")
	}
	p.well()
	if got := check(t, f, file, url, path, text); got.Resumed != 1<<20 || !slices.Equal(p.ranges(), []string{"bytes=1048576-"}) {
		t.Errorf("%+v, asked for %q", got, p.ranges())
	}
}

// What an earlier call has left is never mixed with another version of the file.
func TestOtherVersion(t *testing.T) {
	old, _ := content(1 << 20)
	text, file := content(1<<20 + 10)
	unknown := File{Name: "f"}
	range206 := func(header string, from int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Range", header)
			w.WriteHeader(http.StatusPartialContent)
			w.Write(text[from:])
			return true
		}
	}
	for name, c := range map[string]struct {
		file    File
		state   string // with URL for the server's
		part    []byte
		etag    string
		fault   func(http.ResponseWriter, *http.Request) bool
		resumed int64
		asked   []string
	}{
		"changed ETag":                   {unknown, `{"url":"URL","etag":"\"v1\""}`, old[:500_000], `"v2"`, nil, 0, []string{"bytes=500000-"}},
		"changed ETag, If-Range ignored": {unknown, `{"url":"URL","etag":"\"v1\""}`, old[:500_000], `"v2"`, range206(fmt.Sprintf("bytes 500000-%d/%d", len(text)-1, len(text)), 500_000), 0, []string{"bytes=500000-", ""}},
		"same ETag":                      {unknown, `{"url":"URL","etag":"\"v2\""}`, text[:500_000], `"v2"`, nil, 500_000, []string{"bytes=500000-"}},
		"weak ETag, same date":           {unknown, `{"url":"URL","etag":"W/\"v1\"","last_modified":"Tue, 14 Nov 2023 22:13:20 GMT"}`, text[:500_000], `W/"v1"`, nil, 500_000, []string{"bytes=500000-"}},
		"nothing known":                  {unknown, ``, old[:500_000], "", nil, 0, []string{""}},
		"half a state":                   {unknown, `{"url":"UR`, old[:500_000], "", nil, 0, []string{""}},
		"of another address":             {unknown, `{"url":"http://other/","etag":"\"v2\""}`, old[:500_000], `"v2"`, nil, 0, []string{""}},
		"another address, a known sum":   {file, `{"url":"http://other/","etag":"\"v1\""}`, text[:500_000], `"v2"`, nil, 500_000, []string{"bytes=500000-"}},
		"a wrong part and a known sum":   {file, ``, old[:500_000], "", nil, 0, []string{"bytes=500000-", ""}},
		"another part than asked for":    {file, ``, text[:500_000], "", range206(fmt.Sprintf("bytes 400000-%d/%d", len(text)-1, len(text)), 400_000), 0, []string{"bytes=500000-", ""}},
		"a part without its place":       {file, ``, text[:500_000], "", range206("", 500_000), 0, []string{"bytes=500000-", ""}},
		"longer than the file":           {file, ``, append(slices.Clone(text), 1), "", nil, 0, []string{""}},
		"all of it":                      {file, ``, text, "", nil, int64(len(text)), nil},
		"all of it, of unknown size":     {File{SHA256: file.SHA256}, ``, text, "", nil, int64(len(text)), []string{fmt.Sprintf("bytes=%d-", len(text))}},
		"more than there is":             {File{SHA256: file.SHA256}, ``, append(slices.Clone(text), 1), "", nil, 0, []string{fmt.Sprintf("bytes=%d-", len(text)+1), ""}},
		"the server sends all":           {file, ``, text[:500_000], "", func(w http.ResponseWriter, _ *http.Request) bool { w.Write(text); return true }, 0, []string{"bytes=500000-"}},
		"a damaged whole":                {file, ``, append(slices.Clone(text[:len(text)-1]), text[len(text)-1]+1), "", nil, 0, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{text: text, etag: c.etag, faults: []func(http.ResponseWriter, *http.Request) bool{c.fault}}
			url, path := serve(t, p), filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(path+".part", c.part, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.state != "" {
				if err := os.WriteFile(path+".part.json", []byte(strings.ReplaceAll(c.state, "URL", url)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := check(t, fetcher(t), c.file, url, path, text)
			if got.Resumed != c.resumed || !slices.Equal(p.ranges(), c.asked) {
				t.Errorf("resumed from %d, asked for %q; want %d, %q", got.Resumed, p.ranges(), c.resumed, c.asked)
			}
		})
	}
}

// Compressed answers, which nobody asked for, become the file; redirects are followed.
func TestPackedAndRedirected(t *testing.T) {
	text, file := content(1 << 20)
	p := &place{text: text, faults: []func(http.ResponseWriter, *http.Request) bool{func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("Accept-Encoding is %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		z.Write(text)
		z.Close()
		return true
	}}}
	there := serve(t, p)
	here := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, there+"/elsewhere?signature=secret", http.StatusFound)
	}))
	check(t, fetcher(t), file, here, filepath.Join(t.TempDir(), "f"), text)
	p.well()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path+".part", text[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	if check(t, fetcher(t), file, here, path, text); !slices.Equal(p.ranges(), []string{"bytes=1000-"}) {
		t.Errorf("a redirect loses the range: %q", p.ranges())
	}
}

// What cannot be fetched says why, and leaves nothing that is not worth keeping.
func TestRefused(t *testing.T) {
	text, file := content(100_000)
	other, _ := content(100_001)
	status := func(code int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	same := bytes.Clone(text)
	same[5]++
	for name, c := range map[string]struct{ url, want string }{
		"not found":    {serve(t, status(404)) + "/a/f?token=secret", "/a/f any more (404 Not Found): its makers may have moved it; --from takes another address"},
		"login":        {serve(t, status(401)), "(401 Unauthorized): it may want a login or an agreement"},
		"forbidden":    {serve(t, status(403)), "(403 Forbidden): it may want a login"},
		"busy":         {serve(t, status(503)), "answered 503 Service Unavailable, 5 times: 0 bytes are in"},
		"odd":          {serve(t, status(418)), "answered 418 I'm a teapot for http://"},
		"other size":   {serve(t, &place{text: other}), "has 100001 bytes there, and 100000 in the list: it was changed since, or is another file; nothing was fetched"},
		"pointer":      {serve(t, &place{text: []byte("version https://git-lfs.github.com/spec/v1\n")}), "has 43 bytes there, and 100000 in the list"},
		"other bytes":  {serve(t, &place{text: same}), "has the SHA-256 "},
		"nobody there": {gone.URL, "connection refused. Is this machine offline? A proxy is named by HTTPS_PROXY, a copy elsewhere by --from"},
		"no such name": {"http://no.such.name.invalid/f", "cannot reach no.such.name.invalid: "},
		"password":     {"http://me:secret@" + strings.TrimPrefix(serve(t, status(404)), "http://"), "404 Not Found"},
		"no URL":       {"http://%zz:secret@x/", "that address is no URL of a file"},
		"more": {serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // in chunks, without a length
			w.Write(other)
		})), "sends more than the 100000 bytes of the list"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			_, err := fetcher(t).Fetch(t.Context(), file, c.url, filepath.Join(dir, "f"))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}

// A file of the name is verified and kept, whatever it is.
func TestNothingIsReplaced(t *testing.T) {
	text, file := content(50_000)
	p := &place{text: text}
	url, path := serve(t, p), filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := check(t, fetcher(t), file, url, path, text); !got.Present || len(p.ranges()) > 0 {
		t.Errorf("%+v, asked for %q", got, p.ranges())
	}
	mine := []byte("mine")
	for _, f := range []File{file, {Name: "f"}, {Name: "f", GitBlob: file.GitBlob}} {
		if err := os.WriteFile(path, mine, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := fetcher(t).Fetch(t.Context(), f, url, path)
		if b, _ := os.ReadFile(path); !errors.Is(err, errInTheWay) || !bytes.Equal(b, mine) || len(p.ranges()) > 0 {
			t.Errorf("%v: %s", err, b)
		}
	}
	// One that appears while it is fetched is kept too.
	os.Remove(path)
	p.faults = []func(http.ResponseWriter, *http.Request) bool{func(http.ResponseWriter, *http.Request) bool {
		os.WriteFile(path, mine, 0o600)
		return false
	}}
	_, err := fetcher(t).Fetch(t.Context(), file, url, path)
	if b, _ := os.ReadFile(path); !errors.Is(err, errInTheWay) || !bytes.Equal(b, mine) {
		t.Errorf("%v: %s", err, b)
	}
}

// The sum of a first download holds for all later ones.
func TestFirstDownloadIsRecorded(t *testing.T) {
	text, known := content(50_000)
	p := &place{text: text}
	url, path := serve(t, p), filepath.Join(t.TempDir(), "f")
	if got := check(t, fetcher(t), File{}, url, path, text); got.Verified {
		t.Errorf("%+v", got)
	}
	if b, err := os.ReadFile(path + ".sha256"); err != nil || string(b) != known.SHA256+"  f\n" {
		t.Fatalf("%s, %v", b, err)
	}
	if got := check(t, fetcher(t), File{}, url, path, text); !got.Verified || !got.Present {
		t.Errorf("%+v", got)
	}
	os.Remove(path)
	p.text = append(bytes.Clone(text), 'x')
	if _, err := fetcher(t).Fetch(t.Context(), File{}, url, path); err == nil || !strings.Contains(err.Error(), "and the list has "+known.SHA256) {
		t.Error(err)
	}
	os.WriteFile(path+".sha256", []byte("nonsense"), 0o600)
	if _, err := fetcher(t).Fetch(t.Context(), File{}, url, path); err == nil || !strings.Contains(err.Error(), "is no line of sha256sum") {
		t.Error(err)
	}
}

// A server that goes silent is left after a while, and asked again.
func TestSilence(t *testing.T) {
	text, file := content(50_000)
	hold := make(chan struct{})
	p := &place{text: text, faults: []func(http.ResponseWriter, *http.Request) bool{func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", "50000")
		w.Write(text[:20_000])
		w.(http.Flusher).Flush()
		<-hold
		return true
	}}}
	url := serve(t, p)
	t.Cleanup(func() { close(hold) }) // before the server ends
	f := fetcher(t)
	f.Stall = 300 * time.Millisecond
	if check(t, f, file, url, filepath.Join(t.TempDir(), "f"), text); !slices.Equal(p.ranges(), []string{"", "bytes=20000-"}) {
		t.Errorf("asked for %q", p.ranges())
	}
}

// An interrupt keeps what there is, and says so.
func TestInterrupted(t *testing.T) {
	text, file := content(50_000)
	ctx, cancel := context.WithCancel(t.Context())
	p := &place{text: text, faults: []func(http.ResponseWriter, *http.Request) bool{func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "50000")
		w.Write(text[:20_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	}}}
	url, path := serve(t, p), filepath.Join(t.TempDir(), "f")
	f := fetcher(t)
	f.Progress = func(done, total int64) {
		if total != 50_000 {
			t.Errorf("%d of %d", done, total)
		}
		if done == 20_000 {
			cancel()
		}
	}
	_, err := f.Fetch(ctx, file, url, path)
	if err == nil || !strings.Contains(err.Error(), "interrupted: 20000 of 50000 bytes are in "+path+".part") {
		t.Fatal(err)
	}
	if got := check(t, fetcher(t), file, url, path, text); got.Resumed != 20_000 {
		t.Errorf("%+v", got)
	}
}

// A server that does not say how long a file is sends all of it, whether the list knows
// or not; an end before the length of the list is a break.
func TestNoLength(t *testing.T) {
	text, file := content(70_000)
	first := true
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // in chunks
		if first {
			w.Write(text[:60_000])
			first = false
			return
		}
		w.Write(text)
	}))
	path := filepath.Join(t.TempDir(), "f")
	check(t, fetcher(t), file, url, path, text)
	check(t, fetcher(t), File{}, url, filepath.Join(t.TempDir(), "f"), text)
}

// A server that answers everything with a part is left.
func TestOnlyParts(t *testing.T) {
	_, file := content(70_000)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) }))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path+".part", make([]byte, 10), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fetcher(t).Fetch(t.Context(), file, url, path); err == nil || !strings.Contains(err.Error(), "answers a request for the whole file with a part of it") {
		t.Error(err)
	}
}

// A server that asks to wait is not asked again before.
func TestRetryAfter(t *testing.T) {
	_, file := content(10)
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	said := ""
	f := &Fetcher{Pause: time.Millisecond, Note: func(s string) { said = s; cancel() }}
	_, err := f.Fetch(ctx, file, url, filepath.Join(t.TempDir(), "f"))
	if want := "answered 429 Too Many Requests: another try in 1m0s"; err == nil || !strings.HasSuffix(said, want) {
		t.Errorf("%v, %q, want %q", err, said, want)
	}
}

func TestContentRange(t *testing.T) {
	for s, want := range map[string]struct {
		first, total int64
		ok           bool
	}{
		"bytes 5-9/10": {5, 10, true}, "bytes 0-0/1": {0, 1, true}, "bytes 5-9/*": {5, 0, true}, "bytes */10": {0, 10, false},
		"bytes 5-10/10": {5, 10, false}, "bytes 9-5/10": {9, 10, false}, "items 5-9/10": {}, "bytes 5-9": {}, "bytes -9/10": {0, 10, false}, "": {},
	} {
		if first, total, ok := contentRange(s); ok != want.ok || total != want.total || ok && first != want.first {
			t.Errorf("%q: %d, %d, %v; want %+v", s, first, total, ok, want)
		}
	}
}

// Answers that are nearly right do no harm.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 5-9/10", "bytes */10", "bytes 0-0/*", "bytes 9-5/10", "bytes 5-10/10", "", "items 1-2/3", "bytes 1-/3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		first, total, ok := contentRange(s)
		if ok && (first < 0 || total != 0 && first >= total) {
			t.Errorf("%q is byte %d of %d", s, first, total)
		}
	})
}

// The list: names are unique, addresses are of a fixed version, sums are sums.
func TestSets(t *testing.T) {
	seen := map[string]bool{}
	isHex := func(s string, n int) bool {
		b, err := hex.DecodeString(s)
		return err == nil && len(b) == n && s == strings.ToLower(s)
	}
	for _, s := range Sets() {
		if seen[s.Name] || s.Name == "" || s.About == "" || s.License == "" || !strings.HasPrefix(s.Page, "https://") || s.Format == "" {
			t.Errorf("%+v", s)
		}
		if one, ok := Find(s.Name); !ok || one.Name != s.Name {
			t.Errorf("%s is not found", s.Name)
		}
		seen[s.Name] = true
		for _, f := range s.Files {
			known := f.SHA256 != "" || f.GitBlob != ""
			if known == (s.Sums == Unknown) || f.SHA256 != "" && !isHex(f.SHA256, 32) || f.GitBlob != "" && !isHex(f.GitBlob, 20) {
				t.Errorf("%s: the sums of %+v, %s", s.Name, f, s.Sums)
			}
			if s.Sums == Computed && (f.Size == 0 || f.SHA256 == "") {
				t.Errorf("%s: %+v was at hand, and its size or sum is missing", s.Name, f)
			}
			if !strings.HasPrefix(f.URL, "https://") || strings.ContainsAny(f.Name, "/\\") || known && (strings.Contains(f.URL, "/main/") || strings.Contains(f.URL, "/master/")) {
				t.Errorf("%s: %+v is of no fixed version", s.Name, f)
			}
		}
	}
	if _, ok := Find("no such set"); ok {
		t.Error("a set that is not there")
	}
	if s, _ := Find("azure-2024-code"); s.Size() != 0 || s.Host() != "Azure" {
		t.Errorf("%d bytes at %s", s.Size(), s.Host())
	}
	r1, _ := Find("servegen-r1")
	if len(r1.Files) != 146 || r1.Size() != 13_213_280 {
		t.Errorf("%d files, %d bytes", len(r1.Files), r1.Size())
	}
}

// The document names every set with its evidence.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence/checksums.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Sets() {
		line := regexp.MustCompile("(?m)^\\| `" + string(s.Sums) + "`.*`" + regexp.QuoteMeta(s.Name) + "`")
		if !line.Match(text) {
			t.Errorf("docs/evidence/checksums.md does not say that the checksum of %s is %s", s.Name, s.Sums)
		}
	}
}

// Files of the list that are at hand have the sums of the list.
func TestSumsOfFilesAtHand(t *testing.T) {
	at := 0
	for name, file := range map[string]string{"mooncake-conversation": "mooncake_conversation.jsonl", "azure-2023-code": "azure_llm_2023_code.csv", "tracelab-example": "tracelab_example.jsonl"} {
		s, _ := Find(name)
		path := filepath.Join("..", "..", "..", "shared", "data", file)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		d, err := digestOf(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Files[0].matches(path, d); err != nil {
			t.Error(err)
		}
		at++
	}
	r1, _ := Find("servegen-r1")
	for _, f := range r1.Files {
		path := filepath.Join("..", "..", "..", "shared", "data", "servegen", "deepseek-r1", f.Name)
		if d, err := digestOf(t.Context(), path); err == nil {
			if err := f.matches(path, d); err != nil {
				t.Error(err)
			}
			at++
		}
	}
	if at == 0 {
		t.Skip("none of the published files is beside the checkout")
	}
	t.Logf("%d files", at)
}
