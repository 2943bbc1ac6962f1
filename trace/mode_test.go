package trace_test

import (
	"os"
	"path/filepath"
	"testing"

	"reprise/trace"
)

// What was made of a source is its owner's alone, whatever stood in its place.
func TestModeFollowsTier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	for _, c := range []struct {
		tier, source string
		mode         os.FileMode
	}{{"", "", 0o644}, {"internal", "csv", 0o600}, {"public", "csv", 0o600}, {"public", "spec", 0o644}, {"partner", "csv", 0o600},
		{"internal", "spec", 0o600}, {"unheard of", "csv", 0o600}} {
		err := trace.Create(path, func(trace.Writer[trace.Request]) (trace.Meta, error) {
			return trace.Meta{Tier: c.tier, SourceFormat: c.source}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != c.mode {
			t.Errorf("tier %q: %v, %v", c.tier, info.Mode(), err)
		}
	}
}
