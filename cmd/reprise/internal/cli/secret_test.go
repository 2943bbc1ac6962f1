package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A secret that everybody may read is refused, and not quoted; one that a group may read, as
// it is mounted into a pod, is taken.
func TestReadSecret(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(" sk-1234\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o440: true, 0o640: true, 0o644: false, 0o604: false, 0o602: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadSecret("--api-key-file", path)
		if ok && (got != "sk-1234" || err != nil) || !ok && (got != "" || err == nil || !strings.Contains(err.Error(), "--api-key-file "+path+": everybody") || strings.Contains(err.Error(), "1234")) {
			t.Errorf("mode %o: %q, %v", mode, got, err)
		}
	}
}
