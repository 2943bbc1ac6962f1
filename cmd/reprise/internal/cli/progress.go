package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"reprise/trace"
)

// Progress shows on stderr how far a command is: a bar on a terminal, and a plain
// line every [LogEvery] elsewhere. A step that ends within a second shows nothing.
// Its methods may be called from several goroutines.
type Progress struct {
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
	told  bool // how long the step takes
	bar   *progressbar.ProgressBar
}

// A step of which this much time has passed is said to take as long as all of it takes at that rate, if that is long.
const estimateAfter = 2 * time.Second

// LogEvery is how often a command that goes on says so where there is no terminal.
const LogEvery = 10 * time.Second

// NewProgress shows the progress of cmd. It shows nothing with --quiet.
func NewProgress(cmd *cobra.Command) *Progress {
	return &Progress{w: cmd.ErrOrStderr(), term: CanRedraw(cmd.ErrOrStderr()), quiet: On(cmd, "quiet")}
}

// Start begins a step of total units; 0 is an unknown number.
func (p *Progress) Start(step, unit string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	p.step, p.unit, p.total, p.done, p.begin = step, unit, total, 0, time.Now()
	p.last, p.told = p.begin, false
}

// Set says how many units of the step are done.
func (p *Progress) Set(done int64) {
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
			p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(p.w),
				progressbar.OptionSetDescription(p.step),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionShowCount(),
				progressbar.OptionShowIts(),
				progressbar.OptionSetItsString(p.unit), progressbar.OptionClearOnFinish(),
				progressbar.OptionSetWidth(30))
		}
		_ = p.bar.Set64(done) // a bar that cannot be drawn harms nothing
		return
	}
	left, known := p.left(now)
	switch {
	case !p.told && known && now.Sub(p.begin) >= estimateAfter:
		if p.told = true; left >= LogEvery {
			p.last = now
			fmt.Fprintf(p.w, "%s: about %v left, at %d of %d %s\n", p.step, left, p.done, p.total, p.unit)
		}
	case now.Sub(p.last) < LogEvery:
	case known:
		p.last = now
		fmt.Fprintf(p.w, "%s: %d of %d %s, about %v left\n", p.step, p.done, p.total, p.unit, left)
	default:
		p.last = now
		fmt.Fprintf(p.w, "%s: %d %s\n", p.step, p.done, p.unit)
	}
}

// left is how long the rest of the step takes at the rate so far, to the second.
func (p *Progress) left(now time.Time) (left time.Duration, known bool) {
	if p.total <= 0 || p.done <= 0 {
		return 0, false
	}
	rest := now.Sub(p.begin).Seconds() / float64(p.done) * float64(max(p.total-p.done, 0))
	return time.Duration(rest+0.5) * time.Second, true
}

// Step says how many requests of a step are done, which begins unless it is the one that
// is shown. How many there will be is not known.
func (p *Progress) Step(step string, done int64) {
	p.mu.Lock()
	begins := p.step != step
	p.mu.Unlock()
	if begins {
		p.Start(step, "requests", 0)
	}
	p.Set(done)
}

// End ends the step.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	p.step = ""
}

func (p *Progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}

// Watch reads src and shows how many rows were read. Reading fails once the command
// is interrupted.
func (p *Progress) Watch(cmd *cobra.Command, src trace.Reader[trace.Request]) trace.Reader[trace.Request] {
	return &watched{Reader: src, cmd: cmd, progress: p}
}

type watched struct {
	trace.Reader[trace.Request]
	cmd      *cobra.Command
	progress *Progress
	rows     int64
}

// Read implements trace.Reader.
func (w *watched) Read(rows []trace.Request) (int, error) {
	if err := w.cmd.Context().Err(); err != nil {
		return 0, err
	}
	n, err := w.Reader.Read(rows)
	w.rows += int64(n)
	w.progress.Set(w.rows)
	return n, err
}
