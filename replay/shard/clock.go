package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"reprise/replay/result"
	"reprise/trace/crash"
)

// packetSize is that of an NTP packet without extensions (RFC 5905, 7.3).
const packetSize = 48

// Places in a packet.
const (
	rootDelayAt      = 4
	rootDispersionAt = 8
	originateAt      = 24
	receiveAt        = 32
	transmitAt       = 40
)

const (
	modeClient  = 0x23 // version 4, client
	modeServer  = 0x24 // version 4, server
	ntpEpoch    = 2208988800
	ownStratum  = 8 // of a clock that nobody vouches for
	unsynced    = 3 // the leap indicator of a server without the time
	exchanges   = 16
	exchangeGap = 20 * time.Millisecond
	exchangeMax = 500 * time.Millisecond
)

// A Clock tells other shards the time.
type Clock struct{ conn net.PacketConn }

// ListenClock answers NTP requests at a UDP address with the wall clock of this machine.
func ListenClock(address string) (*Clock, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	c := &Clock{conn}
	go func() {
		defer crash.Caught()
		c.serve()
	}()
	return c, nil
}

// Close ends it.
func (c *Clock) Close() error { return c.conn.Close() }

func (c *Clock) serve() {
	buf := make([]byte, 512)
	for {
		n, from, err := c.conn.ReadFrom(buf)
		received := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < packetSize || buf[0]&7 != modeClient&7 {
			continue
		}
		c.conn.WriteTo(answer(buf[:n], received, time.Now), from) // one that is lost is asked for again
	}
}

// answer makes the answer to a request that came at an instant.
func answer(request []byte, received time.Time, now func() time.Time) []byte {
	out := make([]byte, packetSize)
	out[0], out[1], out[3] = modeServer, ownStratum, 0xec // 2^-20 s
	copy(out[originateAt:], request[transmitAt:packetSize])
	binary.BigEndian.PutUint64(out[receiveAt:], stamp(received))
	binary.BigEndian.PutUint64(out[transmitAt:], stamp(now()))
	return out
}

// stamp is an instant as NTP writes it: seconds from 1900 and 2^-32 parts of one.
func stamp(t time.Time) uint64 {
	return uint64(t.Unix()+ntpEpoch)<<32 | uint64(t.Nanosecond())<<32/1e9
}

// instant reads a time stamp, in the 136 years around an instant.
func instant(s uint64, near time.Time) time.Time {
	seconds := int64(int32(uint32(s>>32) - uint32(near.Unix()+ntpEpoch)))
	return time.Unix(near.Unix()+seconds, int64((s&0xffffffff)*1e9>>32))
}

var errNoTime = errors.New("it is no answer to the request, or of a server that has not the time")

// A stampedExchange is what came of a request that was answered.
type stampedExchange struct{ offset, uncertainty time.Duration }

// readAnswer reads the answer to a request that was sent and answered at two instants.
func readAnswer(packet []byte, token uint64, sent, done time.Time) (e stampedExchange, err error) {
	if len(packet) < packetSize || packet[0]&7 != modeServer&7 || packet[0]>>6 == unsynced ||
		packet[1] == 0 || packet[1] > 15 ||
		binary.BigEndian.Uint64(packet[originateAt:]) != token {
		return e, errNoTime
	}
	received := instant(binary.BigEndian.Uint64(packet[receiveAt:]), sent)
	answered := instant(binary.BigEndian.Uint64(packet[transmitAt:]), sent)
	round := done.Sub(sent)
	way := max(round-answered.Sub(received), 0)
	if answered.Before(received) || answered.Sub(received) > round+time.Second {
		return e, errNoTime
	}
	first := received.Sub(sent.Round(0))
	e.offset = first + (answered.Sub(sent.Round(0).Add(round))-first)/2
	e.uncertainty = way/2 + time.Nanosecond
	// What the server itself may be off by, of one that has its time from others.
	if packet[1] != ownStratum || binary.BigEndian.Uint32(packet[rootDispersionAt:]) != 0 {
		e.uncertainty += short(packet[rootDelayAt:])/2 + short(packet[rootDispersionAt:])
	}
	return e, nil
}

// short reads a time in seconds and 2^-16 parts of one.
func short(b []byte) time.Duration {
	return time.Duration(uint64(binary.BigEndian.Uint32(b)) * 1e9 >> 16)
}

// MeasureClock measures how far the wall clock of a peer, host:port, is ahead of ours: of 16
// exchanges, that with the shortest way counts, since its offset is off by half of the way at most.
// A peer that does not answer is asked again until the end of ctx.
func MeasureClock(ctx context.Context, peer string) (result.ClockOffset, error) {
	out := result.ClockOffset{Peer: peer}
	var last error
	for out.Exchanges < exchanges && ctx.Err() == nil {
		e, err := exchange(ctx, peer)
		if err != nil {
			last = err
		} else {
			if out.Exchanges++; out.Exchanges == 1 || int64(e.uncertainty) < out.UncertaintyNS {
				out.OffsetNS, out.UncertaintyNS = int64(e.offset), int64(e.uncertainty)
			}
		}
		pause := exchangeGap
		if err != nil {
			pause = exchangeMax
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	if out.Exchanges == 0 {
		return out, fmt.Errorf("%s did not tell the time before the start: %w", peer,
			errors.Join(last, context.Cause(ctx)))
	}
	return out, nil
}

// exchange asks once.
func exchange(ctx context.Context, peer string) (e stampedExchange, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", peer)
	if err != nil {
		return e, err
	}
	defer conn.Close()
	request := make([]byte, packetSize)
	request[0] = modeClient
	sent := time.Now()
	token := stamp(sent)
	binary.BigEndian.PutUint64(request[transmitAt:], token)
	if err := conn.SetDeadline(sent.Add(exchangeMax)); err != nil {
		return e, err
	}
	if _, err := conn.Write(request); err != nil {
		return e, err
	}
	buf := make([]byte, 512)
	n, err := conn.Read(buf)
	if err != nil {
		return e, err
	}
	return readAnswer(buf[:n], token, sent, time.Now())
}
