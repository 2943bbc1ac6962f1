package flags

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// Whatever a run file holds, it sets flags or is refused with its name in front.
func FuzzRunFile(f *testing.F) {
	for _, text := range []string{"rate: 5\n", "concurrency: 10k\nduration: 5 min\n", "gpus: [1, 2]\n", "url:\n  - http://a\n  - http://b\n", "rat: 5", "rate: {a: b}", "- a", "rate: !x y", "", "a: &a b\nc: *a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cmd, _ := numberFlags()
		c := configuration{cmd: cmd, given: map[string]bool{}}
		err := c.read("run.yaml", []byte(text), "a run file", func(*pflag.Flag) bool { return true })
		if err != nil && !strings.HasPrefix(err.Error(), "run.yaml:") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
