package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"reprise/trace/crash"
)

// An engineProcess is a serving engine that was started, with its processes.
type engineProcess struct {
	url   string
	log   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when the first process is no more
	how   error         // it ended; set before ended is closed
}

// startEngine starts the command, with its output at the end of the file log. An
// empty url stands for the port of this machine that the command is told.
func startEngine(c ServeCommand, url, log string) (*engineProcess, error) {
	if c.HasPort() {
		// A port that nothing listens at. Something else may take it before the engine
		// does; then the engine says so and ends.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		c = c.replace(map[string]string{portName: strconv.Itoa(port)})
		url = cmp.Or(url, "http://127.0.0.1:"+strconv.Itoa(port))
	}
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	// An engine may be told to log what it is asked, so the log is for its owner.
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the engine has its own
	e := &engineProcess{url: url, log: log, cmd: exec.Command(c.words[0], c.words[1:]...), ended: make(chan struct{})}
	e.cmd.Stdout, e.cmd.Stderr, e.cmd.SysProcAttr = out, out, ownGroup()
	started := make(chan error, 1)
	go func() {
		defer crash.Caught()
		// Linux tells a process that its parent is gone when the thread ends that
		// started it, so that thread has to stay.
		runtime.LockOSThread()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			e.how = e.cmd.Wait()
			close(e.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	return e, nil
}

// readyEvery is how often an engine is asked whether it is ready.
const readyEvery = 200 * time.Millisecond

// ready waits until the engine answers: /health with success, or without knowing it,
// and then /v1/models. It fails as soon as the engine has ended.
func (e *engineProcess) ready(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the engine is not ready after %v", limit))
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		if e.healthy(ctx) {
			return nil
		}
		select {
		case <-e.ended:
			how := "with success"
			if e.how != nil {
				how = "with " + e.how.Error()
			}
			return fmt.Errorf("the engine exited before it was ready, %s: %w", how, e.tail())
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), e.tail())
		case <-tick.C:
		}
	}
}

// healthy asks once.
func (e *engineProcess) healthy(ctx context.Context) bool {
	base := strings.TrimSuffix(strings.TrimRight(e.url, "/"), "/v1")
	health := status(ctx, base+"/health")
	switch {
	case health == http.StatusNotFound, health == http.StatusMethodNotAllowed, health == http.StatusUnauthorized:
	case health < 200 || health > 299:
		return false
	}
	models := status(ctx, base+"/v1/models")
	return models != 0 && models < 500
}

// status is that of the answer to a GET, 0 without one.
func status(ctx context.Context, url string) int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode
}

// tailLines is how much of a log an error shows.
const tailLines = 20

// tail is an error that shows the end of the log. Only before the first request: the
// log may hold prompts later.
func (e *engineProcess) tail() error {
	f, err := os.Open(e.log)
	if err != nil {
		return err
	}
	defer f.Close()
	const most = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd)
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(bytes.ToValidUTF8(text, []byte("?"))), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return fmt.Errorf("the end of %s:\n  %s", e.log, strings.Join(lines, "\n  "))
}

// stop ends all processes of the engine: it asks, and after grace it kills. It
// returns when the first process is no more.
func (e *engineProcess) stop(grace time.Duration) {
	askGroup(e.cmd.Process)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-e.ended:
	case <-t.C:
	}
	killGroup(e.cmd.Process) // workers that outlived the first process as well
	<-e.ended
}
