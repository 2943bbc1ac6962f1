package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// progress tells how far a command is: a bar on a terminal, a plain line every
// few seconds elsewhere, and nothing at all from what ends within a second.
type progress struct {
	w     io.Writer
	term  bool
	quiet bool

	mu    sync.Mutex
	step  string
	unit  string
	total int64
	done  int64
	begin time.Time
	last  time.Time
	bar   *progressbar.ProgressBar
}

func newProgress(cmd *cobra.Command) *progress {
	quiet, _ := cmd.Flags().GetBool("quiet")
	return &progress{w: cmd.ErrOrStderr(), term: isTerminal(cmd.ErrOrStderr()), quiet: quiet}
}

// start begins a step of total units, or of unknown length when total is 0.
func (p *progress) start(step, unit string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	p.step, p.unit, p.total, p.done, p.begin = step, unit, total, 0, time.Now()
	p.last = p.begin
}

// set says how much is done.
func (p *progress) set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.done = done
	if p.quiet || p.step == "" || now.Sub(p.begin) < time.Second {
		return
	}
	if p.term {
		if p.bar == nil {
			total := p.total
			if total == 0 {
				total = -1
			}
			p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.step),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
				progressbar.OptionSetItsString(p.unit), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))
		}
		_ = p.bar.Set64(done) // a bar that cannot be drawn harms nothing
		return
	}
	if now.Sub(p.last) >= 5*time.Second {
		p.last = now
		p.line()
	}
}

func (p *progress) line() {
	if p.total > 0 {
		fmt.Fprintf(p.w, "%s: %d of %d %s\n", p.step, p.done, p.total, p.unit)
	} else {
		fmt.Fprintf(p.w, "%s: %d %s\n", p.step, p.done, p.unit)
	}
}

// end ends the step.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	p.step = ""
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
