package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay"
	"reprise/replay/result"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
	"reprise/trace/quantity"
	"reprise/trace/textpage"
)

// DryRun says what a dry run is told of the server and of prices.
type DryRun struct {
	Run                   bool
	assume                string
	input, cached, output float64 // price of a million tokens; below 0 is not given
}

// Register implements [flags.Group].
func (f *DryRun) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := flags.Sections(fl, flags.RunningFlags)
	everyday.BoolVar(&f.Run, "dry-run", false, "send nothing: print requests, rates, hits and cost")
	rest.StringVar(&f.assume, "assume", "", "")
	rest.NumberVar(&f.input, "price-input", -1, "")
	rest.NumberVar(&f.cached, "price-cached", -1, "")
	rest.NumberVar(&f.output, "price-output", -1, "")
}

// Check implements [flags.Group].
func (f *DryRun) Check() error {
	if !f.Run && (f.assume != "" || f.input >= 0 || f.cached >= 0 || f.output >= 0) {
		return cli.Usagef("--set assume and prices need --dry-run")
	}
	if f.cached >= 0 && f.input < 0 {
		return cli.Usagef("--set price-cached needs --set price-input, for the other prompt tokens")
	}
	_, err := f.took()
	return err
}

// took says how long requests take, as far as is known.
func (f *DryRun) took() (func(*trace.Request) (time.Duration, bool), error) {
	if f.assume == "" {
		return func(r *trace.Request) (time.Duration, bool) {
			if r.E2ENS == nil {
				return 0, false
			}
			return time.Duration(*r.E2ENS), true
		}, nil
	}
	var ttft, itl time.Duration
	for _, part := range strings.Split(f.assume, ",") {
		name, value, _ := strings.Cut(part, "=")
		d, err := quantity.Latency(value)
		switch {
		case err != nil:
			return nil, cli.Usagef("--set assume: want ttft=200ms,itl=20ms")
		case name == "ttft":
			ttft = d
		case name == "itl":
			itl = d
		default:
			return nil, cli.Usagef("--set assume: want ttft=200ms,itl=20ms")
		}
	}
	return func(r *trace.Request) (time.Duration, bool) {
		tokens := r.OutputTokens
		if tokens == nil {
			tokens = r.MaxTokens // the server may end before
		}
		if tokens == nil {
			return 0, false
		}
		return ttft + itl*time.Duration(max(*tokens-1, 0)), true
	}, nil
}

// A dryRun is what a replay would send. What is not known is null.
type Plan struct {
	Schema    string            `json:"schema"` // [dryRunSchema]
	Timing    string            `json:"timing"`
	Rate      string            `json:"rate,omitempty"`
	Speed     float64           `json:"speed"`
	Selection *result.Selection `json:"selection"` // null for the whole workload, once
	// Load is a load by session, as far as a plan knows what becomes of it.
	Load     *result.Sessions `json:"session_load,omitempty"`
	Requests int64            `json:"requests"` // of one round
	Sessions int64            `json:"sessions"` // of the requests; one without is one by itself

	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	EndedByServer    int64    `json:"requests_ended_by_server"` // whose output tokens are not known
	PromptBytes      *float64 `json:"prompt_bytes"`             // estimated from prompts that were made
	PromptsMade      int64    `json:"prompts_made"`
	ServerBlock      int      `json:"server_block_size"`
	ExpectedHitRatio *float64 `json:"expected_hit_ratio_by_token"` // of a cache without limit

	// Plan is null for a closed loop where it is not known how long requests take.
	Plan *replay.Plan `json:"plan"`
	// LeastNS is from the first due time to the last when every answer takes no
	// time: the longest chain of think times. RecordedNS is the same as recorded,
	// divided by the speed. Only causal runs have them.
	LeastNS    *int64 `json:"least_duration_ns"`
	RecordedNS *int64 `json:"recorded_duration_ns"`
	Files      *int64 `json:"file_descriptors"` // about

	Images *result.ImageLoad `json:"images"` // null where no request has image tokens

	Cost *dryCost `json:"cost"`

	UntilNS int64 `json:"until_ns"` // --duration, 0 for the whole workload
	Again   bool  `json:"again"`    // the workload is sent again until then, and counts are of one round
}

const dryRunSchema = "dry-run/1"

// A dryCost is in the unit that the prices are in.
type dryCost struct {
	Input  *float64 `json:"input"` // prompt tokens that are not expected in the cache
	Cached *float64 `json:"cached"`
	Output *float64 `json:"output"`
	Prime  *float64 `json:"prime"` // prompts before the run
	Total  float64  `json:"total"`
}

// DryRun prints what a replay would send.
func (f *Replay) DryRun(cmd *cobra.Command, w *trace.Trace) error {
	raw, err := f.openRaw(w)
	if err != nil {
		return err
	}
	if raw != nil {
		raw.Close()
	}
	f.Prompts.PlanOnly = true
	part, maker, err := f.chosen(cmd, w)
	if err != nil {
		return err
	}
	images, err := part.countImages(cmd)
	if err != nil {
		return err
	}
	prompter, err := maker.Prompter(result.Template{})
	if err != nil {
		return err
	}
	if err := part.spellable(prompter.Blocks()); err != nil {
		return err
	}
	known := profile.NewKnownPass(part.blockSize, false, profile.WithTails(maker.Tails.Of))
	live, err := part.liveAtStart(cmd, &f.Workload)
	if err != nil {
		return err
	}
	for i := range live {
		known.Touch(&live[i])
	}
	block := cmp.Or(f.serverBlock, profile.DefaultServerBlock) // no server is asked
	d := &dryPass{f: f, known: known, prompts: prompter, block: block, reuse: profile.NewServerReuse(block), every: 1}
	out, err := d.run(cmd, part, maker.Seed)
	if err != nil {
		return err
	}
	out.Images = images
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), out)
	}
	return out.write(cmd.OutOrStdout(), cli.TextOptions(cmd, ""))
}

// A dryPass reads the rows once.
type dryPass struct {
	f        *Replay
	known    *profile.KnownPass
	prompts  *prompt.Prompter
	block    int // of the server, in tokens
	reuse    *profile.ServerReuse
	sessions trace.Renumber
	single   int64

	every, made, bytes, bytesOf int64 // prompts made, their bytes and tokens
	rows                        int64
	buf                         []byte
	digits                      []uint32
}

func (d *dryPass) run(cmd *cobra.Command, part *workloadPart, seed uint64) (*Plan, error) {
	took, err := d.f.Dry.took()
	if err != nil {
		return nil, err
	}
	closeTrees, err := part.readTrees(cmd, &d.f.Load, seed)
	defer closeTrees()
	if err != nil {
		return nil, err
	}
	if d.f.Load.BySession() {
		return d.sessionLoad(part, seed, took)
	}
	lineage, err := part.lineage(cmd, &d.f.Load)
	if err != nil {
		return nil, err
	}
	main, err := d.planner(part, lineage, seed, took)
	if err != nil {
		return nil, err
	}
	atOnce := func(*trace.Request) (time.Duration, bool) { return 0, true }
	least, err := d.planner(part, lineage, seed, atOnce)
	if err != nil {
		return nil, err
	}
	out := &Plan{Schema: dryRunSchema, Timing: main.Timing(), Rate: d.f.Load.Rate, Speed: d.f.Load.Speed,
		Selection: part.selection(), ServerBlock: d.block, UntilNS: int64(d.f.Load.Duration)}
	rows, err := part.reader()
	if err != nil {
		return nil, err
	}
	var first, last int64
	err = trace.Each(rows, func(id int64, r *trace.Request) error {
		if id == 0 {
			first = r.ArrivalNS
		}
		last = r.ArrivalNS
		least.Add(r)
		if _, sent := main.Add(r); sent {
			if err := d.add(r, out); err != nil {
				return err
			}
		}
		switch {
		case !part.endless:
		case main.Over():
			return io.EOF
		case id+1 >= part.rows.Len() && d.f.Load.Concurrency > 0 && main.Plan().EndNS == 0:
			out.Again = true
			return io.EOF
		}
		return nil
	})
	if err != nil && err != io.EOF { // which is the end of the duration
		return nil, err
	}
	plan := main.Plan()
	if d.f.Load.Concurrency == 0 || plan.Timed == plan.Requests {
		out.Plan = &plan
	}
	if lineage != nil {
		p := least.Plan()
		out.LeastNS = trace.Ptr(p.LastNS - p.FirstNS)
		if d.f.Load.Rate == "" {
			out.RecordedNS = trace.Ptr(int64(float64(last-first) / d.f.Load.Speed))
		}
	}
	d.finish(out)
	return out, nil
}

// sessionLoad plans a load by session.
func (d *dryPass) sessionLoad(part *workloadPart, seed uint64,
	took func(*trace.Request) (time.Duration, bool)) (*Plan, error) {
	d.f.playable(d.prompts.Blocks())
	options, err := d.f.Load.Schedule(nil, seed)
	if err != nil {
		return nil, err
	}
	part.apply(&options)
	warm, _, about, err := options.WarmRequests()
	if err != nil {
		return nil, err
	}
	for i := range warm {
		d.known.Touch(&warm[i].Row)
	}
	out := &Plan{Schema: dryRunSchema, Speed: d.f.Load.Speed, Selection: part.selection(), ServerBlock: d.block}
	plan, load, err := replay.PlanSessions(options, took, func(r *trace.Request) error { return d.add(r, out) })
	if errors.Is(err, replay.ErrNoTime) {
		return nil, errUnknownSpeed
	}
	if err != nil {
		return nil, err
	}
	out.Timing, out.Plan, out.Load = result.Causal, &plan, load
	if load.Live > 0 {
		out.Timing = result.ClosedLoop
	}
	if load.Counts != nil && options.Sessions.Start != nil {
		load.Counts.Warm = &about
	}
	d.finish(out)
	return out, nil
}

var errUnknownSpeed = cli.Usagef("how many requests are sent until --duration depends on how long each takes, which " +
	"nothing says: state the server's speed, such as --set assume=ttft=200ms,itl=20ms")

// planner makes one with a schedule of its own, whose arrivals nobody else draws.
func (d *dryPass) planner(part *workloadPart, lineage *replay.Lineage, seed uint64,
	took func(*trace.Request) (time.Duration, bool)) (*replay.Planner, error) {
	options, err := d.f.Load.Schedule(lineage, seed)
	if err != nil {
		return nil, err
	}
	part.apply(&options)
	return replay.NewPlanner(options, took)
}

// dryPrompts is how many prompts are made at first; then every second, fourth, … is.
const dryPrompts = 64

// add counts a request that would be sent.
func (d *dryPass) add(r *trace.Request, out *Plan) error {
	out.Requests++
	out.InputTokens += int64(r.InputTokens)
	if r.OutputTokens == nil {
		out.EndedByServer++
	} else {
		out.OutputTokens += int64(*r.OutputTokens)
	}
	known := d.known.Touch(r)
	d.reuse.Add(known, r.InputTokens)
	if r.Session != nil {
		d.sessions.ID(uint64(*r.Session))
	} else {
		d.single++
	}
	d.rows++
	if (d.rows-1)%d.every != 0 {
		return nil
	}
	var err error
	if d.f.Target.TokenIDs {
		d.digits, err = d.prompts.Tokens(r, d.digits[:0])
		for _, id := range d.digits {
			d.bytes += int64(len(fmt.Sprint(id))) + 1 // and a comma
		}
	} else {
		d.buf, err = d.prompts.Prompt(r, d.buf[:0])
		d.bytes += int64(len(d.buf))
	}
	if err != nil {
		return fmt.Errorf("no prompt could be made: %w", err)
	}
	d.bytesOf += int64(max(r.InputTokens, 1))
	if d.made++; d.made%dryPrompts == 0 {
		d.every *= 2
	}
	return nil
}

// descriptors is what the process has open beside connections: its standard
// streams, files, and what the runtime and the pacer wait on.
const descriptors = 16

// finish fills in what follows from the counts.
func (d *dryPass) finish(out *Plan) {
	f := d.f
	out.Sessions = int64(d.sessions.Len()) + d.single
	out.ExpectedHitRatio = d.reuse.Summary().HitRatio
	if out.PromptsMade = d.made; d.bytesOf > 0 {
		out.PromptBytes = trace.Ptr(math.Round(float64(d.bytes) / float64(d.bytesOf) * float64(out.InputTokens)))
	}
	most := 0.
	switch {
	case f.Load.Concurrency > 0:
		most = float64(f.Load.Concurrency)
	case out.Plan != nil && out.Plan.PeakInFlight != nil:
		most = *out.Plan.PeakInFlight
		if f.Load.MaxInFlight > 0 {
			most = min(most, float64(f.Load.MaxInFlight))
		}
	case f.Load.MaxInFlight > 0:
		most = float64(f.Load.MaxInFlight)
	}
	if most > 0 {
		out.Files = trace.Ptr(int64(math.Ceil(most)) + descriptors)
	}
	prices := &f.Dry
	if prices.input < 0 && prices.output < 0 {
		return
	}
	c := new(dryCost)
	out.Cost = c
	add := func(tokens, price float64) *float64 {
		v := tokens / 1e6 * price
		c.Total += v
		return &v
	}
	if prices.input >= 0 {
		cached, price := 0., prices.input
		if out.ExpectedHitRatio != nil {
			cached = *out.ExpectedHitRatio * float64(out.InputTokens)
		}
		if prices.cached >= 0 {
			price = prices.cached
		}
		c.Input, c.Cached = add(float64(out.InputTokens)-cached, prices.input), add(cached, price)
		if s := out.Selection; s != nil && s.Prime != nil {
			c.Prime = add(float64(s.Prime.Tokens), prices.input)
		}
	}
	if prices.output >= 0 {
		c.Output = add(float64(out.OutputTokens), prices.output)
	}
}

// peaks are the most requests of a second, and of ten seconds where the plan is so long.
func peaks(p *replay.Plan) string {
	out := fmt.Sprintf("at most %s in 1 s", cli.Figure(p.Peak1S, 1))
	if p.LastNS-p.FirstNS >= 10e9 {
		out += fmt.Sprintf(" and %s in 10 s", cli.Figure(p.Peak10S, 1))
	}
	return out
}

// schedule says when requests are due.
func (d *Plan) schedule() string {
	switch {
	case d.Load != nil && d.Load.Live > 0:
		return "closed loop of " + doc.Many(int64(d.Load.Live), "live session")
	case d.Load != nil:
		return "whole sessions start by " + d.Load.Rate
	case d.Timing == result.ClosedLoop:
		return d.Timing
	case d.Rate != "":
		return d.Timing + ", " + d.Rate
	}
	return fmt.Sprintf("%s, speed %g", d.Timing, d.Speed)
}

// outputs says how many output tokens there will be, as far as that is known.
func (d *Plan) outputs() string {
	known, open := doc.Count(d.OutputTokens), doc.Many(d.EndedByServer, "answer")+", since the server ends them"
	switch {
	case d.EndedByServer == 0:
		return known
	case d.OutputTokens == 0:
		return "unknown for " + open
	}
	return known + ", and unknown for " + open
}

// write prints the plan for people.
func (d *Plan) write(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	p.Line("", "Dry run: nothing was sent.")
	p.Blank()
	line := func(label, format string, args ...any) {
		p.Line(fmt.Sprintf("%-20s", label), fmt.Sprintf(format, args...))
	}
	line("schedule", "%s", d.schedule())
	if p := d.Plan; p != nil {
		left := ""
		if p.Excluded > 0 {
			left += "; " + doc.Count(p.Excluded) + " more failed in the source: skipped"
		}
		if p.Beyond > 0 {
			left += "; " + doc.Count(p.Beyond) + " more beyond --duration"
		}
		line("requests", "%s%s", doc.Count(p.Requests), left)
		if d.Sessions < p.Requests {
			line("sessions", "%s", doc.Count(d.Sessions))
		} else {
			line("sessions", "none: each request is by itself")
		}
		longest := ""
		if d.EndedByServer > 0 && d.Timing != result.OpenLoop {
			longest = ", if every answer is as long as it may be"
		}
		line("duration", "%v from the first scheduled time to the last%s", inSeconds(p.LastNS-p.FirstNS), longest)
	} else {
		again, most := "", ""
		if d.Again {
			again = ", and again with new prompts until --duration is over"
		}
		if d.UntilNS > 0 {
			most = fmt.Sprintf("%v at most; ", inSeconds(d.UntilNS))
		}
		line("requests", "%s%s", doc.Count(d.Requests), again)
		line("duration", "%sas fast as the server answers: --set assume=ttft=200ms,itl=20ms estimates it", most)
	}
	d.writeLoad(line)
	if d.LeastNS != nil {
		line("", "%v at least: the think times alone", inSeconds(*d.LeastNS))
	}
	if d.RecordedNS != nil {
		line("", "%v as recorded", inSeconds(*d.RecordedNS))
	}
	if p := d.Plan; p != nil {
		line("rate", "%s requests/s on average, %s", cli.Figure(p.MeanRate, 3), peaks(p))
		if p.PeakInFlight != nil {
			line("in flight", "%s on average, %s in the busiest second", cli.Figure(p.MeanInFlight, 1),
				cli.Figure(p.PeakInFlight, 1))
		} else {
			line("in flight", "unknown: nothing says how long the server takes for %s; --set "+
				"assume=ttft=200ms,itl=20ms does", doc.Many(p.Requests-p.Timed, "request"))
		}
	}
	if d.Files != nil {
		line("open files", "about %d", *d.Files)
	}
	line("prompt tokens", "%s", doc.Count(d.InputTokens))
	if i := d.Images; i != nil {
		line("image tokens", "%d of %d requests, sent as text", i.Tokens, i.Requests)
	}
	line("output tokens", "%s", d.outputs())
	if d.PromptBytes != nil {
		line("prompt bytes", "about %s, estimated from %s", doc.Brief(int64(*d.PromptBytes)),
			doc.Many(d.PromptsMade, "prompt"))
	}
	line("expected hit ratio", "%s of the prompt tokens, with an unlimited cache of %d-token blocks",
		doc.OrDash(d.ExpectedHitRatio, doc.Percent), d.ServerBlock)
	if s := d.Selection; s != nil && s.Prime != nil {
		line("before the run", "%d prompts with %d tokens prime the cache", s.Prime.Prompts, s.Prime.Tokens)
	}
	if c := d.Cost; c != nil {
		line("cost", "%.4f: prompts not cached %s, cached %s, output %s, before the run %s", c.Total,
			cli.Figure(c.Input, 4), cli.Figure(c.Cached, 4), cli.Figure(c.Output, 4), cli.Figure(c.Prime, 4))
	}
	_, err := p.WriteTo(w)
	return err
}

// writeLoad prints what is planned of a load by session.
func (d *Plan) writeLoad(line func(label, format string, args ...any)) {
	if d.Load == nil || d.Load.Counts == nil {
		return
	}
	c := d.Load.Counts
	live := ""
	if l := c.LiveTrees; l != nil {
		live = fmt.Sprintf("; %d to %d live at once, %.4g on average", l.Min, l.Max, l.Mean)
	}
	line("plays", "%s of %s%s", doc.Many(c.Started, "play"), doc.Many(c.Trees, "session"), live)
	if c.HeldBack > 0 {
		line("held back", "%s, for %v in all", doc.Many(c.HeldBack, "session"), inSeconds(c.HeldNS))
	}
	line("waits", "%d as recorded, %d from recorded ends, %d from recorded starts", c.Gaps.Recorded,
		c.Gaps.Ends, c.Gaps.Starts)
	if c.GapCap.Times+c.IdleCap.Times+c.TreeCap.Times > 0 {
		line("", "shortened: %d by gap-cap, by %v; %d by idle-cap, by %v; %d by session-idle-cap, by %v",
			c.GapCap.Times, inSeconds(c.GapCap.NS), c.IdleCap.Times, inSeconds(c.IdleCap.NS), c.TreeCap.Times,
			inSeconds(c.TreeCap.NS))
	}
	if w := c.Warm; w != nil {
		line("before the run", "%s of threads under way, %d prompt tokens; %s are history",
			doc.Many(w.Streams, "request"), w.Tokens, doc.Many(w.History, "request"))
	}
}

func inSeconds(ns int64) time.Duration { return time.Duration(ns).Round(time.Millisecond) }
