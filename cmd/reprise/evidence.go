package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/evidence"
	"reprise/trace"
	"reprise/trace/textpage"
)

// An evidencePlan is how much of each step is measured.
type evidencePlan struct {
	rates, level, warmup, rest string
	rounds                     int     // of the comparisons
	seconds                    float64 // of a round
	least                      int     // requests of a round
}

// The same plan everywhere. A comparison at an alpha of 0.05 gives no verdict with fewer
// than six rounds.
var publishedPlan = evidencePlan{rates: "0.5,1,2,4,8,16,32,64,128", level: "10s", warmup: "2s", rest: "1s", rounds: 6, seconds: 12, least: 20}

// evidenceFlags are the flags of evidence.
type evidenceFlags struct {
	plan                  evidencePlan
	dir, url, by          string
	keyEnv                string
	api, model, tokenizer string
	deployment            flags.Deployment
	asJSON                bool
}

func evidenceCommand(plan evidencePlan) *cobra.Command {
	f := evidenceFlags{plan: plan}
	cmd := &cobra.Command{
		Use:   "evidence --url URL",
		Short: "Measure a server by a fixed plan, into a bundle that you may publish",
		Long: `Evidence measures one server by the same plan everywhere, in about 15 minutes:

  check     what the server has and states
  sweep     one load after another, until it is saturated
  aa        the server against itself, at half of the highest load that held
  caching   prompts behind one shared prefix against prompts that share nothing
  peer      vLLM's client at the same load, where vllm is installed

Prompts are made up. The bundle, evidence.tar.gz in the folder of --output, holds the
commands, their results as JSON, and the versions, hardware and digests that these
state. It has no prompts or answers; the server's address and this host's name are
replaced. Look inside before you publish it.

A stopped run continues in the same folder. A step that fails is noted in the bundle, and the
others go on; the exit code is then 1. It is 3 if check finds something in the way, and 4 if a
step cannot be trusted.`,
		Example: `  reprise evidence --url http://localhost:8000 -o evidence`,
		Args:    flags.Wants(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fl := cmd.Flags()
	endpoint, _ := flags.Sections(fl, flags.EndpointFlags)
	prompts, _ := flags.Sections(fl, flags.PromptFlags)
	results, _ := flags.Sections(fl, flags.ResultsFlags)
	endpoint.StringVar(&f.url, "url", "http://127.0.0.1:8000", "base URL of the server")
	endpoint.StringVar(&f.api, "api", "", "completions or chat; by default as the server has them")
	endpoint.StringVar(&f.model, "model", "", "model to request; by default the only one that the server has")
	endpoint.StringVar(&f.keyEnv, "api-key-env", "", "environment `variable` with the API key, instead of "+flags.DefaultKeyEnv)
	prompts.StringVar(&f.tokenizer, "tokenizer", "", "the server's tokenizer: a name or the path of a tokenizer.json")
	f.deployment.Register(cmd)
	results.StringVarP(&f.dir, "output", "o", "evidence", "`directory` for the runs and the bundle")
	results.StringVar(&f.by, "by", "", "who ran it, for the bundle")
	results.BoolVar(&f.asJSON, "json", false, "print the manifest of the bundle as JSON")
	flags.Details(fl)
	return cmd
}

// An evidenceRun goes through the plan.
type evidenceRun struct {
	*evidenceFlags
	cmd    *cobra.Command
	bundle evidence.Bundle
	rate   float64 // half of the highest load that held, in requests per second
}

func (f *evidenceFlags) run(cmd *cobra.Command) error {
	if err := f.deployment.Check(); err != nil {
		return err
	}
	if !strings.Contains(f.url, "://") {
		f.url = "http://" + f.url
	}
	server, err := url.Parse(f.url)
	if err != nil || server.Host == "" || server.User != nil || server.RawQuery != "" { // a bundle holds no secrets
		return cli.Usagef("--url: want the base URL of a server without a password or a query, such as http://localhost:8000")
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	r := evidenceRun{evidenceFlags: f, cmd: cmd}
	r.bundle.Version, r.bundle.Begun, r.bundle.By = cli.Version, time.Now().UTC(), f.by
	r.hide(server)
	for i, s := range []struct {
		name    string
		measure func(*evidence.Step) error
	}{{"check", r.check}, {"sweep", r.sweep}, {"aa", r.againstItself}, {"caching", r.caching}, {"peer", r.peer}} {
		step := evidence.Step{Name: s.name}
		begin := time.Now()
		err := s.measure(&step)
		if cmd.Context().Err() != nil {
			return errors.New("interrupted: run the same command again to go on with what is missing")
		}
		if err != nil {
			step.Problem, step.Failed = err.Error(), true
		}
		step.Seconds = math.Round(10*time.Since(begin).Seconds()) / 10
		r.bundle.Seconds += step.Seconds
		r.bundle.Steps = append(r.bundle.Steps, step)
		said := step.Finding
		if step.Problem != "" {
			said = strings.TrimPrefix(strings.TrimSuffix(said, ".")+"; "+step.Problem, "; ")
		}
		cli.Notef(cmd, "[%d/5] %-8s %s", i+1, s.name, r.bundle.Shown(said))
	}
	return r.write()
}

// hide keeps addresses, paths and names of this machine out of the bundle, and makes it
// an error that a key is in it.
func (r *evidenceRun) hide(server *url.URL) {
	r.bundle.Hide(server.Host, "SERVER")
	if name := server.Hostname(); len(name) > 3 {
		r.bundle.Hide(name, "SERVER")
	}
	if host, err := os.Hostname(); err == nil && len(host) > 3 {
		r.bundle.Hide(host, "HOST")
	}
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		r.bundle.Hide(home, "HOME")
	}
	if here, err := os.Getwd(); err == nil && len(here) > 1 {
		r.bundle.Hide(here, ".")
	}
	if dir := filepath.Dir(r.tokenizer); len(dir) > 1 {
		r.bundle.Hide(dir, "FOLDER")
	}
	r.bundle.Forbid(os.Getenv(flags.DefaultKeyEnv))
	r.bundle.Forbid(os.Getenv(r.keyEnv))
}

// reprise runs a command, with the flags about the server if it asks one, and returns what it
// prints. Exit codes of verdicts are no errors.
func (r *evidenceRun) reprise(step *evidence.Step, args ...string) ([]byte, error) {
	sub, _, err := rootCommand().Find(args[:1])
	if err != nil {
		return nil, err
	}
	r.cmd.Flags().Visit(func(fl *pflag.Flag) {
		switch fl.Name {
		case "output", "by", "json", "url", "config":
			return
		}
		asks := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--url") })
		if asks && sub.Flags().Lookup(fl.Name) != nil {
			args = append(args, "--"+fl.Name+"="+fl.Value.String())
		}
	})
	step.Commands = append(step.Commands, "reprise "+quoted(args))
	var out, errs bytes.Buffer
	code := run(r.cmd.Context(), args, nil, &out, &errs)
	step.Exit = max(step.Exit, code)
	switch {
	case code == cli.Good:
	case code != cli.Untrusted && code != cli.Check:
		return nil, fmt.Errorf("reprise %s: %s", args[0], lastLine(errs.String()))
	case step.Problem == "":
		step.Problem = lastLine(errs.String())
	}
	return out.Bytes(), nil
}

// quoted is a command line for a shell.
func quoted(args []string) string {
	line := make([]string, len(args))
	for i, a := range args {
		if line[i] = a; a == "" || strings.ContainsAny(a, " '\"$&|;<>()*?#\\`\n") {
			line[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}

// lastLine is the message that a command ended with.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(strings.TrimSpace(text), "\nRun with --help for how to use it."), "\nreprise: ")
	return strings.Join(strings.Fields(strings.TrimPrefix(lines[len(lines)-1], "reprise: ")), " ")
}

func (r *evidenceRun) path(parts ...string) string {
	return filepath.Join(append([]string{r.dir}, parts...)...)
}

func (r *evidenceRun) check(step *evidence.Step) error {
	out, err := r.reprise(step, "check", "--url", r.url, "--json")
	if err != nil {
		return err
	}
	r.bundle.Add("check.json", out)
	var c struct {
		Model  string `json:"model"`
		Server struct {
			Engine  string `json:"engine"`
			Version string `json:"version"`
		} `json:"server"`
	}
	if err := json.Unmarshal(out, &c); err != nil {
		return err
	}
	r.model = cmp.Or(r.model, c.Model)
	step.Finding = strings.TrimSpace(cmp.Or(c.Server.Engine, "an engine that does not say its name")+" "+c.Server.Version) + ", model " + c.Model
	return nil
}

// The two workloads of the plan have the same lengths and arrivals. In one, the first
// 1,536 tokens of every prompt are the same; in the other, no prompts share anything.
const (
	sharedWorkload = "name: evidence-shared\nabout: prompts behind one prefix\nrequests: %d\narrivals: poisson:1\nprefix: {global: 1536}\nlengths: {own: \"uniform:256..768\", output: \"uniform:32..160\"}\n"
	apartWorkload  = "name: evidence-apart\nabout: prompts that share nothing\nrequests: %d\narrivals: poisson:1\nlengths: {input: \"uniform:1792..2304\", output: \"uniform:32..160\"}\n"
)

// workload writes a workload of n requests and returns its path.
func (r *evidenceRun) workload(step *evidence.Step, name, text string, n int) (string, error) {
	spec, out := r.path(name+".yaml"), r.path(fmt.Sprintf("%s-%d.parquet", name, n))
	text = fmt.Sprintf(text, n)
	r.bundle.Add(fmt.Sprintf("%s-%d.yaml", name, n), []byte(text))
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if err := os.WriteFile(spec, []byte(text), 0o644); err != nil {
		return "", err
	}
	_, err := r.reprise(step, "synth", spec, "--seed", "1", "-o", out)
	return out, err
}

// sweep finds the load of the steps after it.
func (r *evidenceRun) sweep(step *evidence.Step) error {
	w, err := r.workload(step, "shared", sharedWorkload, 400)
	if err != nil {
		return err
	}
	out, err := r.reprise(step, "sweep", w, "--url", r.url, "--rates", r.plan.rates, "--level-duration", r.plan.level, "--level-requests", "0",
		"--warmup", r.plan.warmup, "--stop-ttft", "5s", "--no-confirm", "--json", "-o", r.path("sweep"))
	if err != nil {
		return err
	}
	r.bundle.Add("sweep.json", out)
	var s struct {
		Levels []struct {
			Load    float64 `json:"load"`
			Outcome string  `json:"outcome"`
			Why     string  `json:"why"`
		} `json:"levels"`
		Stopped struct {
			Text string `json:"text"`
		} `json:"stopped"`
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return err
	}
	held, end := 0., "no load saturated it"
	for _, l := range s.Levels {
		switch l.Outcome {
		case "holds":
			held = l.Load
		case "saturated":
			end = fmt.Sprintf("%g/s saturates it: %s", l.Load, l.Why)
		}
	}
	if held == 0 {
		step.Problem = cmp.Or(s.Stopped.Text, "no load held")
		return nil
	}
	r.rate = held / 2
	rate := r.path("rate") // of rounds that were made before, whatever a repeated level says
	if text, err := os.ReadFile(rate); err == nil {
		if before, err := strconv.ParseFloat(string(text), 64); err == nil && before > 0 {
			r.rate = before
		}
	} else if err := os.WriteFile(rate, []byte(strconv.FormatFloat(r.rate, 'g', -1, 64)), 0o644); err != nil {
		return err
	}
	step.Finding = fmt.Sprintf("holds %g requests/s; %s", held, end)
	return nil
}

const noLoad = "left out: the sweep found no load that holds"

// roundSize is how many requests a round has.
func (r *evidenceRun) roundSize() int { return max(int(r.plan.seconds*r.rate), r.plan.least) }

func (r *evidenceRun) rateFlag() string {
	return "poisson:" + strconv.FormatFloat(r.rate, 'g', 4, 64)
}

// compared keeps a comparison in the bundle and returns its decision in words.
func (r *evidenceRun) compared(name string, out []byte) (string, error) {
	r.bundle.Add(name+".json", out)
	var c struct {
		Versus []struct {
			Text string `json:"text"`
		} `json:"versus"`
	}
	if err := json.Unmarshal(out, &c); err != nil || len(c.Versus) != 1 {
		return "", errors.Join(err, errors.New("the comparison has no verdict"))
	}
	return c.Versus[0].Text, nil
}

// Rounds are judged by a median: the p99 of a round needs 100 requests, which a slow
// server does not answer in time.
var judgement = []string{"--primary", "p50_ttft", "--alpha", "0.05", "--json"}

func (r *evidenceRun) againstItself(step *evidence.Step) error {
	if r.rate == 0 {
		step.Finding = noLoad
		return nil
	}
	w, err := r.workload(step, "shared", sharedWorkload, r.roundSize())
	if err != nil {
		return err
	}
	out, err := r.reprise(step, append([]string{"compare", w, "--url-a", r.url, "--url-b", r.url, "--name-a", "first", "--name-b", "again",
		"--rate", r.rateFlag(), "--rounds", strconv.Itoa(r.plan.rounds), "--rest", r.plan.rest, "-o", r.path("aa")}, judgement...)...)
	if err == nil {
		step.Finding, err = r.compared("aa", out)
	}
	return err
}

func (r *evidenceRun) caching(step *evidence.Step) error {
	if r.rate == 0 {
		step.Finding = noLoad
		return nil
	}
	var workloads [2]string
	var err error
	for i, text := range []string{sharedWorkload, apartWorkload} {
		if workloads[i], err = r.workload(step, []string{"shared", "apart"}[i], text, r.roundSize()); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.path("caching"), 0o755); err != nil {
		return err
	}
	for round := range r.plan.rounds {
		for turn := range workloads {
			side := (round + turn) % 2 // who is first alternates
			out := r.path("caching", fmt.Sprintf("round-%02d-%c.parquet", round+1, 'a'+side))
			if _, err := os.Stat(out); err == nil {
				continue
			}
			// A seed that the server has not seen: nothing of the round is in its cache before.
			seed := strconv.FormatInt(rand.Int64N(1<<53), 10)
			if _, err := r.reprise(step, "replay", workloads[side], "--url", r.url, "--rate", r.rateFlag(), "--seed", seed, "--json", "-o", out); err != nil {
				return err
			}
		}
	}
	out, err := r.reprise(step, append([]string{"compare", r.path("caching"), "--name-a", "shared", "--name-b", "apart"}, judgement...)...)
	if err != nil {
		return err
	}
	if step.Finding, err = r.compared("caching", out); err != nil {
		return err
	}
	first, err := r.reprise(step, "report", r.path("caching", "round-01-a.parquet"), "--json")
	if err != nil {
		return err
	}
	r.bundle.Add("caching-report.json", first)
	var s struct {
		Cache *struct {
			Measured *float64 `json:"measured_ratio"`
			Expected *float64 `json:"expected_ratio"`
		} `json:"cache"`
	}
	if err := json.Unmarshal(first, &s); err == nil && s.Cache != nil && s.Cache.Measured != nil && s.Cache.Expected != nil {
		step.Finding += fmt.Sprintf(" Of prompt tokens behind the prefix %.1f %% were hits, %.1f %% expected.", 100**s.Cache.Measured, 100**s.Cache.Expected)
	}
	return nil
}

// peer runs vLLM's own client at the load of the other steps.
func (r *evidenceRun) peer(step *evidence.Step) error {
	if r.rate == 0 {
		step.Finding = noLoad
		return nil
	}
	program := ""
	for _, name := range []string{"vllm-rs", "vllm"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		step.Finding = "left out: no vllm here"
		return nil
	}
	tokenizer := r.tokenizer
	if strings.HasSuffix(tokenizer, ".json") {
		tokenizer = filepath.Dir(tokenizer)
	}
	if r.model == "" || tokenizer == "" {
		step.Finding = "left out: it wants --tokenizer"
		return nil
	}
	args := []string{"bench", "serve", "--backend", "vllm", "--base-url", r.url, "--model", r.model, "--tokenizer", tokenizer,
		"--dataset-name", "random", "--random-input-len", "2048", "--random-output-len", "96", "--num-prompts", strconv.Itoa(5 * r.roundSize()),
		"--request-rate", strconv.FormatFloat(r.rate, 'g', 4, 64), "--ignore-eos", "--save-result", "--result-dir", r.dir, "--result-filename", "peer.json"}
	step.Commands = append(step.Commands, filepath.Base(program)+" "+quoted(args))
	if said, err := exec.CommandContext(r.cmd.Context(), program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, lastLine(string(said)))
	}
	out, err := os.ReadFile(r.path("peer.json"))
	if err != nil {
		return err
	}
	r.bundle.Add("peer.json", out)
	var s struct {
		Median *float64 `json:"median_ttft_ms"`
		P99    *float64 `json:"p99_ttft_ms"`
	}
	if err := json.Unmarshal(out, &s); err != nil || s.Median == nil {
		return errors.New("its results have no median_ttft_ms")
	}
	step.Finding = fmt.Sprintf("%s: TTFT p50 %.1f ms of prompts of 2,048 tokens that share nothing", filepath.Base(program), *s.Median)
	return nil
}

// write writes the bundle and says where it is.
func (r *evidenceRun) write() error {
	path := r.path("evidence.tar.gz")
	if err := trace.WriteFile(path, 0o644, r.bundle.Write); err != nil {
		return err
	}
	code := cli.Good
	for _, s := range r.bundle.Steps {
		switch {
		case s.Failed:
			code = cli.Failure
		case code != cli.Failure && code != cli.Check && s.Exit != cli.Good:
			code = s.Exit
		}
	}
	if r.asJSON {
		var doc bytes.Buffer
		if err := cli.WriteJSON(&doc, r.bundle.Manifest); err != nil {
			return err
		}
		if _, err := io.WriteString(r.cmd.OutOrStdout(), r.bundle.Shown(doc.String())); err != nil {
			return err
		}
	} else {
		p := textpage.New(cli.TextOptions(r.cmd, ""))
		p.Line("", fmt.Sprintf("%s: %d files, in %.0f minutes. It holds no prompts, answers, addresses or keys: look inside before you publish it.",
			path, len(r.bundle.Files)+1, math.Ceil(r.bundle.Seconds/60)))
		if _, err := p.WriteTo(r.cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	switch code {
	case cli.Failure:
		return cli.Exit(cli.Failure, errors.New("a step failed: the lines above say which and why"))
	case cli.Check:
		return cli.Exit(cli.Check, errors.New("the server is not ready to be measured: the lines above say why"))
	case cli.Untrusted:
		return cli.Exit(cli.Untrusted, errors.New("a step cannot be trusted: the lines above say which and why"))
	}
	return nil
}
