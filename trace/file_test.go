package trace

import (
	"path/filepath"
	"strings"
	"testing"
)

// An error in writing, as of a full disk, names the file.
func TestFileErrorsNameIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	file, err := CreateFile(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	file.f.Close()
	_, written := file.Write([]byte("x"))
	for what, err := range map[string]error{"writing": written, "committing": file.Commit()} {
		if err == nil || !strings.Contains(err.Error(), "t.parquet") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
