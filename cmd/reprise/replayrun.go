package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/profile"
)

// A replayRun is a replay on its way from its flags to its results.
type replayRun struct {
	*replayFlags
	cmd *cobra.Command
	w   *trace.Trace

	part     *workloadPart
	maker    *promptMaker
	rows     *countedRows
	lineage  *replay.Lineage // nil where no turn waits for another
	endpoint *replay.HTTP
	servers  *replayServers
	prompter rowPrompter
	known    *profile.KnownPass
	about    replay.Run

	closes []func() // what is to be closed at the end, in the order of opening
}

// run replays the workload into the results file that the flags name.
func (f *replayFlags) run(cmd *cobra.Command, w *trace.Trace) error {
	r := &replayRun{replayFlags: f, cmd: cmd, w: w}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	if err := r.fill(); err != nil {
		return err
	}

	defer replay.FewCollections()()
	r.about.Cores = runtime.GOMAXPROCS(0)
	defer replay.SpareProcessor()()
	options, err := r.options()
	if err != nil {
		return err
	}
	return r.send(options)
}

func (r *replayRun) close() {
	for i := len(r.closes) - 1; i >= 0; i-- {
		r.closes[i]()
	}
}

// open opens all that the run reads and sends to. Nothing is done to the servers yet
// but to ask them who they are.
func (r *replayRun) open() (err error) {
	if r.part, r.maker, err = r.chosen(r.cmd, r.w); err != nil {
		return err
	}
	if r.rows, err = r.part.reader(); err != nil {
		return err
	}
	if r.lineage, err = r.replayFlags.lineage(r.cmd, r.part.turns); err != nil {
		return err
	}
	if r.thread && r.lineage == nil {
		return usagef("--thread: the workload has no turns with a think or tool time, so that none waits for a reply")
	}
	extras, closeExtras, err := r.openRowExtra(r.cmd, r.part.of)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, func() { closeExtras() })
	if r.endpoint, err = r.replayFlags.endpoint(r.maker.tok, extras); err != nil {
		return err
	}
	r.closes = append(r.closes, r.endpoint.Close)
	if r.servers, err = r.openServers(r.cmd, r.w, r.endpoint, r.maker); err != nil {
		return err
	}
	r.closes = append(r.closes, r.servers.admin.Close)
	if r.prompter, err = r.servers.prompter(); err != nil {
		return err
	}
	return r.part.spellable(r.prompter.Blocks())
}

// fill says what is known of the run, and brings the servers' caches to where it
// begins.
func (r *replayRun) fill() error {
	live, err := r.liveAtStart(r.cmd, r.part)
	if err != nil {
		return err
	}
	r.about = replay.Run{Version: version, Tokenizer: r.maker.tok.Name(), Workload: r.w.Meta.Digest, Tier: r.w.Meta.Tier,
		Seed: strconv.FormatUint(r.maker.seed, 10), BlockSize: r.part.blockSize, ServerBlock: r.serverBlock}
	if r.about.Privacy, err = privacyOf(&r.w.Meta); err != nil {
		return err
	}
	r.endpoint.Describe(&r.about)
	r.about.PromptText, r.about.Note = cmp.Or(r.w.Meta.Text, replay.TextStable), r.note
	r.describeRaw(&r.about)
	if err := r.servers.describe(r.cmd.Context(), &r.about); err != nil {
		return err
	}
	if err := r.servers.warmUp(r.cmd, r.part, r.lineage); err != nil {
		return err
	}
	r.known = profile.NewKnownPass(r.part.blockSize, false, profile.WithTails(r.maker.tails.Of))
	return r.fillCache(r.cmd, r.part, live, r.endpoint, r.servers.prompter, r.known)
}

// options are what the flags, the part and the servers make of the run.
func (r *replayRun) options() (replay.Options, error) {
	r.requests = r.rows.total
	o, err := r.schedule(r.lineage, r.servers.arrivalSeed)
	if err != nil {
		return o, err
	}
	if o.Abort, err = r.conditions(); err != nil {
		return o, err
	}
	r.about.Rate, o.Realtime = r.rate, r.realtime
	if o.Thread, err = r.threading(r.cmd, r.part, r.lineage, r.endpoint, r.maker); err != nil {
		return o, err
	}
	o.About = r.about
	r.part.apply(&o)
	r.servers.attach(&o)
	if o.Known = r.known.Touch; r.cache == replay.CacheWarm {
		o.Known = func(row *trace.Request) int32 { return row.InputTokens } // all of it, by the warm-up pass
	}
	if r.resume {
		if o.Resume, err = r.resumption(r.cmd, r.part, r.servers.arrivalSeed, o); err != nil {
			return o, err
		}
	}
	o.Then = r.determinism(r.cmd, r.w, r.endpoint, r.prompter)
	return o, nil
}

// send sends all of it, watched by who started it, and says what was odd.
func (r *replayRun) send(options replay.Options) error {
	runner := replay.Runner{Prompter: r.sends(r.prompter), Endpoint: r.endpoint, Options: options}
	verify := func() error { return nil }
	if r.verify {
		single, ok := r.prompter.(*prompt.Prompter)
		if !ok {
			return usagef("--verify has no meaning with --api auto where the APIs have different templates")
		}
		checker := prompt.NewChecker(single, r.maker.tok)
		runner.Prompter, verify = checker, func() error { return verified(r.cmd, checker.Close(), r.out) }
	}
	watching := r.watch(r.cmd, liveAbout{"replay to " + strings.Join(r.endpoint.Endpoints(), ", "), r.rows.total, r.about.Cores, r.judge.trust.Limits})
	defer watching.end()
	runner.Progress = watching.progress
	told := context.AfterFunc(r.cmd.Context(), func() {
		if watching.stopping() {
			return
		}
		notef(r.cmd, "stopping: requests in flight have %v to end; a second interrupt ends at once, and leaves the journal", options.Grace)
	})
	defer told()
	run, err := runner.Record(r.cmd.Context(), r.rows, r.out)
	watching.end()
	if err == nil && run.EndedEarly != "" {
		notef(r.cmd, "ended early: %s; the results so far are in %s", run.EndedEarly, r.out)
	}
	noteOdd(r.cmd, run.Odd)
	r.replayFlags.told(r.cmd, &run)
	noteThreads(r.cmd, run.Thread)
	if n := r.prompter.Filled(); n > 0 {
		notef(r.cmd, "corpus: %d tokens of the prompts are words, where it could not be cut", n)
	}
	if verr := verify(); err == nil {
		err = verr
	}
	return err
}

// verified says what came of encoding prompts again. One that has other tokens
// than asked for makes the run untrustworthy.
func verified(cmd *cobra.Command, v prompt.Verified, results string) error {
	notef(cmd, "verified: %d of %d prompts encoded again, %d tokens, %d of the prompts not as asked", v.Prompts, v.Prompts+v.Skipped, v.Tokens, v.Mismatches)
	if v.Mismatches > 0 {
		return &exitError{exitUntrusted, fmt.Errorf("%d prompts do not have the tokens asked for; the results are in %s", v.Mismatches, results)}
	}
	return nil
}
