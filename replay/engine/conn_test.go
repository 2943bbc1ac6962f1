package engine

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

func listen(t *testing.T) *portGate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(DefaultServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	g := s.Gate(l).(*portGate)
	t.Cleanup(func() { g.Close() })
	if g.Addr() != l.Addr() || s.gate.Load() != g {
		t.Fatal("the gate is not that of the listener")
	}
	return g
}

// accepted says how an Accept of the gate ends.
func accepted(g *portGate) <-chan error {
	done := make(chan error, 1)
	go func() {
		conn, err := g.Accept()
		if err == nil {
			conn.Close()
		}
		done <- err
	}()
	return done
}

func within(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		t.Fatal("Accept does not return")
		return nil
	}
}

func dial(g *portGate) error {
	conn, err := net.Dial("tcp", g.Addr().String())
	if err == nil {
		conn.Close()
	}
	return err
}

// A port that is closed for a time opens again, and who waited in Accept gets the next
// connection; a second closing meanwhile does not make it longer.
func TestPortOpensAgain(t *testing.T) {
	g := listen(t)
	done := accepted(g)
	g.closeFor(time.Hour)
	g.closeFor(time.Nanosecond)
	if err := dial(g); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port is open: %v", err)
	}
	select {
	case err := <-done:
		t.Fatalf("Accept returned %v while the port was closed", err)
	case <-time.After(20 * time.Millisecond):
	}
	g.reopen(g.Addr())
	if err := dial(g); err != nil {
		t.Errorf("the port is closed: %v", err)
	}
	if err := within(t, done); err != nil {
		t.Errorf("Accept returned %v", err)
	}
	// By itself, after the time.
	done = accepted(g)
	g.closeFor(time.Millisecond)
	for end := time.Now().Add(20 * time.Second); dial(g) != nil; {
		if time.Now().After(end) {
			t.Fatal("the port does not open again")
		}
	}
	if err := within(t, done); err != nil {
		t.Errorf("Accept returned %v", err)
	}
}

// A gate that is closed for good ends Accept, whether its port was open or not, and stays
// closed.
func TestPortIsClosedForGood(t *testing.T) {
	for _, shut := range []bool{false, true} {
		g := listen(t)
		done := accepted(g)
		if shut {
			g.closeFor(time.Hour)
		}
		addr := g.Addr()
		if err := g.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := within(t, done); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept returned %v", err)
		}
		g.closeFor(time.Nanosecond)
		if g.again != nil {
			t.Error("a gate that is closed for good was closed for a time")
		}
		g.reopen(addr)
		if err := dial(g); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the port is open: %v", err)
		}
	}
}

// A port that another took meanwhile ends Accept.
func TestPortIsTaken(t *testing.T) {
	g := listen(t)
	done := accepted(g)
	g.closeFor(time.Hour)
	other, err := net.Listen("tcp", g.Addr().String())
	if err != nil {
		t.Skip("the port was taken by a third")
	}
	defer other.Close()
	g.reopen(g.Addr())
	if err := within(t, done); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept returned %v", err)
	}
}

// What a client sees of a stream that ends in its middle: a reset, or an end too early. By
// HTTP/2 it is the stream alone that ends.
func TestHowStreamsEnd(t *testing.T) {
	c := DefaultServerConfig()
	c.Engine.Costs, c.FaultHeader = Costs{}, true
	s, err := NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(s.Handler())
	defer plain.Close()
	second := httptest.NewUnstartedServer(s.Handler())
	second.EnableHTTP2 = true
	second.StartTLS()
	defer second.Close()
	ask := func(srv *httptest.Server, quirks string) (protocol int, text string, err error) {
		r, _ := http.NewRequest("POST", srv.URL+"/v1/completions",
			strings.NewReader(`{"prompt":"x","stream":true,"max_tokens":4,"ignore_eos":true}`))
		r.Header.Set(FaultHeader, quirks)
		resp, err := srv.Client().Do(r)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.ProtoMajor, string(b), err
	}
	for quirks, want := range map[string]error{"reset": syscall.ECONNRESET, "cut": io.ErrUnexpectedEOF} {
		// A reset overtakes what was sent before it.
		if _, text, err := ask(plain, quirks); !errors.Is(err, want) || strings.Count(text, "data: ") > 2 ||
			quirks == "cut" && strings.Count(text, "data: ") != 2 {
			t.Errorf("%s: %q, %v", quirks, text, err)
		}
		protocol, text, err := ask(second, quirks)
		if err == nil || !strings.Contains(err.Error(), "INTERNAL_ERROR") || protocol != 2 {
			t.Errorf("%s by HTTP/%d: %q, %v", quirks, protocol, text, err)
		}
	}
	// The last leaves its client with a connection that only seems to stay open.
	for _, quirks := range []string{"slow-headers=3ms", "", "close-keep-alive"} {
		for name, srv := range map[string]*httptest.Server{"HTTP/1.1": plain, "HTTP/2": second} {
			if _, text, err := ask(srv, quirks); err != nil || strings.Count(text, "data: ") != 6 {
				t.Errorf("%s by %s: %q, %v", quirks, name, text, err)
			}
		}
	}
}
