package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"reprise/trace/crash"
)

// Defaults of [Served]. Loading the weights of a large model takes minutes.
const (
	DefaultReady = 15 * time.Minute
	DefaultGrace = 30 * time.Second
)

// Served is a Target that starts the engine which its trials are made against. The
// first trial starts it, and it runs until [Served.Close], or with Fresh until the
// trial is over. So two of them can take turns on one GPU.
//
// All processes of an engine end with it, as far as they stay in its process group.
// On Linux its first process is asked to end when ours is killed.
type Served struct {
	Command ServeCommand
	URL     string                  // of the endpoint; "" is the port of this machine that the command is told
	Target  func(url string) Target // makes the trials
	Fresh   bool                    // an engine of its own for each trial
	Others  []*Served               // stopped before this one starts, since they share its GPUs

	Log   string        // file at whose end its output goes; "" is one beside the results of the trial that starts it
	Ready time.Duration // how long it may take to be ready; 0 is [DefaultReady]
	Grace time.Duration // how long it may take to end when asked; 0 is [DefaultGrace]
	Note  func(string)  // when set, is told what happens

	engine *engineProcess
	target Target
}

// Run implements [Target].
func (s *Served) Run(ctx context.Context, t Trial) (err error) {
	beside := strings.TrimSuffix(t.Results, filepath.Ext(t.Results)) + ".engine.log"
	if err := s.start(ctx, cmp.Or(s.Log, beside)); err != nil {
		return err
	}
	if s.Fresh {
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := s.engine
	over := make(chan struct{})
	defer close(over)
	go func() {
		defer crash.Caught()
		select {
		case <-e.ended: // requests would fail one by one
			cancel()
		case <-over:
		}
	}()
	err = s.target.Run(ctx, t)
	select {
	case <-e.ended:
		s.engine = nil
		e.stop(0) // what it left behind
		return fmt.Errorf("the engine exited during the run: see %s", e.log)
	default:
		return err
	}
}

// start starts the engine, unless it runs.
func (s *Served) start(ctx context.Context, log string) error {
	if s.engine != nil {
		return nil
	}
	if !s.Command.HasPort() && s.URL == "" {
		return errors.New("the command has no {port} and no URL is given: add one of them, to say where the " +
			"engine answers")
	}
	for _, o := range s.Others {
		if err := o.Close(); err != nil {
			return err
		}
	}
	if s.URL != "" && !s.Command.HasPort() {
		if e := (&engineProcess{url: s.URL}); e.healthy(ctx) {
			return fmt.Errorf("a server already answers at %s: stop it, so that the engine can be started", s.URL)
		}
	}
	began := time.Now()
	e, err := startEngine(s.Command, s.URL, log)
	if err != nil {
		return err
	}
	s.note("engine: started, log %s", log)
	if err := e.ready(ctx, cmp.Or(s.Ready, DefaultReady)); err != nil {
		e.stop(cmp.Or(s.Grace, DefaultGrace))
		return err
	}
	s.note("engine: ready at %s after %v", e.url, time.Since(began).Round(time.Millisecond))
	s.engine, s.target = e, s.Target(e.url)
	return nil
}

func (s *Served) note(format string, args ...any) {
	if s.Note != nil {
		s.Note(fmt.Sprintf(format, args...))
	}
}

// Close stops the engine, if it runs. It may be started again.
func (s *Served) Close() error {
	if s.engine == nil {
		return nil
	}
	s.engine.stop(cmp.Or(s.Grace, DefaultGrace))
	s.engine = nil
	s.note("engine: stopped")
	return nil
}
