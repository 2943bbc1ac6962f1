//go:build unix

package objectstore

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reprise/trace/bombtest"
)

// A named pipe is read from its first byte to its last whenever its writer comes, and is an error
// when none does.
func TestNamedPipes(t *testing.T) {
	for name, c := range map[string]struct {
		patience, after time.Duration // no writer comes after 0
		text            string
	}{
		"no writer": {50 * time.Millisecond, 0, ""}, "a late writer": {20 * time.Second, 100 * time.Millisecond, strings.Repeat("a", 1<<20)},
		"a writer of nothing": {20 * time.Second, 100 * time.Millisecond, ""},
	} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.after > 0 {
			go func() {
				time.Sleep(c.after)
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				if err != nil {
					return
				}
				defer f.Close()
				for i := 0; i < len(c.text); i += 1 << 16 { // in several pieces, with pauses between them
					_, _ = f.WriteString(c.text[i : i+1<<16])
					time.Sleep(time.Millisecond)
				}
			}()
		}
		var got []byte
		f, err := openWithin(path, c.patience)
		if err == nil {
			got, err = io.ReadAll(f)
			f.Close()
		}
		if (err != nil) != (c.after == 0) || string(got) != c.text {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if err != nil && !strings.Contains(err.Error(), path+": it is a pipe") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f, err := Open(os.DevNull); err != nil {
		t.Error(err)
	} else if n, err := f.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Error(n, err)
	}
}

func TestBoundsAreStated(t *testing.T) {
	bombtest.Stated(t, "../../SECURITY.md", fmt.Sprintf("| a pipe without a writer | %d s |", int(pipePatience.Seconds())))
}
