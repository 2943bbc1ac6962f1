package client

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"reprise/replay/engine"
)

// A virtualWire connects client and server within a synctest bubble, whose clock
// stands still while a byte is on its way.
type virtualWire struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (v *virtualWire) Accept() (net.Conn, error) {
	select {
	case c := <-v.conns:
		return c, nil
	case <-v.over:
		return nil, net.ErrClosed
	}
}

func (v *virtualWire) Close() error {
	v.once.Do(func() { close(v.over) })
	return nil
}

func (v *virtualWire) Addr() net.Addr { return &net.UnixAddr{Name: "virtual"} }

func (v *virtualWire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case v.conns <- there:
		return here, nil
	case <-v.over:
	case <-ctx.Done():
	}
	return nil, net.ErrClosed
}

// byNet has an endpoint send by net/http.
func byNet(h *HTTP) {
	to := &h.targets[0]
	to.wire.client.Close()
	to.exchanger, to.wire = netExchanger{h}, nil
}

// virtualEndpoint is a client whose server is simulated, both in virtual time.
// The caller must call end within the bubble.
func virtualEndpoint(t testing.TB, c engine.ServerConfig, o Options) (h *HTTP, end func()) {
	t.Helper()
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	wire := &virtualWire{conns: make(chan net.Conn), over: make(chan struct{})}
	srv := &http.Server{Handler: s.Handler()}
	served := make(chan struct{})
	go func() { srv.Serve(wire); close(served) }()
	if o.URL = "http://127.0.0.1"; o.Model == "" {
		o.Model = c.Model
	}
	if h, err = New(o); err != nil {
		t.Fatal(err)
	}
	// net/http alone knows no sweeps of idle connections, which would keep a
	// bubble's time from passing; over TCP the same quirks meet our own connections.
	h.transport.DialContext = wire.dial
	byNet(h)
	return h, func() {
		h.Close()
		srv.Close()
		<-served
		time.Sleep(time.Minute) // until the engine has done the step of a request that was given up
	}
}
