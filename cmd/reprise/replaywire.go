package main

import (
	"time"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/replay/pace"
)

// wireFlags say how requests get onto the wire.
type wireFlags struct {
	connections string
	realtime    bool
}

func (f *wireFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.connections, "connections", replay.PerRequest, "per-request, pooled, pooled:N with N connections opened before the start, or per-session; each is dialled ahead of need")
	fl.BoolVar(&f.realtime, "realtime", false, "send from a thread that all others give way to (SCHED_FIFO; Linux, root or CAP_SYS_NICE)")
}

// check refuses what this process may not do. atOnce is how many requests there may
// be at once; 0 is unknown.
func (f *wireFlags) check(atOnce int) error {
	size, err := replay.PoolSize(f.connections)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if n := max(size, atOnce); n > 0 {
		if err := replay.CheckFiles(n); err != nil {
			return err
		}
	}
	if !f.realtime {
		return nil
	}
	thread, err := pace.NewRealtime(time.Now())
	if err != nil {
		return usagef("--realtime: %v", err)
	}
	return thread.Close()
}

// checkConnections refuses uses of connections that only our own HTTP/1.1 client
// has: HTTP/2 has one connection for all, or one for each request.
func (f *replayFlags) checkConnections() error {
	if f.http2 && f.connections != replay.PerRequest && f.connections != replay.Pooled {
		return usagef("--http2 has --connections %s and %s alone", replay.PerRequest, replay.Pooled)
	}
	return nil
}

// told says on stderr what the results say of the connections.
func (f *wireFlags) told(cmd *cobra.Command, run *replay.Run) {
	if w := run.Wire; w != nil && w.Note != "" {
		notef(cmd, "connections: %s", w.Note)
	}
}
