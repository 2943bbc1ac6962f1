package cli

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"reprise/trace"
	"reprise/trace/crash"
)

// Progress shows on stderr how far a command is: a bar on a terminal, and a plain
// line every [LogEvery] elsewhere. A step that ends within a second shows nothing.
// Its methods may be called from several goroutines.
type Progress struct {
	w     io.Writer
	term  bool
	quiet bool

	mu      sync.Mutex
	plan    []Step
	at      int // the current step of the plan
	start   time.Time
	step    string
	unit    string
	total   int64
	done    int64
	begin   time.Time
	last    time.Time // of the last line
	told    bool      // how long it takes
	bar     *progressbar.ProgressBar
	stopped chan struct{} // is closed to end the ticker; nil before a step begins
}

// A Step is a step of a command, with its part of the command's time: only the ratios of Parts count.
type Step struct {
	Name string
	Part float64
	// Done is the share of the step that is done, where the number of its units is unknown; it may be nil.
	Done func() float64
}

// After this much time a command says how long the rest takes at the rate so far, if that is long.
const estimateAfter = 2 * time.Second

// LogEvery is how often a command that goes on says so where there is no terminal.
const LogEvery = 10 * time.Second

// mostUncounted bounds the share that a step is taken to have done where nothing is counted.
const mostUncounted = 0.9

// NewProgress shows the progress of cmd. It shows nothing with --quiet. Where the steps of the command are given, the
// time that is left is that of all of them; a step that is none of them is estimated by itself.
func NewProgress(cmd *cobra.Command, plan ...Step) *Progress {
	return &Progress{w: cmd.ErrOrStderr(), term: CanRedraw(cmd.ErrOrStderr()), quiet: On(cmd, "quiet"), plan: plan}
}

// Start begins a step of total units; 0 is an unknown number.
func (p *Progress) Start(step, unit string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	now := time.Now()
	if p.start.IsZero() {
		p.start, p.last = now, now
	}
	p.step, p.unit, p.total, p.done, p.begin = step, unit, total, 0, now
	if at := slices.IndexFunc(p.plan, func(s Step) bool { return s.Name == step }); at >= p.at {
		p.at = at
	} else { // a step of its own, or one that is made again
		p.plan, p.at, p.told = nil, 0, false
	}

	if p.stopped == nil && !p.quiet {
		stopped, every := make(chan struct{}), time.NewTicker(time.Second)
		p.stopped = stopped
		go func() {
			defer every.Stop()
			defer crash.Caught()
			p.tick(every.C, stopped)
		}()
	}
}

// tick shows each second how far the command is, also while a step counts nothing.
func (p *Progress) tick(every <-chan time.Time, stopped <-chan struct{}) {
	for {
		select {
		case <-stopped:
			return
		case now := <-every:
			p.mu.Lock()
			p.show(now)
			p.mu.Unlock()
		}
	}
}

// Set says how many units of the step are done.
func (p *Progress) Set(done int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	p.show(time.Now())
}

func (p *Progress) show(now time.Time) {
	if p.quiet || p.step == "" || now.Sub(p.begin) < time.Second {
		return
	}
	left, known := p.left(now)
	if p.term {
		p.draw(left, known)
		return
	}

	first := !p.told && known && now.Sub(p.since()) >= estimateAfter
	if p.told = p.told || first; first && left < LogEvery || !first && now.Sub(p.last) < LogEvery {
		return
	}
	p.last = now
	said := fmt.Sprintf("%s: %v so far", p.step, now.Sub(p.begin).Round(time.Second))
	switch {
	case p.total > 0 && p.done > 0 && p.done < p.total:
		said = fmt.Sprintf("%s: %d of %d %s", p.step, p.done, p.total, p.unit)
	case p.total <= 0 && p.done > 0:
		said = fmt.Sprintf("%s: %d %s", p.step, p.done, p.unit)
	}
	if known && left > 0 {
		said += fmt.Sprintf(", about %v left", left)
	}
	fmt.Fprintln(p.w, said)
}

// draw draws the bar, and beside its name how long all of a long command takes.
func (p *Progress) draw(left time.Duration, known bool) {
	about := p.step
	if known && left >= LogEvery && len(p.plan) > 0 {
		about = fmt.Sprintf("%s (about %v left)", p.step, left)
	}
	if p.bar == nil {
		total := p.total
		if total == 0 {
			total = -1
		}
		options := []progressbar.Option{progressbar.OptionSetWriter(p.w), progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionSetWidth(30)}
		if p.total > 0 || p.done > 0 { // else nothing is counted
			options = append(options, progressbar.OptionShowCount(), progressbar.OptionShowIts(),
				progressbar.OptionSetItsString(p.unit))
		}
		p.bar = progressbar.NewOptions64(total, options...)
	}
	p.bar.Describe(about)
	_ = p.bar.Set64(p.done) // a bar that cannot be drawn harms nothing
}

// since is when the estimated time began: the command's with a plan, else the step's.
func (p *Progress) since() time.Time {
	if len(p.plan) > 0 {
		return p.start
	}
	return p.begin
}

// left is how long the command still takes at the rate so far, or a step that is not of its plan, to the second.
func (p *Progress) left(now time.Time) (left time.Duration, known bool) {
	share, before, all := 0.0, 0.0, 1.0
	if p.total > 0 {
		share = min(float64(p.done)/float64(p.total), 1)
	}
	if len(p.plan) > 0 {
		all = 0
		for i, step := range p.plan {
			if i < p.at {
				before += step.Part
			}
			all += step.Part
		}
		if done := p.plan[p.at].Done; done != nil {
			share = min(done(), 1)
		}
		if share == 0 && before > 0 { // nothing is counted: as long as its part says, and never over
			part := p.begin.Sub(p.start).Seconds() / before * p.plan[p.at].Part
			share = min(now.Sub(p.begin).Seconds()/part, mostUncounted)
		}
		share *= p.plan[p.at].Part
	}
	if before+share <= 0 {
		return 0, false
	}
	rest := now.Sub(p.since()).Seconds() * (all - before - share) / (before + share)
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
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
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
