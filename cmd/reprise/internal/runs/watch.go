package runs

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/report"
	"reprise/trace/crash"
)

// Live say how a replay is watched.
type Live struct {
	live string
	cmd  *cobra.Command // that has the flag
}

// Values of live.
const (
	liveAuto = "auto"
	liveOn   = "on"
	liveOff  = "off"
)

// Register implements [flags.Group].
func (f *Live) Register(cmd *cobra.Command) {
	f.cmd = cmd
	_, rest := flags.Sections(cmd.Flags(), flags.RunningFlags)
	rest.StringVar(&f.live, "live", liveAuto, "")
}

// Check implements [flags.Group].
func (f *Live) Check() error {
	quiet := cli.On(f.cmd, "quiet")
	switch f.live {
	case liveAuto, liveOff:
	case liveOn:
		if quiet {
			return cli.Usagef("--set live=on and --quiet cannot be used together")
		}
		if !hasScreen(f.cmd) {
			return cli.Usagef("--set live=on: stdin and stderr are not both a terminal")
		}
	default:
		return cli.Usagef("--set live: want auto, on or off")
	}
	return nil
}

// hasScreen says that there is somebody to look, who can press keys.
func hasScreen(cmd *cobra.Command) bool {
	in, ok := cmd.InOrStdin().(io.Writer) // an os.File is both
	return ok && cli.IsTerminal(in) && cli.CanRedraw(cmd.ErrOrStderr())
}

// A watcher shows a run: as a view of it, as lines, or not at all.
type watcher struct {
	about   liveAbout
	lines   io.Writer     // of the lines; nil shows none
	line    time.Duration // of the run, when the next line is due
	history liveHistory

	messages chan tea.Msg  // to the view; nil without one
	over     chan struct{} // closed when the view is
	once     sync.Once
}

// liveAbout is what the view says that does not change.
type liveAbout struct {
	title  string
	total  int64         // rows of the workload
	lasts  time.Duration // after which nothing is sent any more; 0 is never
	closed bool          // an answer decides when the next request is sent, so that none is due
	cores  int
	limits report.Limits
}

// watch begins to show a run.
func (f *Live) watch(cmd *cobra.Command, about liveAbout) *watcher {
	w := &watcher{about: about}
	quiet := cli.On(cmd, "quiet")
	switch {
	case quiet:
	case f.live != liveOff && hasScreen(cmd):
		// A terminal in raw mode does not turn Ctrl-C into a signal. The first ends the
		// sending, the next one the process.
		model := liveModel{about: about, stop: func() {
			if p, err := os.FindProcess(os.Getpid()); err == nil {
				_ = p.Signal(os.Interrupt)
			}
		}}
		// Nothing waits for the view: not for a terminal that takes no output, and not for a
		// view that cannot be drawn.
		program := tea.NewProgram(model, tea.WithInput(cmd.InOrStdin()), tea.WithOutput(cmd.ErrOrStderr()),
			tea.WithoutSignalHandler(), tea.WithFPS(10))
		w.messages, w.over = make(chan tea.Msg, 16), make(chan struct{})
		go func() {
			defer close(w.over)
			defer crash.Caught()
			last, _ := program.Run()
			if m, ok := last.(liveModel); ok && m.kill {
				m.stop()
			}
		}()
		go func() {
			defer crash.Caught()
			for {
				select {
				case msg := <-w.messages:
					program.Send(msg)
				case <-w.over:
					return
				}
			}
		}()
	default:
		w.lines = cmd.ErrOrStderr()
	}
	return w
}

func (w *watcher) send(msg tea.Msg) {
	select {
	case w.messages <- msg:
	default: // the view is stuck
	}
}

// progress takes a report of the run, once a second.
func (w *watcher) progress(p replay.Progress) {
	switch {
	case w.messages != nil:
		w.send(p)
	case w.lines != nil:
		w.history.add(p)
		if p.Elapsed < max(w.line, cli.LogEvery) {
			return
		}
		w.line = p.Elapsed.Truncate(cli.LogEvery) + cli.LogEvery
		sent, due := w.history.rates()
		q := &p.Total
		sending := fmt.Sprintf("sent %.1f/s of %.1f/s due", sent, due)
		if w.about.closed {
			sending = fmt.Sprintf("sent %.1f/s", sent)
		}
		if of := w.about.toSend(&p); of > 0 && p.Done+int64(p.InFlight) >= of {
			sending = "all sent"
		}
		out := fmt.Sprintf("replay %s: %s, %s, %d in flight, %.0f tok/s, TTFT p50 %s p99 %s, "+
			"ITL p50 %s p99 %s, lag p50 %s p99 %s, CPU %.2f, errors: %s",
			p.Elapsed.Round(time.Second), done(w.about, &p), sending, p.InFlight, w.history.tokens(),
			span(q.TTFT, q.TTFT.P50), span(q.TTFT, q.TTFT.P99), span(q.ITL, q.ITL.P50), span(q.ITL, q.ITL.P99),
			span(q.Lag, q.Lag.P50), span(q.Lag, q.Lag.P99), p.CPU, errorsByClass(&p))
		if why := liveReasons(&p, w.about); len(why) > 0 {
			out += "; not trustworthy so far" + looser(w.about.limits) + ": " + strings.Join(why, "; ")
		}
		fmt.Fprintln(w.lines, out)
	}
}

// stopping says that the run is being stopped. It is false where nobody is told
// by the view.
func (w *watcher) stopping() bool {
	if w.messages == nil {
		return false
	}
	w.send(liveStopping{})
	return true
}

// end stops showing. What is seen last stays.
func (w *watcher) end() {
	w.once.Do(func() {
		if w.messages == nil {
			return
		}
		w.send(liveOver{})
		select {
		case <-w.over:
		case <-time.After(time.Second):
		}
	})
}

// toSend is how many requests a run has; 0 where it has no end. Rows that are left
// out are known once they are read, so that it falls to what is really sent.
func (a liveAbout) toSend(p *replay.Progress) int64 { return max(a.total-p.LeftOut, 0) }
