package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"reprise/trace"
)

// confineIn in the environment has the test binary confine itself and try what it
// must not.
const confineIn = "REPRISE_TEST_CONFINE_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(confineIn); dir != "" {
		confineTried(dir)
		return
	}
	os.Exit(m.Run())
}

// A tried thing and the error that it gave, "" for none.
type tried struct {
	Status Status
	Errors map[string]string
}

func confineTried(dir string) {
	path := func(name string) string { return filepath.Join(dir, name) }
	out := tried{Errors: map[string]string{}}
	try := func(what string, err error) {
		out.Errors[what] = ""
		var errno syscall.Errno
		switch {
		case errors.As(err, &errno):
			out.Errors[what] = unix.ErrnoName(errno)
		case err != nil:
			out.Errors[what] = err.Error()
		}
	}
	// Threads that run before it are confined too.
	ready, hold, answer := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		fd := make([]int, 2)
		if err := unix.Pipe(fd); err != nil {
			panic(err)
		}
		go func() { <-hold; unix.Write(fd[1], []byte{0}) }()
		close(ready)
		unix.Read(fd[0], make([]byte, 1)) // blocks a thread of its own
		_, err := os.ReadFile(path("other"))
		answer <- err
	}()
	<-ready

	out.Status = Process(Paths{Read: []string{path("in"), path("inputs"), path("absent")}, Write: []string{path("out/o"), "/dev/null"}, Temp: path("tmp")})
	close(hold)
	try("read other in old thread", <-answer)
	for _, family := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, unix.AF_PACKET, unix.AF_NETLINK} {
		_, err := unix.Socket(family, unix.SOCK_STREAM, 0)
		try(fmt.Sprint("socket ", family), err)
	}
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	try("io_uring", errno)
	var err error
	try("exec", exec.Command("/bin/true").Run())
	_, err = unix.Write(3, []byte("x")) // a socket that was handed over
	try("write to a socket", err)
	_, err = unix.Write(4, []byte("x")) // and a pipe
	try("write to a pipe", err)
	read := func(name string) { _, err := os.ReadFile(path(name)); try("read "+name, err) }
	write := func(name string) { try("write "+name, os.WriteFile(path(name), []byte("x"), 0o600)) }
	read("in")
	read("inputs/a")
	read("other")
	read("absent")
	write("new")
	write("in")
	write("inputs/a")
	write("out/new")
	for _, name := range []string{"first", "again"} { // made, and then put in place of another
		try("output "+name, trace.WriteFile(path("out/o"), 0o600, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }))
	}
	try("output null", os.WriteFile("/dev/null", []byte("x"), 0o600))
	var f *os.File
	f, err = trace.TempFile(path("tmp"))
	try("spill", err)
	if err == nil {
		_, err = f.Write([]byte("x"))
		try("spill", err)
	}
	_, err = os.ReadDir(dir)
	try("list", err)
	json.NewEncoder(os.Stdout).Encode(out)
}

// confineTry runs it in a process of its own: this test without cgo, as the
// program is released, so that all threads are reached.
func confineTry(t *testing.T, dir string) tried {
	t.Helper()
	self := filepath.Join(t.TempDir(), "confine.test")
	build := exec.Command("go", "test", "-c", "-o", self, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), confineIn+"="+dir)
	cmd.Stderr = os.Stderr
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{os.NewFile(uintptr(pair[0]), "socket"), w, os.NewFile(uintptr(pair[1]), "its other end"), r} {
		defer f.Close()
		if len(cmd.ExtraFiles) < 2 {
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	b, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out tried
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"out", "tmp", "inputs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"in", "inputs/a", "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := confineTry(t, dir)
	t.Logf("%+v", got.Status)
	if got.Status.CoreDumps != "off" {
		t.Errorf("core dumps: %s", got.Status.CoreDumps)
	}
	expect := func(want string, what ...string) {
		t.Helper()
		for _, w := range what {
			if err, ok := got.Errors[w]; !ok || err != want {
				t.Errorf("%s: %q, want %q", w, err, want)
			}
		}
	}
	if strings.HasPrefix(got.Status.Network, NotAvailable) {
		t.Logf("the network is not tested: %s", got.Status.Network)
	} else {
		expect("EPERM", "socket 1", "socket 2", "socket 10", "socket 16", "socket 17", "io_uring", "exec")
		expect("EBADF", "write to a socket")
	}
	expect("", "write to a pipe", "read in", "read inputs/a", "write out/new", "output first", "output again", "output null", "spill")
	expect("ENOENT", "read absent")
	if strings.HasPrefix(got.Status.Files, NotAvailable) {
		t.Skipf("the files are not tested: %s", got.Status.Files)
	}
	expect("EACCES", "read other", "read other in old thread", "write new", "write in", "write inputs/a", "list")
}
