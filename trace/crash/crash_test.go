package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A panic of any goroutine ends the process as the program says, with the place and without the
// words of the panic, which may be a prompt's.
func TestPanicOfAGoroutine(t *testing.T) {
	if kind := os.Getenv("REPRISE_TEST_PANIC"); kind != "" {
		Handle(func(words string) {
			fmt.Fprintln(os.Stderr, "ended:", words)
			os.Exit(1)
		})
		go func() {
			defer Caught()
			if none := []int(nil); kind == "index" {
				none[len(kind)]++
			}
			panic("a word of a prompt")
		}()
		select {}
	}
	for kind, want := range map[string]string{"index": "index out of range [5] with length 0", "text": "string"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestPanicOfAGoroutine$")
		cmd.Env = append(os.Environ(), "REPRISE_TEST_PANIC="+kind)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s: %v", kind, err)
		}
		said := string(out)
		if !strings.Contains(said, "TestPanicOfAGoroutine") || !strings.Contains(said, want) || strings.Contains(said, "a word of a prompt") {
			t.Errorf("%s: it said %s", kind, said)
		}
	}
}

// Without a function that ends the process the panic goes on, so that tests fail with its words.
func TestPanicGoesOn(t *testing.T) {
	defer func() {
		if got := recover(); got != "on" {
			t.Errorf("recovered %v", got)
		}
	}()
	defer Caught()
	panic("on")
}
