package h1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// errPortless is what a dial ends with while no local port is left.
var errPortless = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}

// A heldPort is given back when its connection is closed.
type heldPort struct {
	*net.TCPConn
	once sync.Once
	used *atomic.Int64
}

func (p *heldPort) Close() error {
	p.once.Do(func() { p.used.Add(-1) })
	return p.TCPConn.Close()
}

// TestNoPort sends far more requests at once than there are ports: all of them are
// answered, the later ones on ports of the earlier ones.
func TestNoPort(t *testing.T) {
	const ports, requests = 4, 16
	for name, keep := range map[string]Keep{"pooled": Pooled, "per request": PerRequest} {
		t.Run(name, func(t *testing.T) {
			address := peer(t, answers)
			if keep == PerRequest {
				address = peer(t, func(c net.Conn, _ int64) { // closes after one answer
					if asked(bufio.NewReader(c)) {
						io.WriteString(c, streamed)
					}
				})
			}
			var used, refused atomic.Int64
			c := client(t, Options{Keep: keep, Probation: -1, Dial: func(context.Context) (net.Conn, error) {
				if used.Add(1) > ports {
					used.Add(-1)
					refused.Add(1)
					return nil, errPortless
				}
				nc, err := net.Dial("tcp", address)
				if err != nil {
					return nil, err
				}
				return &heldPort{TCPConn: nc.(*net.TCPConn), used: &used}, nil
			}})
			do(t.Context(), c, NoSession) // the address is one that can be reached
			var all sync.WaitGroup
			for range requests {
				all.Go(func() {
					if _, err := do(t.Context(), c, NoSession); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if keep == PerRequest && refused.Load() == 0 {
				t.Error("no dial was refused: the test shows nothing")
			}
			if n := c.Stats().PortWaits; n == 0 && refused.Load() > 0 {
				t.Error("no wait for a port was counted")
			}
			if n := c.waiting.Load(); n != 0 {
				t.Errorf("%d still wait", n)
			}
		})
	}
}

// TestNoPortEnds checks that a wait ends with its context, and that an address to which
// nothing ever connected is an error at once.
func TestNoPortEnds(t *testing.T) {
	c := client(t, Options{Dial: func(context.Context) (net.Conn, error) { return nil, errPortless }})
	if _, err := do(t.Context(), c, NoSession); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("an address that cannot be reached: %v", err)
	}
	c.stats.Dials = 1
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := do(ctx, c, NoSession); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait ended with %v", err)
	}
}
