package main

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"reprise/cmd/reprise/internal/cli"
)

// fakeGitHub is gh, with the comments of one pull request as files of a folder. It
// refuses to change those of others.
const fakeGitHub = `#!/usr/bin/env bash
set -eu
echo "$*" >>"$COMMENTS/log"
test "$GH_TOKEN" = secret
case "$*" in
  *"--paginate repos/me/mine/issues/7/comments?per_page=100 --jq "*)
    for f in "$COMMENTS"/*.md; do
      if test -f "$f" && test "$(head -n 1 "$f")" = "$MARKER"; then basename "$f" .md; fi
    done ;;
  *"--method PATCH repos/me/mine/issues/comments/"*)
    id=${4##*/}; test "$id" != 1; cp "${6#body=@}" "$COMMENTS/$id.md" ;;
  *"--method POST repos/me/mine/issues/7/comments -F"*)
    n=$(ls "$COMMENTS" | grep -c md || true); cp "${6#body=@}" "$COMMENTS/$((n + 1)).md" ;;
  *) exit 1 ;;
esac
`

// An actionJob runs the steps of action.yml as GitHub's runner would: each as a script
// under bash with its variables, the inputs filled in.
type actionJob struct {
	t        *testing.T
	dir      string
	comments string
	path     string // PATH
}

func newActionJob(t *testing.T) *actionJob {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	j := &actionJob{t: t, dir: t.TempDir(), comments: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range map[string]string{"gh": fakeGitHub, "reprise": "#!/bin/sh\nexport " + asCommand + "=1\nexec '" + self + "' \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	j.path = bin + ":" + os.Getenv("PATH")
	return j
}

// run is the exit code of the job, its log and its summary. Inputs are those of
// action.yml; more are variables.
func (j *actionJob) run(inputs map[string]string, more ...string) (code int, log, summary string) {
	j.t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		j.t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct {
				ID, Run string
				Env     map[string]string
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(data, &action)
	}
	if err != nil || len(action.Runs.Steps) != 2 {
		j.t.Fatalf("action.yml: %v, %d steps", err, len(action.Runs.Steps))
	}
	outputs := map[string]string{}
	context := regexp.MustCompile(`^\$\{\{ (.*) \}\}$`)
	summaryFile := filepath.Join(j.dir, "summary")
	if err := os.WriteFile(summaryFile, nil, 0o600); err != nil {
		j.t.Fatal(err)
	}
	for _, step := range action.Runs.Steps {
		outputFile := filepath.Join(j.dir, "output")
		if err := os.WriteFile(outputFile, nil, 0o600); err != nil {
			j.t.Fatal(err)
		}
		if strings.Contains(step.Run, "${{") {
			j.t.Errorf("%s has an expression in it, which is code", step.Run)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step.Run)
		cmd.Dir = j.dir
		cmd.Env = []string{"PATH=" + j.path, "HOME=" + j.dir, "RUNNER_TEMP=" + j.dir, "GITHUB_ACTION_PATH=" + root, "GITHUB_REPOSITORY=me/mine",
			"GITHUB_STEP_SUMMARY=" + summaryFile, "GITHUB_OUTPUT=" + outputFile, "COMMENTS=" + j.comments}
		for name, value := range step.Env {
			what := context.FindStringSubmatch(value)
			if what == nil {
				j.t.Fatalf("%s: %s", name, value)
			}
			input, isInput := strings.CutPrefix(what[1], "inputs.")
			output, isOutput := strings.CutPrefix(what[1], "steps.bench.outputs.")
			switch {
			case input == "token":
				value = "secret"
			case isInput:
				if _, ok := action.Inputs[input]; !ok {
					j.t.Errorf("%s: there is no input %s", name, input)
				}
				value = cmp.Or(inputs[input], action.Inputs[input].Default)
			case isOutput:
				value = outputs[output]
			case what[1] == "github.event.pull_request.number":
				value = "7"
			default:
				j.t.Fatalf("%s: %s", name, value)
			}
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, more...)
		out, err := cmd.CombinedOutput()
		log += string(out)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = cmp.Or(code, exit.ExitCode())
		} else if err != nil {
			j.t.Fatal(err)
		}
		data, err := os.ReadFile(outputFile)
		if err != nil {
			j.t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			outputs[name] = value
		}
	}
	data, err = os.ReadFile(summaryFile)
	if err != nil {
		j.t.Fatal(err)
	}
	return code, log, string(data)
}

// comment is what the pull request shows under this number; empty without one.
func (j *actionJob) comment(number string) string {
	data, err := os.ReadFile(filepath.Join(j.comments, number+".md"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		j.t.Fatal(err)
	}
	return string(data)
}

func (j *actionJob) write(name, text string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o600); err != nil {
		j.t.Fatal(err)
	}
}

const actionSuite = "rows: [{name: paged_attention, workload: paged_attention, load: burst, primary: p90_ttft}]"

// The action measures a baseline, passes what is as fast, and fails what is slower. The
// pull request has one comment, which changes.
func TestAction(t *testing.T) {
	long(t)
	j := newActionJob(t)
	j.write("s.yaml", actionSuite)
	inputs := map[string]string{"suite": "s.yaml", "binary": "reprise", "output": "before", "baseline": "before", "args": "--preset=t4-llama-3.2-3b\n--max-num-seqs=16\n"}
	code, log, summary := j.run(inputs)
	if code != 0 || !strings.Contains(log, "::notice title=Reprise::there is no baseline yet, so that nothing is compared with an earlier run\n") || !strings.HasSuffix(log, "::notice title=Reprise::the suite passed\n") {
		t.Fatalf("exit code %d\n%s", code, log)
	}
	first := j.comment("1")
	if first != summary || !strings.HasPrefix(first, "<!-- reprise bench s.yaml -->\n**The suite passed.**\n\n") || !strings.Contains(first, "\n| TTFT p90 (ms) ← |") {
		t.Errorf("the comment is\n%s", first)
	}
	// The same again: no regression. Comment 1 cannot be changed, as one that another
	// person wrote, so there is a second.
	inputs["output"] = "same"
	code, log, _ = j.run(inputs)
	if second := j.comment("2"); code != 0 || !strings.Contains(second, "- t4-llama-3.2-3b: no regression: TTFT p90 (ms) is ") || !strings.Contains(second, "(+0.0 %, limit 10 %)") {
		t.Errorf("exit code %d\n%s\n%s", code, second, log)
	}
	// Slower: the comment changes, the job fails, and says by how much.
	if err := os.Remove(filepath.Join(j.comments, "1.md")); err != nil {
		t.Fatal(err)
	}
	inputs["output"], inputs["args"] = "after", "--preset=t4-llama-3.2-3b\n--max-num-seqs=8"
	code, log, _ = j.run(inputs)
	changed := j.comment("2")
	if code != cli.Check || !strings.Contains(log, "::error title=Reprise::the suite found a regression, or a contract that fails: the table says by how much\n") {
		t.Errorf("exit code %d\n%s", code, log)
	}
	if !regexp.MustCompile(`\n  - paged_attention: REGRESSION: TTFT p90 \(ms\) is 38,400, in the baseline [\d,]+ \(\+\d+.\d %, limit 10 %\)\n`).MatchString(changed) || j.comment("1") != "" || j.comment("3") != "" {
		t.Errorf("the comment is\n%s", changed)
	}
	// With room for that, it passes.
	inputs["output"], inputs["max-regression"] = "lenient", "100%"
	if code, log, _ = j.run(inputs); code != 0 {
		t.Errorf("exit code %d\n%s", code, log)
	}
}

// The scripts are plain to shellcheck, where it is installed.
func TestActionScripts(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("shellcheck is not installed")
	}
	if out, err := exec.Command("shellcheck", "../../.github/action/bench.sh", "../../.github/action/comment.sh").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A run that cannot be trusted fails in other words, and what cannot be run says so.
func TestActionFailures(t *testing.T) {
	long(t)
	j := newActionJob(t)
	j.write("refused.yaml", "rows: [{name: refused, workload: {requests: 20, arrivals: burst, lengths: {input: \"constant:20\", output: \"constant:20\"}}, timeout: 1ms}]")
	preset := "--preset=t4-llama-3.2-3b"
	for _, c := range []struct {
		inputs map[string]string
		more   []string
		code   int
		says   string
	}{
		{map[string]string{"suite": "refused.yaml", "args": preset}, nil, cli.Untrusted,
			"::error title=Reprise::the suite cannot be trusted: the machine was busy, or requests failed. This says nothing of the change: run it again on a quiet machine\n"},
		{map[string]string{"suite": "none.yaml", "args": preset}, nil, cli.Usage, "::error title=Reprise::the suite was called wrongly: the log of the job says what to change\n"},
		{map[string]string{"suite": "load-test", "url": "http://127.0.0.1:1"}, nil, cli.Failure, "::error title=Reprise::the suite could not be run: the log of the job says why\n"},
		{map[string]string{"suite": "load-test", "binary": "/no/such"}, nil, 1, "::error title=Reprise::the input binary does not name a reprise that runs here\n"},
		// What inputs hold is never code, nor a flag where none is meant.
		{map[string]string{"suite": "$(touch hacked); `touch hacked` \"; touch hacked #", "args": preset + "$(touch hacked)\n; touch hacked"}, nil, cli.Usage, "called wrongly"},
		{map[string]string{"suite": "--list", "args": preset}, nil, cli.Usage, "called wrongly"},
		{map[string]string{"suite": "none.yaml", "args": preset}, []string{"GITHUB_TOKEN="}, cli.Usage, "::warning title=Reprise::there is no comment, since there is no token. The table is in the summary of the job\n"},
		{map[string]string{"suite": "none.yaml", "args": preset}, []string{"GITHUB_TOKEN=of a fork"}, cli.Usage, "::warning title=Reprise::the pull request takes no comment: give the job the permission pull-requests: write, which tokens for forks cannot have. The table"},
	} {
		c.inputs["output"] = filepath.Join(t.TempDir(), "results")
		c.inputs["binary"] = cmp.Or(c.inputs["binary"], "reprise")
		if code, log, _ := j.run(c.inputs, c.more...); code != c.code || !strings.Contains(log, c.says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", c.inputs, code, c.code, c.says, log)
		}
	}
	if _, err := os.Stat(filepath.Join(j.dir, "hacked")); err == nil {
		t.Error("an input was run")
	}
	if got := j.comment("1"); !strings.HasPrefix(got, "<!-- reprise bench refused.yaml -->\n**The suite cannot be trusted: the machine was busy") {
		t.Errorf("the comment is\n%s", got)
	}
}

// The action starts the server that it measures, and what the server says is not taken
// for a command of the runner.
func TestActionServes(t *testing.T) {
	long(t)
	t.Parallel()
	j := newActionJob(t)
	j.write("s.yaml", `warmup: 2
rows: [{name: chat, workload: {requests: 30, arrivals: burst, lengths: {input: "constant:64", output: "constant:8"}}, load: "concurrency:2", primary: p50_tpot}]`)
	serve := "reprise serve --listen 127.0.0.1:{port} --costs step="
	inputs := map[string]string{"suite": "s.yaml", "binary": "reprise", "baseline": "before", "args": "--trust=max-stall-ttft=off,max-stall-gap=off,max-lag=off"}
	for _, c := range []struct {
		output, step string
		code         int
		says         string
	}{{"before", "5ms", 0, ""}, {"same", "5ms", 0, "engine: no regression"}, {"slower", "15ms", cli.Check, "engine: REGRESSION: TPOT p50 (ms) is "}} {
		inputs["output"], inputs["serve-cmd"], inputs["max-regression"] = c.output, serve+c.step, "100%"
		code, log, summary := j.run(inputs)
		if code != c.code || !strings.Contains(summary, c.says) {
			t.Errorf("%s: exit code %d\n%s\n%s", c.output, code, summary, log)
		}
		lines := strings.Split(log, "\n")
		begin := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "::stop-commands::") })
		if begin < 0 || !slices.Contains(lines[begin:], "::"+strings.TrimPrefix(lines[begin], "::stop-commands::")+"::") {
			t.Errorf("commands of the runner are not paused and taken up again:\n%s", log)
		}
	}
}
