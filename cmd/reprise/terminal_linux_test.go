package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inTerminal runs a command with a pseudo-terminal of 80 columns as its stdin, stdout
// and stderr, and returns what that showed.
func inTerminal(t *testing.T, env []string, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := child(t, args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		data, _ := io.ReadAll(master) // ends in an error when nobody has the terminal open
		shown <- string(data)
	}()
	select {
	case text := <-shown:
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, text)
		}
		return text
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("%v has not ended in a minute", args)
		return ""
	}
}

// A colour is set by a code with a number other than 0.
var setsColour = regexp.MustCompile(`\x1b\[[0-9;:]*[1-9][0-9;:]*m`)

// Nothing on a terminal is in colour, whatever NO_COLOR says, and a dumb terminal gets
// lines without any codes.
func TestTerminalCodes(t *testing.T) {
	long(t)
	w, url := killWorkload(t, 60, 40*time.Millisecond), killServer(t).url
	for _, c := range []struct {
		env   []string
		codes bool
	}{
		{[]string{"TERM=xterm-256color", "NO_COLOR=1"}, true},
		{[]string{"TERM=xterm-256color", "NO_COLOR=", "COLORTERM=truecolor"}, true},
		{[]string{"TERM=dumb"}, false},
	} {
		text := inTerminal(t, c.env, "replay", w, "--url", url, "-o", filepath.Join(t.TempDir(), "r.parquet"),
			"--trust", "max-lag=off,max-lag-p50=off,max-lag-drift=off,max-stall=off,max-stall-ttft=off,max-stall-gap=off,max-gc-pause=off,max-cpu=off")
		if got := setsColour.FindString(text); got != "" {
			t.Errorf("%v: a colour, %q", c.env, got)
		}
		if strings.Contains(text, "\x1b") != c.codes || c.codes && !strings.Contains(text, "of 60 (") {
			t.Errorf("%v: codes %v, want %v\n%q", c.env, !c.codes, c.codes, text)
		}
	}
}
