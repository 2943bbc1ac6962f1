//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEngine, in the environment, makes the test binary an engine.
const helperEngine = "REPRISE_BENCH_HELPER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(helperEngine); kind != "" {
		helper(kind, os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// helper is an engine at the port that it is given, with a bad habit.
func helper(kind string, args []string) {
	fmt.Println("engine", kind, args)
	switch kind {
	case "dies":
		fmt.Println("CUDA out of memory")
		os.Exit(7)
	case "hangs":
		time.Sleep(time.Hour) // with a timer it is no deadlock
	case "stubborn": // with a worker that is as stubborn
		signal.Ignore(syscall.SIGTERM)
		worker := exec.Command(os.Args[0])
		worker.Env = append(os.Environ(), helperEngine+"=worker")
		if err := worker.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println("worker", worker.Process.Pid)
	case "worker":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour) // with a timer it is no deadlock
	}
	http.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	http.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	http.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	fmt.Println(http.ListenAndServe("127.0.0.1:"+args[0], nil))
}

// asked is a Target that asks the engine for its process id.
type asked struct {
	url  string
	pids *[]int
}

func (a asked) Run(_ context.Context, _ Trial) error {
	resp, err := http.Get(a.url + "/pid")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	*a.pids = append(*a.pids, pid)
	return err
}

func helperServed(t *testing.T, kind string, pids *[]int) *Served {
	t.Setenv(helperEngine, kind)
	c, err := ParseServeCommand(QuoteWords([]string{os.Args[0], "{port}", "{x}"}))
	if err != nil {
		t.Fatal(err)
	}
	if c, err = c.Fill(map[string]string{"x": "six four"}); err != nil {
		t.Fatal(err)
	}
	s := &Served{Command: c, Target: func(url string) Target { return asked{url, pids} }, Ready: time.Minute, Grace: time.Minute,
		Log: filepath.Join(t.TempDir(), "logs", "engine.log")}
	t.Cleanup(func() {
		if s.engine != nil {
			s.engine.stop(0)
		}
	})
	return s
}

// gone waits for a process that was killed to be no more: whoever inherited it may
// not have noticed yet.
func gone(pid int) bool {
	for range 1000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid) {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestServedLifecycle(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		var pids []int
		s := helperServed(t, "serves", &pids)
		s.Fresh = fresh
		for range 2 {
			if err := s.Run(t.Context(), Trial{}); err != nil {
				t.Fatal(err)
			}
		}
		if len(pids) != 2 || (pids[0] == pids[1]) == fresh {
			t.Errorf("fresh %v: processes %v", fresh, pids)
		}
		if err := s.Close(); err != nil || !gone(pids[0]) || !gone(pids[1]) {
			t.Errorf("fresh %v: %v, an engine is left", fresh, err)
		}
		log, err := os.ReadFile(s.Log)
		if want := "six four"; err != nil || strings.Count(string(log), want) != map[bool]int{false: 1, true: 2}[fresh] {
			t.Errorf("fresh %v: the log is %q, %v", fresh, log, err)
		}
	}
}

// An engine that dies is not waited for, and says why.
func TestServedDies(t *testing.T) {
	var pids []int
	err := helperServed(t, "dies", &pids).Run(t.Context(), Trial{})
	if err == nil || !strings.Contains(err.Error(), "CUDA out of memory") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("%v", err)
	}
	s := helperServed(t, "hangs", &pids)
	s.Ready, s.Grace = 50*time.Millisecond, time.Minute
	if err := s.Run(t.Context(), Trial{}); err == nil || !strings.Contains(err.Error(), "not ready after 50ms") || s.engine != nil {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := helperServed(t, "hangs", &pids).Run(ctx, Trial{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Nobody is left of an engine that does not want to end, nor of its workers.
func TestServedStubborn(t *testing.T) {
	var pids []int
	s := helperServed(t, "stubborn", &pids)
	s.Grace = 20 * time.Millisecond
	if err := s.Run(t.Context(), Trial{}); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(s.Log)
	var worker int
	_, after, _ := strings.Cut(string(log), "\nworker ")
	if _, serr := fmt.Sscan(after, &worker); err != nil || serr != nil {
		t.Fatalf("%q: %v, %v", log, err, serr)
	}
	if err := s.Close(); err != nil || !gone(pids[0]) || !gone(worker) {
		t.Errorf("%v, engine %d or its worker %d is left", err, pids[0], worker)
	}
}

// killing is a Target under which the engine dies.
type killing string

func (k killing) Run(ctx context.Context, _ Trial) error {
	if resp, err := http.Get(string(k) + "/die"); err == nil {
		resp.Body.Close()
	}
	<-ctx.Done() // requests that fail are no error of a run
	return nil
}

func TestServedEndsEarly(t *testing.T) {
	var pids []int
	s := helperServed(t, "serves", &pids)
	s.Target = func(url string) Target { return killing(url) }
	if err := s.Run(t.Context(), Trial{}); err == nil || !strings.Contains(err.Error(), "exited during the run") {
		t.Errorf("%v", err)
	}
	s.Command = ServeCommand{[]string{os.Args[0]}}
	if err := s.Run(t.Context(), Trial{}); err == nil || !strings.Contains(err.Error(), "{port}") {
		t.Errorf("%v", err)
	}
}
