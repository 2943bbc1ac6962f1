package flags

import (
	"reprise/replay/client"
	"reprise/replay/result"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/pace"
)

// Wire says how requests get onto the wire.
type Wire struct {
	Connections string // --connections, as [client.PoolSize] reads it
	Realtime    bool   // --set realtime
	AtOnce      int    // requests at once at most, for Check; 0 is unknown
}

// Register adds the flags.
func (f *Wire) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	_, rest := Sections(fl, EndpointFlags)
	rest.StringVar(&f.Connections, "connections", client.Auto,
		"auto (per-request up to 200 requests/s, else pooled), per-request (dialled ahead), pooled, pooled:N (N "+
			"opened before the start) or per-session")
	rest.BoolVar(&f.Realtime, "realtime", false, "")
}

// Check refuses what this process may not do.
func (f *Wire) Check() error {
	size, err := client.PoolSize(f.Connections)
	if err != nil {
		return cli.Exit(cli.Usage, err)
	}
	if n := max(size, f.AtOnce); n > 0 {
		if err := client.CheckFiles(n); err != nil {
			return err
		}
	}
	if !f.Realtime {
		return nil
	}
	thread, err := pace.NewRealtime(time.Now())
	if err != nil {
		return cli.Usagef("--set realtime: %v", err)
	}
	return thread.Close()
}

// Told prints on stderr what the results tell about the connections.
func (f *Wire) Told(cmd *cobra.Command, run *result.Run) {
	if w := run.Wire; w != nil && w.Note != "" {
		cli.Notef(cmd, "connections: %s", w.Note)
	}
}
