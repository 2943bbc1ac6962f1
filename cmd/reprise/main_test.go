package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/longtest"
)

// asCommand in the environment makes the test binary be the command, for tests
// that kill it.
const asCommand = "REPRISE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	testscript.Main(seldomCollected{m}, map[string]func(){"reprise": main})
}

// seldomCollected are the tests in this process with fewer collections of garbage, which take a sixth of their time.
// The commands that they start collect as they do for users.
type seldomCollected struct{ *testing.M }

func (m seldomCollected) Run() int {
	debug.SetGCPercent(300)
	return m.M.Run()
}

// TestScripts runs the command line as users type it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: func(env *testscript.Env) error {
		env.Setenv("XDG_STATE_HOME", env.WorkDir)
		return nil
	}})
}

// reprise runs the command in this process.
func reprise(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), replacing(args), strings.NewReader(""), &out, &errs)
	return out.String(), withoutHelp(errs.String()), code
}

// withoutHelp leaves out the line that names the help of a command: TestHelpIsNamed has it.
func withoutHelp(errs string) string {
	return regexp.MustCompile(`(?m)^Help and examples: reprise( [a-z-]+)* --help\n\z`).ReplaceAllString(errs, "")
}

// A mistake that shows no command line to paste names the help of the command that was typed.
func TestHelpIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		"replay w.parquet --rate fast": "Help and examples: reprise replay --help\n",
		"datasets fetch":               "",
		"datasets fetch --ulr x":       "Help and examples: reprise datasets fetch --help\n",
		"synth":                        "",
		"compare":                      "",
		"--colour":                     "Help and examples: reprise --help\n",
		"impart":                       "",
		"job import --machines x":      "Help and examples: reprise job import --help\n",
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), nil, io.Discard, &errs); code != cli.Usage {
			t.Errorf("%s: exit code %d", line, code)
		}
		if got := strings.TrimPrefix(errs.String(), withoutHelp(errs.String())); got != want {
			t.Errorf("%s: %q, want the help as %q", line, errs.String(), want)
		}
	}
}

// replacing adds --overwrite to a command whose output a step before has written: tests
// use one name several times. What happens without it is in TestExistingOutput.
func replacing(args []string) []string {
	for _, name := range []string{"-o", "--html", "--header", "--histograms", "--tables", "--result-filename"} {
		at := slices.Index(args, name) + 1
		if at == 0 || at == len(args) || slices.Contains(args, "--overwrite") {
			continue
		}
		if info, err := os.Stat(args[at]); err != nil || !info.Mode().IsRegular() {
			continue
		}

		cmd, _, err := rootCommand(nil).Find(args)
		if err == nil && cmd.Flags().Lookup("overwrite") != nil {
			return slices.Insert(slices.Clone(args), at+1, "--overwrite")
		}
		break
	}
	return args
}

// must runs the command and expects it to succeed. A replay may come out as not
// to be trusted: a busy machine is late, and that is at stake in no caller.
func must(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, code := reprise(t, args...)
	if code != cli.Good && (code != cli.Untrusted || args[0] != "replay") {
		t.Fatalf("reprise %s: exit code %d\n%s", strings.Join(args, " "), code, errs)
	}
	return out
}

// child prepares the command as a process of its own.
func child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_STATE_HOME="+t.TempDir())
	return cmd
}

// long skips a test that takes more than a few seconds, unless REPRISE_TEST_LONG is set.
func long(t testing.TB) {
	t.Helper()
	longtest.Skip(t)
}

// shared returns the path of a published trace, or skips the test: such a trace has
// thousands of requests, and is not everywhere.
func shared(t testing.TB, name string) string {
	t.Helper()
	long(t)
	path := "../../../shared/data/" + name
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skipf("the published trace %s is not here", name)
	}
	return path
}

// A log or a directory in the place of a trace is the first mistake to make.
func TestNotATrace(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"gateway.jsonl": userLog(3)})
	for arg, want := range map[string]string{"gateway.jsonl": "gateway.jsonl is not a trace or a workload: reprise import gateway.jsonl -o t.parquet makes a trace of a log", ".": ". is a directory: name a trace"} {
		if _, errs, code := reprise(t, "profile", arg); code != cli.Failure || !strings.Contains(errs, want) {
			t.Errorf("profile %s: code %d\n%s", arg, code, errs)
		}
	}
}

// --quiet leaves out notes about steps and choices, and keeps warnings.
func TestQuiet(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"sweep chat --preset l4-qwen2.5-0.5b --rates 5 --level-duration 5s --level-requests 0 --no-confirm",
		"compare w.parquet --preset l4-qwen2.5-0.5b --costs-b step=6ms --rounds 2 -o rounds",
		"replay w.parquet --rate 4 --max-requests 9 --dry-run",
	} {
		must(t, "synth", "chat", "-n", "20", "-o", "w.parquet")
		_, told, _ := reprise(t, strings.Fields(args)...)
		if err := os.RemoveAll("rounds"); err != nil {
			t.Fatal(err)
		}
		_, errs, code := reprise(t, append(strings.Fields(args), "--quiet")...)
		if strings.HasPrefix(args, "compare") { // which knows that before its first round
			expect(t, told, "2 rounds cannot give a verdict: alpha 0.01 needs 8")
		}
		if told == "" || errs != "" || code != cli.Good {
			t.Errorf("%s: exit code %d, %q, and with --quiet %q", args, code, told, errs)
		}
	}
	writeFiles(t, map[string]string{"p.jsonl": strings.Repeat(`{"prompt":"one two"}`+"\n", 2000) + "{\n"})
	for args, want := range map[string]string{ // a loss, and a flag that does nothing
		"replay p.jsonl --rate 4 --dry-run --quiet --set assume=ttft=1s,itl=10ms": "p.jsonl: ",
		"replay chat --output-tokens 5 --dry-run --quiet":                         "--output-tokens changes nothing",
	} {
		_, errs, code := reprise(t, strings.Fields(args)...)
		if code != cli.Good || !strings.HasPrefix(errs, want) || strings.Count(errs, "\n") > 2 {
			t.Errorf("%s: exit code %d, %q", args, code, errs)
		}
	}
}

// What a command made is said with --quiet too, and no note on it.
func TestQuietKeepsTheAnswer(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "synth", "chat", "-n", "60", "-o", "w.parquet")
	must(t, "synth", "chat", "-n", "20", "--seed", "2", "-o", "v.parquet")
	must(t, "export", "w.parquet", "--to", "mooncake", "-o", "w.jsonl")
	for _, args := range []string{
		"import w.jsonl -o out", "export w.parquet --to mooncake -o out", "merge w.parquet v.parquet -o out",
	} {
		_, told, _ := reprise(t, append(strings.Fields(args), "--overwrite")...)
		_, errs, code := reprise(t, append(strings.Fields(args), "--overwrite", "--quiet")...)
		if !strings.Contains(told, "note:") && !strings.Contains(told, "\nuse:") {
			t.Errorf("%s: no note to leave out in %q", args, told)
		}
		if noted := strings.Contains(errs, "note:") || strings.Contains(errs, "\nuse:"); code != cli.Good || noted ||
			!strings.HasPrefix(errs, "out: ") {
			t.Errorf("%s --quiet: exit code %d, %q", args, code, errs)
		}
	}
}

func TestVersion(t *testing.T) {
	var b map[string]string
	if err := json.Unmarshal([]byte(must(t, "version", "--json")), &b); err != nil {
		t.Fatal(err)
	}
	if b["version"] == "" || b["go"] != runtime.Version() || b["platform"] != runtime.GOOS+"/"+runtime.GOARCH || len(b) != 5 {
		t.Errorf("%v", b)
	}
	text := must(t, "version")
	if !strings.HasPrefix(text, "reprise "+b["version"]+"\n") || !strings.Contains(text, b["go"]) || !strings.Contains(text, b["platform"]) {
		t.Error(text)
	}
}

// A panic is a fault of the program: an error that names the place and the files, and no text of
// theirs.
func TestPanicIsAnError(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"log.jsonl": "x"})
	for name, c := range map[string]struct {
		fault func()
		says  string
	}{
		"index": {func() { _ = []int{}[len(os.Args)+1] }, "index out of range"},
		"text":  {func() { panic("the prompt says so") }, ": string; the files were log.jsonl"},
	} {
		cmd := &cobra.Command{Use: "reprise", SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs, Run: func(*cobra.Command, []string) { c.fault() }}
		cmd.SetArgs([]string{"log.jsonl", "--", "other"})
		err := execute(t.Context(), cmd, []string{"log.jsonl", "--", "other"})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "TestPanicIsAnError") || strings.Contains(err.Error(), "prompt") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
