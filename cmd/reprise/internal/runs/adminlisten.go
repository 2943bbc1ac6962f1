package runs

import (
	"context"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/monitor"
)

// AdminListen is --admin-listen: the client's own figures for Prometheus while it runs.
// Copies of it share the listener, so that the trials of a command have one.
type AdminListen struct{ *adminListener }

type adminListener struct {
	address string
	monitor *monitor.Monitor // nil before it listens
}

// Register implements [flags.Group].
func (f *AdminListen) Register(cmd *cobra.Command) {
	f.adminListener = new(adminListener)
	_, rest := flags.Sections(cmd.Flags(), flags.RunningFlags)
	rest.StringVar(&f.address, "admin-listen", "", "")
}

// Check implements [flags.Group].
func (f *AdminListen) Check() error {
	if f.address == "" {
		return nil
	}
	_, err := monitor.Address(f.address)
	if err != nil {
		err = cli.Usagef("--set admin-listen=%s: %v", f.address, err)
	}
	return err
}

// open begins to listen, unless that has begun or nobody asks, and says where. It
// listens until ctx ends or the caller that opened it calls closeAll, which does nothing
// for the others.
func (f *AdminListen) open(ctx context.Context, cmd *cobra.Command) (closeAll func(), err error) {
	if f.address == "" || f.monitor != nil {
		return func() {}, nil
	}
	address, err := monitor.Address(f.address)
	if err != nil {
		return nil, cli.Usagef("--set admin-listen=%s: %v", f.address, err)
	}
	m := monitor.New(cli.Version)
	ctx, end := context.WithCancel(ctx)
	url, open, err := m.Listen(ctx, address)
	if err != nil {
		end()
		return nil, cli.Usagef("--set admin-listen=%s: %v", f.address, err)
	}
	f.monitor = m
	if open {
		cli.Warnf(cmd, "metrics of this client: %s, on all interfaces: every machine that can reach this one "+
			"can read them", url)
	} else {
		cli.Notef(cmd, "metrics of this client: %s", url)
	}
	return func() { end(); f.monitor = nil }, nil
}

// watch has a run of so many requests feed the metrics, where somebody listens.
func (f *AdminListen) watch(runner *replay.Runner, requests int64) {
	if f.monitor == nil {
		return
	}
	run, show := f.monitor.Begin(requests), runner.Progress
	runner.Observe = run.Observe
	runner.Progress = func(p replay.Progress) {
		run.Progress(p)
		show(p)
	}
}
