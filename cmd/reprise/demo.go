package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/datasets"
	"reprise/replay/engine"
	"reprise/replay/report"
	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/doc"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

func demoCommand() *cobra.Command {
	var dir string
	var speed float64
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run all stages on an embedded log, up to an HTML page",
		Long: `Demo imports and profiles an embedded log (made up, of a gateway), makes a workload of it,
replays that against a simulated endpoint in the same process, and writes an HTML page
with the results. It needs no network and takes less than a minute.

The page says whether the run can be trusted on this machine; the exit code only whether
every stage ran.`,
		Example: `  reprise demo -o demo`,
		Args:    flags.Wants(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			d := demo{cmd: cmd, dir: dir, speed: speed}
			return d.run()
		},
	}
	results, _ := flags.Sections(cmd.Flags(), flags.ResultsFlags)
	load, _ := flags.Sections(cmd.Flags(), flags.LoadFlags)
	results.StringVarP(&dir, "output", "o", "demo", "`directory` to write to")
	load.FactorVar(&speed, "speed", 2, "replay this much faster than recorded")
	results.Bool("json", false, "print the summary as JSON")
	results.Bool("quiet", false, flags.QuietUsage)
	flags.Details(cmd.Flags())
	return cmd
}

// A demo runs the stages one after the other.
type demo struct {
	cmd   *cobra.Command
	dir   string
	speed float64

	summary report.Summary // once there is one
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

func (d *demo) run() error {
	begin := time.Now()
	for i, stage := range []struct {
		name string
		run  func() (came string, err error)
	}{
		{"import", d.importLog},
		{"profile", d.profile},
		{"synth", d.synth},
		{"replay", d.replay},
		{"report", d.report},
	} {
		came, err := stage.run()
		if err != nil {
			return fmt.Errorf("%s: %w", stage.name, err)
		}
		cli.Notef(d.cmd, "[%d/5] %-8s %s", i+1, stage.name, came)
	}
	if cli.On(d.cmd, "json") {
		return cli.WriteJSON(d.cmd.OutOrStdout(), d.summary)
	}
	cli.Notef(d.cmd, "")
	answer := cli.TextOptions(d.cmd, "")
	answer.Lines = textpage.Screen - 8 // the stages, a blank line, the last one, and one of make demo
	if err := report.Page(d.summary).WriteText(d.cmd.OutOrStdout(), answer); err != nil {
		return err
	}
	cli.Warnf(d.cmd, "Done in %.0f s. Open %s in a browser.", time.Since(begin).Seconds(), d.path("report.html"))
	return nil
}

// demoBlock suits the short prompts of the embedded log.
const demoBlock = 64

func (d *demo) importLog() (string, error) {
	log := []datasets.File{{Name: "demo log", Open: datasets.Demo}}
	var f importFlags
	f.register(new(cobra.Command))                                                // sets the defaults
	f.out, f.BlockSize, f.Template = d.path("trace.parquet"), demoBlock, "chatml" // as the log was counted
	f.asStep = func(datasets.Info) {}
	return "a log becomes a trace, without its text: " + d.path("trace.parquet"), f.run(quietly(d.cmd), log)
}

func (d *demo) profile() (string, error) {
	t, err := trace.Open(d.path("trace.parquet"))
	if err != nil {
		return "", err
	}
	defer t.Close()
	p, err := profileOf(d.cmd, t, profileOptions(profile.DefaultServerBlock, -1))
	if err != nil {
		return "", err
	}
	s := p.Summary()
	return fmt.Sprintf("%s; a cache could serve %s of the prompt tokens", doc.Many(s.Requests, "request"),
			doc.OrDash(s.Reuse.HitRatios.ByToken, doc.Percent)), writeHistograms(d.path("histograms.parquet"),
			t.Meta, p.Histograms())
}

func (d *demo) synth() (string, error) {
	t, err := trace.Open(d.path("trace.parquet"))
	if err != nil {
		return "", err
	}
	defer t.Close()
	t.Meta.SharedTails = trace.TailsShared // as reprise synth --mirror does
	return "a workload with the same prefix reuse: " + d.path("workload.parquet"),
		cli.WriteTrace(d.cmd, d.path("workload.parquet"), func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			return mirrorTrace(t, 1, dst)
		})
}

func (d *demo) replay() (string, error) {
	w, err := trace.Open(d.path("workload.parquet"))
	if err != nil {
		return "", err
	}
	defer w.Close()
	s, err := engine.NewServer(engine.DefaultServerConfig())
	if err != nil {
		return "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancel(d.cmd.Context())
	done := make(chan error, 1)
	go func() {
		defer crash.Caught()
		done <- serve(ctx, l, s.Handler())
	}()
	var f runs.Replay
	f.Defaults()
	f.Target.URLs, f.Load.Speed, f.Out = []string{fmt.Sprintf("http://%s", l.Addr())}, d.speed,
		d.path("results.parquet")
	cmd := quietly(d.cmd)
	if cli.CanRedraw(d.cmd.ErrOrStderr()) { // where the progress is one line that changes
		cmd = d.cmd
	}
	err = f.Run(cmd, w)
	stop()
	if serr := <-done; err == nil {
		err = serr
	}
	return fmt.Sprintf("sent on time to a simulated endpoint, %gx as fast as recorded", d.speed), err
}

func (d *demo) report() (string, error) {
	var f reportFlags
	f.Defaults()
	f.SLO = "ttft:200ms,tpot:50ms"
	var err error
	if d.summary, err = f.summarise(d.cmd, d.path("results.parquet"), 0, 1); err != nil {
		return "", err
	}
	f.HTML = d.path("report.html")
	return "what was measured: " + f.HTML, f.writePage(report.Named{Summary: d.summary})
}
