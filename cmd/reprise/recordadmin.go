package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/profile"
	"reprise/trace/recording"
)

// A recordAdmin serves what is known of a running recording, to who has the token.
type recordAdmin struct {
	folder string
	token  [sha256.Size]byte

	mu   sync.Mutex // of the page: one is made at a time
	page []byte
	made time.Time
}

// serveAdmin listens at --admin-listen until ctx ends, on another port than the proxy.
func (f *recordFlags) serveAdmin(ctx context.Context, cmd *cobra.Command, r *recorder) error {
	if f.admin == "" {
		return nil
	}
	a := &recordAdmin{folder: f.out}
	token, from := os.Getenv(f.adminTokenEnv), "the value of "+f.adminTokenEnv
	if f.adminTokenEnv != "" && token == "" {
		return cli.Usagef("--set admin-token-env: variable %s is empty", f.adminTokenEnv)
	}
	if token == "" {
		token = randomID()
		name := filepath.Join(f.out, "admin-token")
		if err := trace.WriteFile(name, 0o600, func(w io.Writer) error {
			_, err := io.WriteString(w, token+"\n")
			return err
		}); err != nil {
			return err
		}
		from = "what is in " + name
	}
	a.token = sha256.Sum256([]byte(token))
	l, err := listenAt(f.admin)
	if err != nil {
		return errors.New(strings.Replace(err.Error(), "--listen", "--admin-listen", 1))
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics",
		promhttp.HandlerFor(recordMetrics(r), promhttp.HandlerOpts{MaxRequestsInFlight: 2, Timeout: 5 * time.Second}))
	mux.HandleFunc("GET /{$}", a.showProfile)
	srv := &http.Server{Handler: a.guarded(mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10}
	go func() {
		defer crash.Caught()
		_ = srv.Serve(l) // it ends with an error whenever it is closed
	}()
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	cli.Notef(cmd, "profile so far at http://%s/, figures for Prometheus at /metrics: the password, or bearer "+
		"token, is %s", l.Addr(), from)
	return nil
}

// guarded asks for the token, as a password or as a bearer token.
func (a *recordAdmin) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			_, token, _ = r.BasicAuth()
		}
		if sum := sha256.Sum256([]byte(token)); subtle.ConstantTimeCompare(sum[:], a.token[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="reprise record"`)
			http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pageAge is how old a page may be before another is made, since that reads all parts.
const pageAge = 15 * time.Second

// showProfile answers with the profile of what is in the folder.
func (a *recordAdmin) showProfile(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.made) > pageAge {
		html := new(strings.Builder)
		if err := a.writeProfile(r.Context(), html); err != nil {
			http.Error(w, "no profile yet: "+cli.PlainError(err), http.StatusServiceUnavailable)
			return
		}
		a.page, a.made = []byte(html.String()), time.Now()
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(a.page)
}

func (a *recordAdmin) writeProfile(ctx context.Context, w io.Writer) error {
	set, err := recording.Open([]string{a.folder})
	if err != nil {
		return err
	}
	t, err := trace.Private(a.folder, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		m, _, err := mergeParts(ctx, anonymize.Policy{Tier: anonymize.Internal, SpillDir: a.folder}, set, dst)
		return m, err
	})
	if err != nil {
		return err
	}
	defer t.Close()
	src, err := t.Reader()
	if err != nil {
		return err
	}
	p := profile.NewProfiler(t.Meta, profileOptions(profile.DefaultServerBlock, -1))
	if _, err := trace.Copy(p, src); err != nil {
		return err
	}
	return profile.Page(p.Summary(), p.Histograms()).Write(w)
}

// recordMetrics are the counts of a recorder.
func recordMetrics(r *recorder) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	for i, o := range new(recording.Counts).Outcomes() {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "reprise_record_requests_total",
			Help:        "Requests that were forwarded, by what became of their recording.",
			ConstLabels: prometheus.Labels{"outcome": o.Name}},
			func() float64 {
				c := r.counts()
				return float64(*c.Outcomes()[i].N)
			}))
	}
	for name, g := range map[string]struct {
		help string
		of   func(inFlight, waiting, bytes int64) int64
	}{
		"reprise_record_in_flight": {"Requests in flight.", func(n, _, _ int64) int64 { return n }},
		"reprise_record_waiting": {"Requests that are over and wait to be recorded.",
			func(_, n, _ int64) int64 { return n }},
		"reprise_record_held_bytes": {"Bytes of texts that are held; --memory limits them.",
			func(_, _, n int64) int64 { return n }},
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: g.help},
			func() float64 { return float64(g.of(r.proxy.Status())) }))
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "reprise_build_info",
		Help:        "1, with the version of the recorder.",
		ConstLabels: prometheus.Labels{"version": cli.Version}}, func() float64 { return 1 }))
	return registry
}
