package engine

import (
	"bufio"
	"compress/gzip"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// errStream says that an answer is one stream of a connection with others, which
// stays: HTTP/2.
var errStream = errors.New("the answer has no connection of its own")

// abort resets the stream of an answer that has no connection to drop. It does not
// return then.
func abort(err error) {
	if errors.Is(err, errStream) {
		panic(http.ErrAbortHandler) // net/http's way to say so
	}
}

// drop closes the connection of an answer, by RST or by FIN, whatever the answer
// lacks.
func drop(w http.ResponseWriter, reset bool) error {
	conn, err := hijack(w)
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	return conn.Close()
}

// hijack takes the connection of an answer away from net/http.
func hijack(w http.ResponseWriter) (net.Conn, error) {
	if d, ok := w.(*slowHeaders); ok {
		return d.conn, nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		err = errStream
	}
	return conn, err
}

// drip returns a writer that lets the headers drip. Its connection must be
// closed.
func drip(w http.ResponseWriter, over time.Duration) (*slowHeaders, error) {
	conn, err := hijack(w)
	if err != nil {
		return nil, err
	}
	return &slowHeaders{conn: conn, out: bufio.NewWriter(conn), header: http.Header{}, over: over}, nil
}

// A slowHeaders answer writes its headers byte by byte, and its body until the
// connection's end, by which it is delimited.
type slowHeaders struct {
	conn   net.Conn
	out    *bufio.Writer
	header http.Header
	over   time.Duration
	sent   bool
}

func (d *slowHeaders) Header() http.Header { return d.header }

func (d *slowHeaders) WriteHeader(int) {
	if d.sent {
		return
	}
	d.sent = true
	head := "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"
	start := time.Now()
	for i := range len(head) {
		time.Sleep(time.Until(start.Add(d.over * time.Duration(i+1) / time.Duration(len(head)))))
		if _, err := d.conn.Write([]byte{head[i]}); err != nil {
			return // so will every later write
		}
	}
}

func (d *slowHeaders) Write(b []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	return d.out.Write(b)
}

func (d *slowHeaders) FlushError() error { return d.out.Flush() }

// A gzipAnswer compresses an answer, flush by flush. It must be closed.
type gzipAnswer struct {
	http.ResponseWriter
	out *gzip.Writer
}

func compressed(w http.ResponseWriter) gzipAnswer {
	w.Header().Set("Content-Encoding", "gzip")
	return gzipAnswer{w, gzip.NewWriter(w)}
}

func (g gzipAnswer) Write(b []byte) (int, error) { return g.out.Write(b) }

func (g gzipAnswer) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g gzipAnswer) FlushError() error {
	return errors.Join(g.out.Flush(), http.NewResponseController(g.ResponseWriter).Flush())
}

// A portGate is a listener whose port can be closed for a time.
type portGate struct {
	mu    sync.Mutex
	now   net.Listener
	again chan struct{} // closed when a closed port is open again; nil while it is open
	over  bool
}

// Accept waits through the times in which the port is closed.
func (g *portGate) Accept() (net.Conn, error) {
	for {
		g.mu.Lock()
		l, again := g.now, g.again
		g.mu.Unlock()
		if again != nil {
			<-again
			continue
		}
		conn, err := l.Accept()
		g.mu.Lock()
		changed := g.again != nil || g.now != l
		over := g.over
		g.mu.Unlock()
		if err == nil || over || !changed {
			return conn, err
		}
	}
}

// Close implements net.Listener.
func (g *portGate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	if g.again != nil {
		close(g.again)
		g.again = nil
		return nil
	}
	return g.now.Close()
}

// Addr implements net.Listener.
func (g *portGate) Addr() net.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.Addr()
}

// closeFor closes the port for a time; one that is closed stays so for no longer.
func (g *portGate) closeFor(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.again != nil || g.over {
		return
	}
	addr := g.now.Addr()
	g.now.Close()
	g.again = make(chan struct{})
	time.AfterFunc(d, func() { g.reopen(addr) })
}

// reopen listens again. A port that another took meanwhile ends the server, by
// the error of its closed listener.
func (g *portGate) reopen(addr net.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	if l, err := net.Listen(addr.Network(), addr.String()); err == nil {
		g.now = l
	}
	close(g.again)
	g.again = nil
}
