package h1

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Keep says whether a connection is used again after an answer.
type Keep int

const (
	PerRequest Keep = iota // a connection is used for one request
	Pooled                 // any later request may use a connection
	PerSession             // later requests of the same session use a connection
)

// NoSession is the session of a request that has none.
const NoSession = -1

// Options say where and how a Client connects.
type Options struct {
	Address string      // host:port
	TLS     *tls.Config // nil is without TLS; a ServerName is added where it has none
	Keep    Keep
	// Size is how many connections a Pooled client opens when the first request
	// is expected. 0 is as many as are needed.
	Size int
	// Dial connects, in place of TCP to Address.
	Dial func(ctx context.Context) (net.Conn, error)
	// Readers read the answers of TCP connections without TLS; nil leaves that to Go's
	// poller, which is slower and knows no receive timestamps.
	Readers *Readers
	// Probation is how long the first connection that is kept must outlive its
	// answer before any is used again. 0 is 250 ms, negative is none.
	Probation time.Duration
}

const (
	dialTime  = 10 * time.Second
	probation = 250 * time.Millisecond
	maxIdle   = 90 * time.Second // of a connection, as net/http has it
	// A server that ends connections this soon after an answer does so on account
	// of the answer, not of the time.
	closesSoon = time.Second
	// partingTime is what a server gets to close a connection first, which leaves
	// the wait for stray packets, and the port, on its side.
	partingTime = time.Second

	firstStock = 8   // connections dialled ahead; doubled when they did not suffice
	mostStock  = 512 // a server with a thread for each connection is not to starve
	mostDials  = 64  // at once, ahead of need
	dialPause  = 100 * time.Millisecond

	// portPause is the time between two dials while the system has no local port left.
	// Each of them has the kernel search all ports.
	portPause = 20 * time.Millisecond
)

// A Client holds the connections to one server. It may be used by any number of
// goroutines. Close it after use.
type Client struct {
	opt    Options
	tls    *tls.Config
	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	fresh    []*conn         // dialled ahead; the oldest is used first
	kept     []*conn         // after an answer
	sessions map[int64]*conn // of those kept
	parting  []*conn         // to be closed by the server
	open     int             // in use, fresh or kept
	dialling int             // ahead of need
	target   int             // of fresh
	expected int             // requests that are to come
	pause    time.Time       // no dialling ahead before, since it failed
	sweeping bool
	closed   bool

	trusted bool // the server keeps connections: one has outlived a stream
	soon    int  // how many it closed soon after an answer
	never   bool // it does not

	// While the system has no local port left, requests wait in the order of their
	// coming. The one that has the turn looks for a connection.
	waiting atomic.Int64
	turn    chan struct{}
	freed   chan struct{} // a connection came back or was closed
	noPort  time.Time     // of the last dial without a port

	stats  Stats
	minute minute
}

// Stats are counts since a Client was made.
type Stats struct {
	Dials     int64         // connections that were opened
	MaxMinute int64         // of them, in any one minute
	Waited    int64         // requests that had to wait for theirs
	PortWaits int64         // of them, those that waited for a local port
	PortWait  time.Duration // the longest of these waits
	Reused    int64         // requests on a connection that had served another
	Replaced  int64         // connections that the server closed while nobody used them
	Stale     int64         // requests that failed with ErrStale
	Closes    bool          // the server promises to keep connections and closes them
}

// New makes a Client. It connects to nothing yet.
func New(o Options) *Client {
	o.Probation = cmp.Or(o.Probation, probation)
	c := &Client{opt: o, target: firstStock, trusted: o.Probation < 0, sessions: map[int64]*conn{},
		turn: make(chan struct{}, 1), freed: make(chan struct{}, 1)}
	if o.TLS != nil {
		c.tls = o.TLS.Clone()
		if c.tls.ServerName == "" {
			c.tls.ServerName, _, _ = net.SplitHostPort(o.Address)
		}
		c.tls.NextProtos = []string{"http/1.1"}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Closes = c.never
	return s
}

// A conn is one connection. It belongs to the Client, or to one Exchange.
type conn struct {
	client   *Client
	nc       net.Conn
	sock     *socket
	session  int64
	served   int       // answers
	streamed bool      // the last of them was a stream
	since    time.Time // it has been idle
	expires  time.Time // the server may close it then; zero is unknown
}

// dial opens a connection.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	var nc net.Conn
	var err error
	if c.opt.Dial != nil {
		nc, err = c.opt.Dial(ctx)
	} else {
		d := net.Dialer{Timeout: dialTime} // with TCP_NODELAY, Go's default
		if nc, err = d.DialContext(ctx, "tcp", c.opt.Address); err != nil && ctx.Err() != nil {
			err = ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: nc}
	if c.tls == nil { // else a read of the socket is not one of the answer
		s.feed = newFeed(nc, c.opt.Readers)
	}
	if s.feed != nil {
		s.Conn = s.feed
	} else if sc, ok := nc.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn()
	}
	k := &conn{client: c, nc: s, sock: s, session: NoSession, since: time.Now()}
	if c.tls != nil {
		shaking, cancel := context.WithTimeout(ctx, dialTime)
		defer cancel()
		t := tls.Client(s, c.tls)
		if err := t.HandshakeContext(shaking); err != nil {
			nc.Close()
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &handshakeError{err}
		}
		k.nc = t
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	c.stats.Dials++
	c.stats.MaxMinute = max(c.stats.MaxMinute, c.minute.count(time.Now()))
	return k, nil
}

// A minute counts events in the last sixty seconds.
type minute struct {
	second int64
	counts [60]int64
	sum    int64
}

// count counts one event, and returns the number in the last sixty seconds.
func (m *minute) count(at time.Time) int64 {
	now := at.Unix()
	if now-m.second >= 60 {
		*m = minute{second: now}
	}
	for ; m.second < now; m.second++ {
		next := &m.counts[(m.second+1)%60]
		m.sum -= *next
		*next = 0
	}
	m.counts[now%60]++
	m.sum++
	return m.sum
}
