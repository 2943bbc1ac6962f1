package record

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"reprise/trace/crash"
)

// ServeOptions say how a proxy listens.
type ServeOptions struct {
	Certificate *tls.Certificate   // what it shows; nil speaks no TLS
	Drain       time.Duration      // for requests in flight, when it is to stop
	Draining    func(inFlight int) // is told of these when it begins to wait for them; may be nil
}

// Serve forwards what comes to l until ctx ends. Then it takes no new connections and
// waits for the requests in flight. It returns how many it cut off when their time was
// over.
func (p *Proxy) Serve(ctx context.Context, l net.Listener, o ServeOptions) (cutOff int, err error) {
	flying, cut := context.WithCancel(context.Background())
	defer cut()
	srv := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 30 * time.Second, // of clients that send a head by drops
		IdleTimeout:       6 * time.Minute,  // above that of load balancers, which are to close first
		MaxHeaderBytes:    1 << 20,
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 10_000},
		ErrorLog:          log.New(io.Discard, "", 0), // it may quote what clients send
		BaseContext:       func(net.Listener) context.Context { return flying },
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.Protocols.SetUnencryptedHTTP2(true) // for clients that begin with it
	done := make(chan error, 1)
	go func() {
		defer crash.Caught()
		if o.Certificate == nil {
			done <- srv.Serve(l)
			return
		}
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*o.Certificate}}
		done <- srv.ServeTLS(l, "", "")
	}()
	select {
	case err := <-done:
		return 0, err
	case <-ctx.Done():
	}
	if n, _, _ := p.Status(); n > 0 && o.Draining != nil {
		o.Draining(int(n))
	}
	limit, end := context.WithTimeout(context.Background(), o.Drain)
	defer end()
	err = srv.Shutdown(limit)
	if err == nil {
		err = p.Wait(limit) // for WebSockets, which the server no longer knows
	}
	if err != nil {
		n, _, _ := p.Status()
		cutOff = int(n)
	}
	cut()
	srv.Close()
	rest, end := context.WithTimeout(context.Background(), 5*time.Second)
	defer end()
	return cutOff, p.Wait(rest)
}
