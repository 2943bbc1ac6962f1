//go:build linux && (amd64 || arm64)

package h1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// What waited in the socket tells how long, by the last of the segments that were merged.
func TestReadDelay(t *testing.T) {
	const wait = 200 * time.Millisecond
	begin, wrote := make(chan bool), make(chan time.Time, 1) // when the last write began
	address := peer(t, func(c net.Conn, _ int64) {
		b := bufio.NewReader(c)
		asked(b)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		<-begin
		var at time.Time
		for range 4 {
			time.Sleep(20 * time.Millisecond)
			at = time.Now()
			io.WriteString(c, "2\r\nab\r\n")
		}
		wrote <- at
		asked(b) // until the client has read
	})
	rs := NewReaders()
	defer rs.Close()
	r, err := client(t, Options{Address: address, Readers: rs}).Do(t.Context(), []byte(request), NoSession, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	held, on := make(chan bool, 1000), make(chan bool)
	rs.Watch(func(int) { held <- true; <-on }) // the readers stand still
	<-held
	begin <- true
	at := <-wrote
	time.Sleep(wait)
	rs.Watch(nil)
	close(on)
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

// written is a server of one answer, which it writes in pieces, one each time that it is
// told to. It returns the client's side, and a function that writes.
func written(t *testing.T, o Options) (r *Response, write func(piece string)) {
	t.Helper()
	pieces := make(chan string)
	o.Address = peer(t, func(c net.Conn, _ int64) {
		asked(bufio.NewReader(c))
		for p := range pieces {
			io.WriteString(c, p)
		}
	})
	t.Cleanup(func() { close(pieces) })
	go func() { pieces <- "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" }()
	r, err := client(t, o).Do(t.Context(), []byte(request), NoSession, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, func(p string) { pieces <- p }
}

// chunked is a chunk of a body.
func chunked(data string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(data), data) }

// Events of a stream wait for each other, and keep the instants at which they came.
func TestEventsWaitForEachOther(t *testing.T) {
	r, write := written(t, Options{})
	go func() {
		for range 3 {
			write(chunked("ab"))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	began := time.Now()
	var ages []time.Duration
	for range 3 {
		var p [4096]byte
		if n, err := r.Read(p[:]); string(p[:n]) != "ab" || err != nil {
			t.Fatalf("read %q, %v", p[:n], err)
		}
		ages = append(ages, time.Since(r.ReadAt()))
	}
	if took := time.Since(began); took < batchFor || ages[0] < batchFor-10*time.Millisecond || ages[0]-ages[1] < 15*time.Millisecond || ages[1]-ages[2] < 15*time.Millisecond {
		t.Errorf("read after %v, %v after they came", took, ages)
	}
}

// The end of an answer is not waited for, nor any event where each counts.
func TestEndsAndSingleEventsDoNotWait(t *testing.T) {
	for _, each := range []bool{false, true} {
		r, write := written(t, Options{})
		last := "0\r\n\r\n"
		if each {
			r.ReadEach()
			last = chunked("ab")
		}
		go func() {
			time.Sleep(20 * time.Millisecond)
			write(last)
		}()
		var p [4096]byte
		if _, err := r.Read(p[:]); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if age := time.Since(r.ReadAt()); age > batchFor/2 {
			t.Errorf("each by itself: %v: read %v after it came", each, age)
		}
	}
}

// A body that nobody reads stays with its server, but for so much, and none of it is lost.
func TestUnreadBodyIsBounded(t *testing.T) {
	const pieces, size = 200, 64 << 10
	var wrote atomic.Int64
	r, write := written(t, Options{})
	go func() {
		for i := range pieces {
			write(chunked(strings.Repeat(string(rune('a'+i%26)), size)))
			wrote.Add(1)
		}
		write("0\r\n\r\n")
	}()
	time.Sleep(300 * time.Millisecond)
	f := r.x.k.sock.feed
	f.mu.Lock()
	waits := f.unread()
	f.mu.Unlock()
	if waits < feedRoom || waits > feedRoom+readAtMost {
		t.Errorf("%d bytes wait", waits)
	}
	if wrote.Load() == pieces {
		t.Error("the server wrote all of a body that nobody reads")
	}
	body, err := io.ReadAll(r)
	if err != nil || len(body) != pieces*size {
		t.Fatalf("read %d bytes, %v", len(body), err)
	}
	for i := range pieces {
		if want := byte('a' + i%26); body[i*size] != want || body[(i+1)*size-1] != want {
			t.Fatalf("piece %d is not as it was sent", i)
		}
	}
}

// A request that the server is slow to take in is written whole, and the end of its
// context ends the writing.
func TestSlowlyTakenRequest(t *testing.T) {
	body := strings.Repeat("x", 32<<20)
	long := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for _, taken := range []bool{true, false} {
		address := peer(t, func(c net.Conn, _ int64) {
			time.Sleep(50 * time.Millisecond)
			if !taken {
				time.Sleep(time.Second)
				return
			}
			b := bufio.NewReader(c)
			q, err := http.ReadRequest(b)
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, q.Body)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n%08d", n)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if !taken {
			ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
		}
		r, err := client(t, Options{Address: address}).Do(ctx, long, NoSession, func() {})
		switch {
		case !taken:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a request that nobody takes in: %v", err)
			}
		case err != nil:
			t.Error(err)
		default:
			if got, err := io.ReadAll(r); string(got) != fmt.Sprintf("%08d", len(body)) || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			r.Close()
		}
		cancel()
	}
}

// Readers beat each millisecond or so while they are watched, and end when they are not.
func TestReadersBeat(t *testing.T) {
	rs := NewReaders()
	var beats atomic.Int64
	n := rs.Watch(func(int) { beats.Add(1) })
	time.Sleep(200 * time.Millisecond)
	rs.Watch(nil)
	if got := beats.Load() / int64(n); got < 50 || got > 220 {
		t.Errorf("%d beats of each of %d readers in 200 ms", got, n)
	}
	rs.Close()
	for _, r := range rs.each {
		for over := false; !over; time.Sleep(time.Millisecond) {
			r.mu.Lock()
			over = !r.runs && r.epoll == -1
			r.mu.Unlock()
		}
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
