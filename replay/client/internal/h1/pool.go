package h1

import (
	"net"
	"slices"
	"time"

	"reprise/trace/crash"
)

// Expect says that a request will come, so that a connection is dialled for it.
func (c *Client) Expect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected++
	c.refill()
}

// ready returns a connection for a request of a session, or nil when none is
// ready. One that the server has closed meanwhile is dropped.
func (c *Client) ready(session int64) *conn {
	for {
		k := c.takeIdle(session)
		if k == nil || !askedAtUse || k.silent() {
			return k
		}
		c.mu.Lock()
		c.ended(k, time.Now())
		c.mu.Unlock()
	}
}

// takeIdle removes a connection from those that are idle.
func (c *Client) takeIdle(session int64) *conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if i := c.again(session, now); i >= 0 {
		k := c.kept[i]
		c.kept = slices.Delete(c.kept, i, i+1)
		delete(c.sessions, k.session)
		return k
	}
	if len(c.fresh) == 0 {
		return nil
	}
	// The oldest: where a server has a thread for each connection, it is this one
	// that has a thread.
	k := c.fresh[0]
	c.fresh[0] = nil
	c.fresh = c.fresh[1:] // moving the others up takes long when they are thousands
	return k
}

// again finds a kept connection that may be used again, -1 without one.
func (c *Client) again(session int64, now time.Time) int {
	last := len(c.kept) - 1
	switch {
	case last < 0:
	case c.opt.Keep == PerSession:
		if k := c.sessions[session]; k != nil && c.usable(k, now) {
			return slices.Index(c.kept, k)
		}
	case c.usable(c.kept[last], now):
		return last // the youngest, of which the server has not tired
	case c.usable(c.kept[0], now):
		return 0 // the oldest, while none but the old may be used
	}
	return -1
}

// usable says whether a kept connection may be used again: not close to the end of
// the server's patience, and, as long as nothing is known of the server, not before
// it has outlived its answer for long enough.
func (c *Client) usable(k *conn, now time.Time) bool {
	return !c.never && (k.expires.IsZero() || now.Before(k.expires)) &&
		(c.trusted || now.Sub(k.since) >= c.opt.Probation)
}

// give takes a connection back after an answer that ended in good order. idle is
// how long the server says that it will wait; 0 is unsaid.
func (k *conn) give(session int64, keep, streamed bool, idle time.Duration) {
	c := k.client
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	k.served++
	k.since, k.session, k.streamed, k.expires = now, session, streamed, time.Time{}
	if idle > 0 {
		k.expires = now.Add(max(idle-time.Second, idle/2))
	}
	_, taken := c.sessions[session]
	switch {
	case c.closed:
		c.drop(k)
	case !keep || c.never || c.opt.Keep == PerRequest, c.opt.Keep == PerSession && (session == NoSession || taken):
		c.open--
		c.parting = append(c.parting, k)
		c.sweep()
	default:
		c.kept = append(c.kept, k)
		if c.opt.Keep == PerSession {
			c.sessions[session] = k
		}
		c.sweep()
		c.free()
	}
}

// lose drops a connection that cannot be used again.
func (k *conn) lose() {
	k.client.mu.Lock()
	defer k.client.mu.Unlock()
	k.client.drop(k)
}

func (c *Client) drop(k *conn) {
	c.open--
	k.nc.Close()
	c.free()
}

// ended drops a connection that the server closed while nobody used it, and learns
// from it.
func (c *Client) ended(k *conn, now time.Time) {
	c.drop(k)
	c.stats.Replaced++
	if k.served > 0 && now.Sub(k.since) < closesSoon {
		if c.soon++; c.soon >= 2 {
			c.never = true
		}
	}
	c.refill()
}

// refill dials for the requests that are to come.
func (c *Client) refill() {
	if c.closed || c.expected == 0 || c.waiting.Load() > 0 || time.Now().Before(c.pause) {
		return
	}
	idle := len(c.fresh) + c.dialling
	if c.opt.Keep == Pooled && c.trusted && !c.never {
		idle += len(c.kept)
	}
	want := min(c.target, c.expected) - idle
	if c.never {
		want = min(max(c.target, c.opt.Size), c.expected) - idle
	} else if c.opt.Keep == Pooled {
		want = max(want, c.opt.Size-c.open-c.dialling)
	}
	for range min(want, mostDials-c.dialling) {
		c.dialling++
		go func() {
			defer crash.Caught()
			c.stock()
		}()
	}
	c.sweep()
}

// stock dials one connection ahead of need.
func (c *Client) stock() {
	k, err := c.dial(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialling--
	switch {
	case err != nil:
		// A request that needs one will dial itself, and say what is wrong.
		c.pause = time.Now().Add(dialPause)
	case c.closed:
		c.drop(k)
	default:
		c.fresh = append(c.fresh, k)
		c.refill()
	}
}

// sweepEvery is how often idle connections are checked, sweepBatch how many of them
// under one lock, sweepMost how many at a time. sweepPause is the time between batches:
// when a lock is let go and taken again at once, a request that waits for it does not
// get it until, after 1 ms, sync.Mutex turns fair.
const (
	sweepEvery = 100 * time.Millisecond
	sweepBatch = 16
	sweepPause = time.Millisecond
	sweepMost  = 2048
)

// sweep has idle connections checked for as long as there are any.
func (c *Client) sweep() {
	if !c.sweeping {
		c.sweeping = true
		time.AfterFunc(sweepEvery, c.sweepOnce)
	}
}

// sweepOnce checks the idle connections once.
func (c *Client) sweepOnce() {
	for _, list := range []*[]*conn{&c.fresh, &c.kept, &c.parting} {
		for from := 0; from < sweepMost; from += sweepBatch {
			c.mu.Lock()
			now := time.Now()
			more := cull(list, from, from+sweepBatch, func(k *conn) bool {
				if list == &c.parting {
					return c.closeParting(k, now)
				}
				return c.dropUnusable(k, now)
			})
			c.mu.Unlock()
			if !more {
				break
			}
			time.Sleep(sweepPause)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeping = false
	c.refill()
	if !c.closed && len(c.fresh)+len(c.kept)+len(c.parting) > 0 {
		c.sweep()
	}
}

// cull removes those of list[from:to] that are not wanted. It says whether there
// are more after them.
func cull(list *[]*conn, from, to int, unwanted func(*conn) bool) (more bool) {
	more = to < len(*list)
	from, to = min(from, len(*list)), min(to, len(*list))
	kept := slices.DeleteFunc((*list)[from:to], unwanted)
	*list = slices.Delete(*list, from+len(kept), to)
	return more
}

// dropUnusable drops an idle connection that can serve no request any more, and reports
// whether it did. That one outlived a streamed answer makes kept connections trusted.
func (c *Client) dropUnusable(k *conn, now time.Time) bool {
	age := now.Sub(k.since)
	switch {
	case !k.silent():
		c.ended(k, now)
	case age > maxIdle, k.served > 0 && c.never, !k.expires.IsZero() && !now.Before(k.expires):
		c.drop(k)
	default:
		c.trusted = c.trusted || k.streamed && age >= c.opt.Probation
		return false
	}
	delete(c.sessions, k.session)
	return true
}

// closeParting closes a connection that its server closed, or had time enough to close,
// and reports whether it did.
func (c *Client) closeParting(k *conn, now time.Time) bool {
	if k.silent() && now.Sub(k.since) < partingTime {
		return false
	}
	k.nc.Close()
	c.free()
	return true
}

// Close closes the connections that are not in use, and the others when they are
// not in use any more.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.cancel()
	for _, list := range []*[]*conn{&c.fresh, &c.kept, &c.parting} {
		for _, k := range *list {
			k.nc.Close()
		}
		*list = nil
	}
	clear(c.sessions)
}

// silent says whether a connection that should say nothing does: it is there, and
// nothing has come, not even its end. With TLS, records that are no data, such as
// session tickets, are taken in.
func (k *conn) silent() bool {
	k.sock.asking = true
	var one [1]byte
	_, err := k.nc.Read(one[:])
	k.sock.asking = false
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}
