package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"reprise/trace/crash"
)

// Address is where to listen, of what people type: :9090 and 9090 are that port of all
// interfaces, localhost:9090 is for this machine alone.
func Address(s string) (string, error) {
	if !strings.Contains(s, ":") {
		s = ":" + s
	}
	if _, port, err := net.SplitHostPort(s); err == nil {
		if n, err := net.LookupPort("tcp", port); err == nil && n >= 0 && port != "" {
			return s, nil
		}
	}
	return "", errors.New("want a port, or an address and a port, such as 9090 or localhost:9090")
}

// Listen serves the metrics at an [Address] until ctx ends, and returns where that is,
// as a URL, and whether other machines can reach it.
func (m *Monitor) Listen(ctx context.Context, address string) (url string, open bool, err error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "", false, fmt.Errorf("port %s is in use: stop the process that uses it, choose another port, or use "+
			"port 0 for any free one", port(address))
	case errors.Is(err, syscall.EACCES):
		return "", false, fmt.Errorf("no permission to listen on port %s: choose one from 1024 up", port(address))
	case err != nil:
		return "", false, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	handler := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 2,
		Timeout: 5 * time.Second})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "reprise: metrics for Prometheus are at /metrics")
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10}
	go func() {
		defer crash.Caught()
		_ = server.Serve(l) // it ends with an error whenever it is closed
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	at := l.Addr().(*net.TCPAddr)
	if open = at.IP.IsUnspecified(); open {
		return fmt.Sprintf("http://localhost:%d/metrics", at.Port), open, nil
	}
	return "http://" + at.String() + "/metrics", !at.IP.IsLoopback(), nil
}

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}
