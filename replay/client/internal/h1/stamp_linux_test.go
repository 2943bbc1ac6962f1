//go:build linux && (amd64 || arm64)

package h1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"
)

// What waited in the socket tells how long, by the last of the segments that were merged.
func TestReadDelay(t *testing.T) {
	const wait = 200 * time.Millisecond
	wrote := make(chan time.Time, 1) // when the last write began
	address := peer(t, func(c net.Conn, _ int64) {
		b := bufio.NewReader(c)
		asked(b)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		var at time.Time
		for range 4 {
			time.Sleep(20 * time.Millisecond)
			at = time.Now()
			io.WriteString(c, "2\r\nab\r\n")
		}
		wrote <- at
		asked(b) // until the client has read
	})
	r, err := client(t, Options{Address: address}).Do(t.Context(), []byte(request), NoSession, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	at := <-wrote
	time.Sleep(wait)
	var p [4096]byte
	n, err := r.Read(p[:])
	late := time.Since(at)
	if string(p[:n]) != "abababab" || err != nil {
		t.Fatalf("read %q, %v", p[:n], err)
	}
	if got := r.ReadDelay(); got < wait || got > late+time.Millisecond {
		t.Errorf("a delay of %v, of bytes that were written %v ago", got, late)
	}
}

// A reader that waits for its bytes has them soon, and a deadline ends the waiting.
func TestStampedReadWaits(t *testing.T) {
	address := peer(t, func(c net.Conn, _ int64) {
		b := bufio.NewReader(c)
		asked(b)
		time.Sleep(50 * time.Millisecond)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
		asked(b)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	r, err := client(t, Options{Address: address}).Do(ctx, []byte(request), NoSession, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.ReadDelay(); got < 0 || got > 40*time.Millisecond {
		t.Errorf("a delay of %v", got)
	}
	body, err := io.ReadAll(r)
	if string(body) != "ab" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("read %q, %v", body, err)
	}
}

// With TLS a read of the socket is not one of the answer: there is no delay.
func TestNoReadDelayWithTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ab") }))
	defer srv.Close()
	c := client(t, Options{Address: srv.Listener.Addr().String(), TLS: &tls.Config{InsecureSkipVerify: true}})
	r, err := c.Do(t.Context(), []byte(request), NoSession, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.ReadAll(r); err != nil || r.ReadDelay() != noDelay {
		t.Errorf("a delay of %v, %v", r.ReadDelay(), err)
	}
}

// The errors of a stamped read are those of the connection's own.
func TestStampedReadErrors(t *testing.T) {
	address := peer(t, func(c net.Conn, _ int64) {
		asked(bufio.NewReader(c))
		c.(*net.TCPConn).SetLinger(0) // closes with a reset
	})
	_, err := client(t, Options{Address: address}).Do(t.Context(), []byte(request), NoSession, func() {})
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "read" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v", err)
	}
}
