package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
	"reprise/trace/usage"
)

// chosen is the part of the workload that the flags ask for, and what makes its
// prompts.
func (f *Replay) chosen(cmd *cobra.Command, w *trace.Trace) (*workloadPart, *flags.PromptMaker, error) {
	rows, blockSize, err := OpenRows(w)
	if err != nil {
		return nil, nil, err
	}
	maker, err := f.Prompts.Maker(cmd, w, blockSize)
	if err != nil {
		return nil, nil, err
	}
	maker.Rows = rows.Total
	if n := int64(maker.Tails.Len()); n > 0 && !f.HasText() && cli.On(cmd, "details") {
		cli.Notef(cmd, "shared tails: %s also share the %s of an earlier prompt's last, partial block",
			doc.Many(n, "prompt block"), doc.Many(int64(maker.Tails.Tokens()), "token"))
	}
	part, err := partOf(cmd, w, &f.Workload, maker.Seed)
	if err != nil {
		return nil, nil, err
	}
	if err := part.deal(cmd, &f.Load); err != nil {
		return nil, nil, err
	}
	if part.loop != nil { // the tails of the workload, in every round
		maker.Tails = maker.Tails.Repeat(part.loop.Blocks)
	}
	return part, maker, nil
}

func (f *Replay) endpoint(m *flags.PromptMaker, extras client.RowExtras, connections string) (*client.HTTP, error) {
	o, err := f.Target.Options()
	if err != nil {
		return nil, err
	}
	o.Rows, o.Connections, o.Replies = extras, connections, f.thread
	o.Count = func(text string) int { return len(m.Tok.Append(nil, text)) }
	e, err := client.New(o)
	if err != nil {
		err = cli.Usagef("%s", strings.TrimPrefix(err.Error(), "client: "))
	}
	return e, err
}

// A replayRun is a replay on its way from its flags to its results.
type replayRun struct {
	*Replay
	cmd *cobra.Command
	w   *trace.Trace

	part     *workloadPart
	maker    *flags.PromptMaker
	rows     *Rows
	lineage  *replay.Lineage // nil where no turn waits for another
	endpoint *client.HTTP
	servers  *replayServers
	prompter flags.RowPrompter
	known    *profile.KnownPass
	about    result.Run

	imageLoad      *result.ImageLoad // nil where no row has image tokens
	connectionsWhy string            // "" where they were given
	plan           *replay.Plan      // of one round; nil until it is asked for

	closes []func() // what is to be closed at the end, in the order of opening
}

// Run replays the workload into the results file that the flags name.
func (f *Replay) Run(cmd *cobra.Command, w *trace.Trace) error {
	r := &replayRun{Replay: f, cmd: cmd, w: w}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}

	// What is known of the run is noted, and the servers' caches are brought to where it
	// begins.
	live, err := r.part.liveAtStart(r.cmd, &r.Workload)
	if err != nil {
		return err
	}
	r.about = result.Run{
		Version: cli.Version,
		Load:    result.Load{Tokenizer: r.maker.Tok.Name(), Guessed: r.maker.Guessed, Words: r.servers.words},
		Images:  r.imageLoad,
		Source: result.Source{Workload: r.w.Meta.Digest, Tier: r.w.Meta.Tier,
			Seed: strconv.FormatUint(r.maker.Seed, 10), BlockSize: r.part.blockSize},
	}
	if r.about.Privacy, err = PrivacyOf(&r.w.Meta); err != nil {
		return err
	}
	r.endpoint.Describe(&r.about)
	r.about.ConnectionsWhy = r.connectionsWhy
	r.about.Scenario = r.Scenario.About()
	r.about.PromptText, r.about.Note = cmp.Or(r.w.Meta.Text, result.TextStable), r.Servers.Note
	if r.raw != nil {
		r.about.Prompts, r.about.Verbatim, r.about.PromptText = result.PromptsVerbatim, r.raw.Digest(), ""
	}
	r.about.Cache = r.servers.cache
	env := r.servers.admin.CaptureEnvironment(r.cmd.Context(), r.servers.survey)
	r.about.Environment = env
	r.about.ServerVersion, r.about.MaxModelLen = client.About(env.Servers, r.about.Model)
	r.about.ServerBlock, r.about.ServerBlockFrom = r.servers.block, r.servers.blockFrom
	if err := r.noteTooLong(r.about.MaxModelLen); err != nil {
		return err
	}
	if env.Deployment, err = r.Deployment.Serving(); err != nil {
		return err
	}
	r.known = profile.NewKnownPass(r.part.blockSize, false, profile.WithTails(r.maker.Tails.Of),
		profile.WithTemplate(r.servers.templateOf))
	if err := r.servers.warmUp(r.cmd, r.part, r.lineage, r.known.Touch); err != nil {
		return err
	}
	if err := r.part.fillCache(r.cmd, r.Workload.PrimeConcurrency, r.Load.Share, live, r.endpoint,
		r.servers.prompter, r.known); err != nil {
		return err
	}

	defer replay.FewCollections()()
	r.about.Cores = runtime.GOMAXPROCS(0)
	defer replay.SpareProcessors()()
	if err := r.measureClock(); err != nil {
		return err
	}
	options, err := r.options()
	if err != nil {
		return err
	}
	if endless(&options) {
		r.rows.Total = 0
	}
	if err := r.warmTrajectories(&options); err != nil {
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
	// Until the last request is over, also after an interrupt.
	closeAdmin, err := r.Admin.open(context.WithoutCancel(r.cmd.Context()), r.cmd)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, closeAdmin)
	if err := r.listenClock(); err != nil {
		return err
	}
	if r.raw, err = r.openRaw(r.w); err != nil {
		return err
	}
	if r.raw != nil {
		r.closes = append(r.closes, func() { r.raw.Close() })
	}
	if r.part, r.maker, err = r.chosen(r.cmd, r.w); err != nil {
		return err
	}
	if r.rows, err = r.part.reader(); err != nil {
		return err
	}
	closeTrees, err := r.part.readTrees(r.cmd, &r.Load, r.maker.Seed)
	r.closes = append(r.closes, closeTrees)
	if err != nil {
		return err
	}
	if trees := r.Load.Trees; trees != nil && r.Load.Salted() {
		r.maker.Tails = r.maker.Tails.Repeat(trees.Blocks()) // in every play
	}
	if r.lineage, err = r.part.lineage(r.cmd, &r.Load); err != nil {
		return err
	}
	if r.thread && r.lineage == nil && !r.Load.BySession() {
		return cli.Usagef("--thread: the workload has no turns with a think or tool time, so that none waits " +
			"for a reply")
	}
	extras, closeExtras, err := r.Target.OpenRowExtra(r.cmd, r.part.of)
	if err != nil {
		return err
	}
	r.closes = append(r.closes, func() { closeExtras() })
	connections, err := r.connections()
	if err != nil {
		return err
	}
	if r.imageLoad, err = r.part.countImages(r.cmd); err != nil {
		return err
	}
	if r.endpoint, err = r.Replay.endpoint(r.maker, extras, connections); err != nil {
		return err
	}
	r.closes = append(r.closes, r.endpoint.Close)
	err = withinLimit(r.cmd, &r.Target, r.Ready, func() (err error) {
		if r.servers, err = r.openServers(r.cmd, r.w, r.endpoint, r.maker); err != nil {
			return err
		}
		r.closes = append(r.closes, r.servers.admin.Close)
		return nil
	})
	if err != nil {
		return err
	}
	if r.prompter, err = r.servers.prompter(); err != nil {
		return err
	}
	r.playable(r.prompter.Blocks())
	return r.part.spellable(r.prompter.Blocks())
}

// playable has sessions played no more often than the prompts have words to tell their
// blocks apart.
func (f *Replay) playable(limit uint64) {
	if f.Load.Trees != nil && f.Load.Salted() {
		f.Load.MaxPlays = f.Load.Trees.MaxPlays(limit, f.Load.Recycle)
	}
}

// noteTooLong says how many requests need more tokens than the server's context has, 0
// for one that does not say. Servers refuse them, or cut them silently, so that a run of
// nothing else is an error.
func (r *replayRun) noteTooLong(context int) error {
	if context == 0 || r.raw != nil {
		return nil
	}
	rows, err := r.part.once()
	if err != nil {
		return err
	}
	var beyond, longest int64
	err = trace.Each(rows, func(_ int64, row *trace.Request) error {
		need := int64(row.InputTokens) + int64(max(row.OutputOr(0), 1))
		if need > int64(context) {
			beyond++
		}
		longest = max(longest, need)
		return nil
	})
	if total := r.part.rows.Len(); err == nil && beyond > 0 && beyond == int64(total) {
		return fmt.Errorf("the server's context is %d tokens, and every request needs more, up to %d: it would "+
			"refuse or cut all of them. Serve a longer context (vLLM: --max-model-len), or send a workload of "+
			"shorter requests", context, longest)
	}
	if beyond > 0 {
		cli.Warnf(r.cmd, "endpoint: the server's context is %d tokens, and %d of %d requests need more, up to %d: it "+
			"will refuse or cut them. Serve a longer context (vLLM: --max-model-len), or leave them out of "+
			"the workload",
			context, beyond, r.part.rows.Len(), longest)
	}
	return err
}

// connections chooses how requests share connections: as the flags ask, or as suits the schedule.
func (r *replayRun) connections() (chosen string, err error) {
	r.Load.Requests = r.rows.Total
	if r.part.loop == nil {
		r.Load.Requests = r.part.every.Len()
	} else {
		r.Load.Requests = r.part.every.Len() * r.part.loop.Rounds
	}
	chosen = r.Wire.Connections
	closed := r.Load.Concurrency > 0 || r.Load.BySession()
	var peak loadPeak // nothing that matters, unless it is looked for
	if few := client.NeverPooled(r.part.rows.Len()) && r.part.loop == nil; !closed && !few && chosen == client.Auto {
		if peak, err = r.peak(); err != nil {
			return "", err
		}
	}
	if !closed && r.Load.MaxInFlight == 0 && client.CheckFiles(int(min(r.Load.Requests,
		math.MaxInt32))) != nil { // not all of them fit at once
		if peak == (loadPeak{}) {
			if peak, err = r.peak(); err != nil {
				return "", err
			}
		}
		if err := client.CheckFiles(int(min(peak.second, math.MaxInt32))); err != nil {
			return "", fmt.Errorf("the busiest second has %.0f requests, and each of them needs a connection: %w",
				peak.second, err)
		}
	}
	if chosen == client.Auto {
		chosen, r.connectionsWhy = client.ChooseConnections(peak.second, peak.ten, closed)
		if r.Load.BySession() {
			r.connectionsWhy = "turns of sessions are sent as their answers come"
		}
		if chosen == client.Pooled {
			cli.Notef(r.cmd, "connections: pooled (%s)", r.connectionsWhy)
		}
	}
	return chosen, nil
}

// noteTime says how long the requests take to send, where that is long. It returns 0 where it is not known.
func (r *replayRun) noteTime() (time.Duration, error) {
	if lasts := r.Load.Duration; lasts >= cli.LogEvery {
		cli.Notef(r.cmd, "time: at most %v of sending, until %s", lasts, time.Now().Add(lasts).Format(time.TimeOnly))
	}
	if r.Load.Concurrency > 0 || r.Load.BySession() || r.Load.Duration > 0 || r.part.endless {
		return r.Load.Duration, nil
	}
	plan, err := r.planned()
	if err != nil {
		return 0, err
	}
	span := time.Duration(plan.LastNS - plan.FirstNS)
	if r.part.loop != nil {
		span = time.Duration(r.part.loop.PeriodNS*(r.part.loop.Rounds-1)) + span
	}
	if span >= cli.LogEvery {
		cli.Notef(r.cmd, "time: about %v until the last request is sent", span.Round(time.Second))
	}
	return span, nil
}

// A loadPeak is the most that a schedule asks for: requests per second in its busiest
// second, and in its busiest ten.
type loadPeak struct{ second, ten float64 }

// peak is the most that one round asks for.
func (r *replayRun) peak() (p loadPeak, err error) {
	plan, err := r.planned()
	if err == nil && plan.Peak1S != nil {
		p = loadPeak{*plan.Peak1S, *plan.Peak10S}
	}
	return p, err
}

// planned plans one round of the workload with answers that take no time: no run asks for
// more.
func (r *replayRun) planned() (p replay.Plan, err error) {
	if r.plan != nil {
		return *r.plan, nil
	}
	options, err := r.Load.Schedule(r.lineage, r.maker.Seed)
	if err != nil {
		return p, err
	}
	planner, err := replay.NewPlanner(options, func(*trace.Request) (time.Duration, bool) { return 0, false })
	if err != nil {
		return p, err
	}
	rows, err := r.part.once()
	if err != nil {
		return p, err
	}
	err = trace.Each(rows, func(_ int64, row *trace.Request) error {
		planner.Add(row)
		if planner.Over() {
			return errPlanned
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPlanned) {
		return p, err
	}
	p = planner.Plan()
	r.plan = &p
	return p, nil
}

// errPlanned ends the reading of rows that are due after the run.
var errPlanned = errors.New("what follows is not sent")

// options are what the flags, the part and the servers make of the run.
func (r *replayRun) options() (replay.Options, error) {
	o, err := r.Load.Schedule(r.lineage, r.servers.arrivalSeed)
	if err != nil {
		return o, err
	}
	if o.Abort, err = r.Abort.Conditions(); err != nil {
		return o, err
	}
	r.about.Rate, o.Realtime = r.Load.Rate, r.Wire.Realtime
	if o.Thread, err = r.threading(); err != nil {
		return o, err
	}
	o.About = r.about
	r.part.apply(&o)
	if rules := r.Scenario.Rules; rules != nil {
		o.Stamp = rules.Stamp
	}
	o.Metering = r.servers.metering
	o.Known = r.part.knownOfAll(r.known.Touch, &o)
	if r.Servers.Cache == result.CacheWarm && o.Sessions == nil {
		o.Known = func(_ int64, row *trace.Request) int32 { return row.InputTokens } // all of it, by the warm-up pass
	}
	o.StartAt = r.Shard.StartAt
	if r.Target.CheckSame > 0 && r.Load.Share.Index == 0 {
		// When the run is over, the endpoint is asked again.
		o.Then = func(ctx context.Context, run *result.Run) error {
			rows, err := r.part.open()
			if err != nil {
				return err
			}
			d, err := r.endpoint.CheckDeterminism(ctx, rows, rows.Total, r.prompter, r.Target.CheckSame)
			if err != nil {
				return fmt.Errorf("--set check-deterministic: %w", err)
			}
			run.Determinism = &d
			cli.Notef(r.cmd, "determinism: %d of %d answers differ when asked twice at temperature 0",
				d.Differed, d.Compared)
			return nil
		}
	}
	return o, nil
}

// send sends all of it, watched by who started it, and says what was odd.
func (r *replayRun) send(options replay.Options) error {
	runner := replay.Runner{Prompter: r.prompter, Endpoint: r.endpoint, Options: options}
	if r.raw != nil {
		runner.Prompter = &verbatimPrompter{RowPrompter: r.prompter, raw: r.raw, chat: r.Target.API == result.APIChat}
	}
	var checker *prompt.Checker
	if r.verify {
		single, ok := r.prompter.(*prompt.Prompter)
		if !ok {
			return cli.Usagef("--set verify cannot be used with --api auto if the APIs have different templates")
		}
		checker = prompt.NewChecker(single, r.maker.Tok)
		runner.Prompter = checker
	}
	lasts, err := r.noteTime()
	if err != nil {
		return err
	}
	total := r.rows.Total
	if r.Load.Duration > 0 {
		total = 0 // the end of the time decides how many are sent
	}
	if err := r.dropJournal(r.cmd); err != nil {
		return err
	}

	watching := r.Live.watch(r.cmd, liveAbout{"replay to " + strings.Join(r.endpoint.Endpoints(), ", "),
		total, lasts, r.Load.Concurrency > 0 || r.Load.BySession(), r.about.Cores, r.Limits})
	defer watching.end()
	runner.Progress = watching.progress
	r.Admin.watch(&runner, r.rows.Total)
	told := context.AfterFunc(r.cmd.Context(), func() {
		if watching.stopping() {
			return
		}
		cli.Notef(r.cmd, "stopping: requests in flight have %v to end; a second interrupt ends at once, and leaves "+
			"the journal", options.Grace)
	})
	defer told()
	if left := time.Until(options.StartAt); left > 0 {
		cli.Notef(r.cmd, "start: at %s, in %v", options.StartAt.Format(time.RFC3339), left.Round(time.Second))
	}
	run, err := runner.Record(r.cmd.Context(), r.rows, r.Out)
	watching.end()
	if errors.Is(err, replay.ErrLateStart) {
		return cli.Exit(cli.Untrusted,
			fmt.Errorf("--start-clock: %w. Give a later start to all shards, or fewer preparations before it", err))
	}
	if err == nil && run.EndedEarly != "" {
		cli.Warnf(r.cmd, "ended early: %s; the results so far are in %s", run.EndedEarly, r.Out)
	}
	r.noteOutcome(&run)
	if n := r.prompter.Filled(); n > 0 {
		cli.Notef(r.cmd, "corpus: %d tokens of the prompts are words, where it could not be cut", n)
	}
	if checker == nil {
		return err
	}
	v := checker.Close()
	cli.Warnf(r.cmd, "verified: %d of %d prompts encoded again, %d tokens, %d of the prompts not as asked",
		v.Prompts, v.Prompts+v.Skipped, v.Tokens, v.Mismatches)
	if err == nil && v.Mismatches > 0 { // the run is not trustworthy
		err = cli.Exit(cli.Untrusted, fmt.Errorf("%d prompts do not have the tokens asked for; the results are in %s",
			v.Mismatches, r.Out))
	}
	return err
}

// noteOutcome says which answers were odd, though they were sound, what the results say
// of the connections, and what became of the turns.
func (r *replayRun) noteOutcome(run *result.Run) {
	o := run.Odd
	var says []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{max(o.RetryAfter-o.Waited, 0),
			"errors with Retry-After that were not sent again (--retry waits as the server asks)"},
		{o.Waited, "errors with Retry-After, each sent again after the time that the server asked for"},
		{o.NoDone, "without [DONE]"},
		{o.DoneAgain, "with [DONE] twice"},
		{o.NoFinish, "without a finish reason"},
		{o.KeepAlives, "with keep-alives"},
		{o.Malformed, "with events that are no JSON object"},
		{o.Choices, "with several choices"},
		{o.NoUsage, "without usage"},
		{o.Uncounted, "with more or fewer tokens than events, so that gaps are not between tokens"},
	} {
		if c.n > 0 {
			says = append(says, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	o.Usage.Each(func(one usage.Finding, n int64) { says = append(says, fmt.Sprintf("%d %s", n, one.Says())) })
	if len(says) > 0 {
		cli.Warnf(r.cmd, "answers that were odd: %s", strings.Join(says, "; "))
	}
	r.Replay.Wire.Told(r.cmd, run)
	if r.Load.Window == nil { // else the trial is one of many
		tellSessions(r.cmd, run.Sessions)
	}
	if rules := r.Scenario.Rules; rules != nil && run.Scenario.Valid != nil {
		cli.Notef(r.cmd, "scenario %s: a submission needs: %s", rules.Version, strings.Join(rules.Submission, "; "))
	}
	t := run.Thread
	if t == nil {
		return
	}
	turns := t.Threaded + t.Apart + t.NoReply + t.NoRoom
	cli.Notef(r.cmd, "threads: %d of %d turns hold the server's own reply, %d of them by their lengths alone; %d do "+
		"not go on from a reply, %d found none, %d had no room in memory",
		t.Threaded, turns, t.Assumed, t.Apart, t.NoReply, t.NoRoom)
	if t.Joined+t.Recoded+t.Longer+t.LostTokens > 0 {
		cli.Notef(r.cmd, "threads: %d replies of further parents are not in a prompt; %d replies may encode to other "+
			"tokens than were generated; %d prompts are longer than recorded, by %d tokens; %d tokens that others "+
			"would share with a reply are lost",
			t.Joined, t.Recoded, t.Longer, t.LongerBy, t.LostTokens)
	}
}
