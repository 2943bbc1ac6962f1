package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
)

// A release costs nothing until noise is drawn, however it ends before: it enters nothing, so
// that nothing is left to be taken back, and the next one has all of the budget. What ends
// after that is spent, and says so.
func TestReleaseThatEnds(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	crowdTrace(t, "t.parquet", 30000)
	fit := []string{"synth", "fit", "t.parquet", "--tier", "public", "--epsilon", "8", "--max-input", "4096", "--max-output", "1024", "--ledger", "ledger"}
	spent := func(t *testing.T) string {
		t.Helper()
		b, err := os.ReadFile("ledger")
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	fresh := func(t *testing.T) {
		t.Helper()
		for _, path := range []string{"ledger", "t.ledger.jsonl", "m.parquet"} {
			os.Remove(path)
		}
	}
	// Another release has the ledger just then, so that this one stands before its noise.
	for name, signal := range map[string]os.Signal{"a kill": os.Kill, "Ctrl-C": os.Interrupt, "a stop of the job": syscall.SIGTERM} {
		t.Run(name+" before the noise", func(t *testing.T) {
			fresh(t)
			held, err := os.OpenFile("ledger", os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer held.Close()
			if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			cmd := child(t, append(fit, "-o", "m.parquet")...)
			says, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(says)
			waits := false
			for !waits && lines.Scan() {
				waits = strings.Contains(lines.Text(), "waiting for another release, which has ledger")
			}
			if err := cmd.Process.Signal(signal); err != nil || !waits {
				t.Fatalf("it does not wait, %v", err)
			}
			io.Copy(io.Discard, says)
			if err := cmd.Wait(); err == nil {
				t.Error("it ended well")
			}
			if got := spent(t); got != "" {
				t.Errorf("the ledger has %s", got)
			}
			held.Close()
			if said, code := ofUser(t, t.TempDir(), append(fit, "-o", "m.parquet")...); code != cli.Good {
				t.Errorf("the next one: exit code %d\n%s", code, said)
			}
		})
	}
	// A process that has the ledger and is killed has it no more.
	t.Run("a dead holder", func(t *testing.T) {
		fresh(t)
		holder := exec.Command("flock", "ledger", "sleep", "600")
		holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := holder.Start(); err != nil {
			t.Skip("there is no flock: ", err)
		}
		for {
			f, err := os.OpenFile("ledger", os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			f.Close()
			if err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cmd := child(t, append(fit, "-o", "m.parquet")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		syscall.Kill(-holder.Process.Pid, syscall.SIGKILL)
		holder.Wait()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	// A file may not grow: there is no room for the outputs, or none for the entry.
	limited := func(t *testing.T, blocks string, args ...string) string {
		t.Helper()
		plain := child(t, args...)
		cmd := exec.Command("sh", append([]string{"-c", "ulimit -f " + blocks + `; exec "$0" "$@"`}, plain.Args...)...)
		cmd.Env = plain.Env
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("it ended well: %s", out)
		}
		return string(out)
	}
	t.Run("no room for the output", func(t *testing.T) {
		fresh(t)
		if said := limited(t, "200", append(fit, "-o", "m.parquet")...); !strings.Contains(said, "no room for the release, so no noise was drawn and nothing is spent") {
			t.Error(said)
		}
		if b, err := os.ReadFile("ledger"); err == nil && len(b) > 0 {
			t.Errorf("the ledger has %s", b)
		}
	})
	t.Run("no room in the ledger", func(t *testing.T) {
		fresh(t)
		others := strings.Repeat(`{"id":"1","source":"sha256:other","captures":["`+strings.Repeat("c", 900_000)+`"],"unit":"request","release":"begun","time":"2026-05-01T00:00:00Z","epsilon":1,"delta":1e-6}`+"\n", 6)
		if err := os.WriteFile("ledger", []byte(others), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := limited(t, "4096", append(fit, "-o", "m.parquet")...); !strings.Contains(said, "ledger: ") || strings.Contains(said, "is spent, and") {
			t.Error(said)
		}
		if got := spent(t); got != others {
			t.Errorf("the ledger has %d bytes, and had %d", len(got), len(others))
		}
		if b, err := os.ReadFile("t.ledger.jsonl"); err == nil && len(b) > 0 {
			t.Errorf("the ledger beside the trace has %s", b)
		}
	})
	// The output cannot be written: the noise is drawn.
	t.Run("a full disk behind the noise", func(t *testing.T) {
		fresh(t)
		out, err := child(t, append(fit, "-o", "/dev/full", "--overwrite")...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "noise was drawn by then, so ε=8 is spent") {
			t.Errorf("%v: %s", err, out)
		}
		if got := spent(t); !strings.Contains(got, `"epsilon":8`) {
			t.Errorf("the ledger has %s", got)
		}
		if said, code := ofUser(t, t.TempDir(), append(fit, "-o", "m.parquet")...); code != cli.Usage || !strings.Contains(said, "ε would be 16") {
			t.Errorf("the next one: exit code %d\n%s", code, said)
		}
	})
	// Two at once, with room for one.
	t.Run("two at once", func(t *testing.T) {
		fresh(t)
		var all []*exec.Cmd
		for _, out := range []string{"m.parquet", "n.parquet"} {
			cmd := child(t, append(fit, "-o", out)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			all = append(all, cmd)
		}
		good := 0
		for _, cmd := range all {
			if cmd.Wait() == nil {
				good++
			} else if code := cmd.ProcessState.ExitCode(); code != cli.Usage {
				t.Errorf("exit code %d", code)
			}
		}
		if good != 1 {
			t.Errorf("%d of two releases at ε=8 were made", good)
		}
	})
}
