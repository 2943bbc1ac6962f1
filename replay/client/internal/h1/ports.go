package h1

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// connect dials for a request for which no connection was ready. While the system has no
// local port left for another connection, the request waits until one of the connections
// is free or a port is, behind those that wait already.
func (c *Client) connect(ctx context.Context, session int64) (*conn, error) {
	if c.waiting.Load() == 0 {
		k, err := c.dial(ctx)
		if !c.portless(err) {
			return k, err
		}
	}
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	began := time.Now()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stats.PortWaits++
		c.stats.PortWait = max(c.stats.PortWait, time.Since(began))
	}()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		if k := c.ready(session); k != nil {
			return k, nil
		}
		c.mu.Lock()
		pause := portPause - time.Since(c.noPort)
		c.mu.Unlock()
		if pause <= 0 {
			k, err := c.dial(ctx)
			if !c.portless(err) {
				return k, err
			}
			continue
		}
		again := time.NewTimer(pause)
		select {
		case <-c.freed:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// portless says whether a dial failed for want of a local port, and notes when. The
// system has the same error for an address that it cannot reach at all: then no dial
// has ever succeeded.
func (c *Client) portless(err error) bool {
	if !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noPort = time.Now()
	return c.stats.Dials > 0
}

// free tells the request that looks for a connection that there may be one.
func (c *Client) free() {
	select {
	case c.freed <- struct{}{}:
	default:
	}
}
