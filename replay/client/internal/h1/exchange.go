package h1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// An Exchange is a request that was sent, or begun to be, and its answer to come.
type Exchange struct {
	k       *conn
	session int64
	rest    []byte // that is still to be written
	wrote   bool   // some of the request has gone out
	werr    error
	reused  bool          // the connection had served another
	idled   time.Duration // before this one
}

// oneRecord is what TLS sends in one record, encrypted in some microseconds.
const oneRecord = 16 << 10

// Start writes a whole request, head and body, to a connection that is ready, and
// returns at once. It returns nil when none is ready; then Do sends. sent is called
// at the entry to the write. The request's bytes must stay until Await returns.
func (c *Client) Start(request []byte, session int64, sent func()) *Exchange {
	if c.tls != nil && len(request) > oneRecord {
		return nil
	}
	if c.waiting.Load() > 0 { // those that wait for a port come first
		return nil
	}
	k := c.ready(session)
	if k == nil {
		return nil
	}
	return k.begin(request, session, sent)
}

// Do sends a request, head and body, and returns the head of the answer. It dials
// where no connection is ready, and waits while the system has no local port for one.
// sent is called at the entry to the write.
func (c *Client) Do(ctx context.Context, request []byte, session int64, sent func()) (*Response, error) {
	var k *conn
	if c.waiting.Load() == 0 {
		k = c.ready(session)
	}
	if k == nil {
		c.mu.Lock()
		c.stats.Waited++
		if c.expected > 0 { // too few connections were dialled ahead
			c.target = min(2*c.target, mostStock)
			c.refill()
		}
		c.mu.Unlock()
		var err error
		if k, err = c.connect(ctx, session); err != nil {
			return nil, err
		}
	}
	return k.begin(request, session, sent).Await(ctx)
}

// begin writes as much as goes without waiting.
func (k *conn) begin(request []byte, session int64, sent func()) *Exchange {
	x := &Exchange{k: k, session: session, rest: request, reused: k.served > 0, idled: time.Since(k.since)}
	sent()
	n := 0
	switch {
	case k.client.tls == nil:
		n, x.werr = k.sock.writeOnce(request)
	case len(request) <= oneRecord:
		n, x.werr = k.nc.Write(request)
	}
	x.rest, x.wrote = request[n:], n > 0
	return x
}

// Await writes what is left of the request and waits for the head of the answer.
// The end of ctx ends it, and the reading of the body too. Its errors are ctx's,
// those of the connection, or a *protocolError, the second wrapped with ErrStale
// where that is due. The Response must be closed.
func (x *Exchange) Await(ctx context.Context) (*Response, error) {
	k := x.k
	k.client.used(x.reused)
	if ctx.Err() != nil {
		k.lose()
		return nil, ctx.Err()
	}
	stop := context.AfterFunc(ctx, func() { k.nc.SetDeadline(past) })
	if k.sock.feed != nil {
		k.sock.feed.begin()
	}
	if len(x.rest) > 0 && x.werr == nil {
		_, x.werr = k.nc.Write(x.rest)
		x.wrote = true
		x.rest = nil
	}
	r := &Response{x: x, stop: stop, ctx: ctx}
	if err := r.readHead(); err != nil {
		stop()
		k.lose()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if x.werr != nil { // what the connection said when it was written to comes first
			err = x.werr
		}
		if _, bad := errors.AsType[*protocolError](err); bad || r.seen {
			return nil, err
		}
		if x.reused || !x.wrote || x.idled >= wasKept {
			k.client.mu.Lock()
			k.client.stats.Stale++
			k.client.never = k.client.never || x.reused && x.idled < closesSoon
			k.client.mu.Unlock()
			return nil, fmt.Errorf("h1: %w: %w", ErrStale, err)
		}
		return nil, fmt.Errorf("h1: no answer: %w", err)
	}
	return r, nil
}

// used counts a request that has its connection.
func (c *Client) used(again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if again {
		c.stats.Reused++
	}
	c.expected = max(c.expected-1, 0)
	c.refill()
}

// wasKept is how long a connection must have idled for its end to be put down to
// that, when it has not served before.
const wasKept = time.Second

// A Response is the answer to a request: its head, and a body to read. It is for
// one goroutine.
type Response struct {
	head
	x    *Exchange
	ctx  context.Context
	stop func() bool

	buf    *[]byte // of the head, while there is something after it in rest
	rest   []byte
	seen   bool // a byte of the answer
	chunks chunks
	left   int64 // when framed by length
	over   bool
	err    error // of the body, to be repeated
	readAt time.Time
	delay  time.Duration
}

// firstRead is the size of the buffers that heads are read into.
const firstRead = 4 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

// most1xx bounds how many interim answers come before the one that counts.
const most1xx = 8

func (r *Response) readHead() error {
	r.buf = buffers.Get().(*[]byte)
	defer r.letGo()
	b, w := *r.buf, 0
	for range most1xx {
		n := headEnd(b[:w], 0)
		for n == 0 {
			if w == maxHead {
				return malformed("a head that is too long")
			}
			if w == len(b) {
				b = append(b, make([]byte, w)...)
			}
			got, err := r.x.k.nc.Read(b[w:])
			r.seen = r.seen || got > 0
			r.readAt, r.delay = r.x.k.sock.lastRead()
			if n, w = headEnd(b[:w+got], w), w+got; n == 0 && err != nil {
				if err == io.EOF && r.seen {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
		}
		var err error
		if r.head, err = parseHead(b[:n]); err != nil {
			return err
		}
		if r.status >= 200 {
			r.rest = b[n:w]
			if f := r.x.k.sock.feed; f != nil && (r.framing == byChunks || r.framing == byClose) {
				f.inBatches(true)
			}
			r.settle()
			return nil
		}
		if r.status == 101 {
			break
		}
		w = copy(b, b[n:w])
	}
	return malformed("interim answers that were not asked for")
}

// settle begins the body.
func (r *Response) settle() {
	r.left = r.length
	if r.framing == noBody || r.framing == byLength && r.left == 0 {
		r.finish(len(r.rest) == 0)
	}
}

// letGo gives the head's buffer back when nothing is in it.
func (r *Response) letGo() {
	if len(r.rest) == 0 && r.buf != nil {
		buffers.Put(r.buf)
		r.buf, r.rest = nil, nil
	}
}

// Status returns the HTTP status of the answer, such as 200.
func (r *Response) Status() int { return r.status }

// Get returns the first value of a field of the header, "" without one.
func (r *Response) Get(name string) string {
	for left := r.fields; left != ""; {
		var field string
		field, left, _ = strings.Cut(left, "\r\n")
		if n, value, _ := strings.Cut(field, ":"); strings.EqualFold(n, name) {
			return strings.Trim(value, " \t")
		}
	}
	return ""
}

// Reused says whether the connection had served another request.
func (r *Response) Reused() bool { return r.x.reused }

// Read reads the body. It decodes in p. Its errors are those of Await except
// ErrStale: io.EOF comes at the end of the body only, a connection that ends before
// it is io.ErrUnexpectedEOF.
func (r *Response) Read(p []byte) (int, error) {
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	for !r.over {
		n, err := r.read(p)
		if n > 0 || err != nil {
			return n, err
		}
	}
	r.err = io.EOF
	return 0, io.EOF
}

// read reads once, and may find nothing of the body.
func (r *Response) read(p []byte) (int, error) {
	if r.framing == byLength {
		p = p[:min(int64(len(p)), r.left)]
	}
	n, rerr := r.raw(p)
	used := n
	switch r.framing {
	case byLength:
		r.left -= int64(n)
		if r.left == 0 {
			r.finish(len(r.rest) == 0)
		}
	case byChunks:
		var err error
		got := n
		if n, used, err = r.chunks.decode(p[:got]); err != nil {
			return n, r.fail(err)
		}
		if r.chunks.state == chunksDone {
			r.finish(used == got && len(r.rest) == 0)
		}
	case byClose:
		if rerr == io.EOF {
			r.finish(false)
		}
	}
	switch {
	case r.over:
		r.err = io.EOF
		return n, io.EOF
	case rerr == io.EOF:
		return n, r.fail(io.ErrUnexpectedEOF)
	case rerr != nil:
		return n, r.fail(rerr)
	}
	return n, nil
}

// raw reads what came with the head, then the connection.
func (r *Response) raw(p []byte) (int, error) {
	if len(r.rest) > 0 {
		n := copy(p, r.rest)
		r.rest = r.rest[n:]
		r.letGo()
		return n, nil
	}
	n, err := r.x.k.nc.Read(p)
	r.readAt, r.delay = r.x.k.sock.lastRead()
	return n, err
}

// ReadDelay is how long the bytes of the last Read had been there, by the kernel's
// receive timestamp of the last segment that it touched. The kernel merges segments that
// wait, and keeps the stamp of the last: bytes before the last may have waited longer.
// It is negative with TLS and where the system tells none.
func (r *Response) ReadDelay() time.Duration { return r.delay }

// ReadAt is when the bytes of the last Read were taken from the system, or its error was;
// zero where it is no sooner than the Read. Before the first Read it is about the head.
func (r *Response) ReadAt() time.Time { return r.readAt }

// ReadEach has each Read of a stream return when something has come. Without, events may
// wait for each other, at most for batchFor; ReadAt tells when they came.
func (r *Response) ReadEach() {
	if f := r.x.k.sock.feed; f != nil {
		f.inBatches(false)
	}
}

// finish ends an answer in good order. clean says that nothing came after it.
func (r *Response) finish(clean bool) {
	r.over = true
	if f := r.x.k.sock.feed; f != nil {
		clean = f.end() && clean
	}
	if alone := r.stop(); alone && (clean || r.framing == byClose) {
		r.x.k.give(r.x.session, r.keep && clean, r.framing != byLength, r.idle)
	} else {
		r.x.k.lose()
	}
}

// fail ends an answer that broke.
func (r *Response) fail(err error) error {
	if r.over = true; r.ctx.Err() != nil {
		err = r.ctx.Err()
	}
	r.err = err
	r.stop()
	r.x.k.lose()
	return err
}

// Close ends the answer. One that was not read to its end costs the connection.
func (r *Response) Close() error {
	if !r.over {
		r.fail(io.ErrClosedPipe)
	}
	return nil
}
