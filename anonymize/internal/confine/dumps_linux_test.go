package confine

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// noDumpsIn in the environment has the test binary switch core dumps off, and say so.
const noDumpsIn = "REPRISE_TEST_NO_DUMPS"

func init() {
	if os.Getenv(noDumpsIn) == "" {
		return
	}
	err := NoDumps()
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_CORE, &limit)
	fmt.Print(err, dumpable, limit.Cur, limit.Max)
	os.Exit(0)
}

// A process that switched core dumps off has none, by the limit and by a pipe.
func TestNoDumps(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), noDumpsIn+"=1")
	if out, err := cmd.Output(); err != nil || string(out) != "<nil> 0 0 0" {
		t.Errorf("%s, %v", out, err)
	}
}
