package trace_test

import (
	"os"
	"path/filepath"
	"testing"

	"reprise/trace"
)

// Real records are their owner's alone, whatever stood in their place.
func TestModeFollowsTier(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	for _, c := range []struct {
		tier string
		mode os.FileMode
	}{{"", 0o644}, {"internal", 0o600}, {"public", 0o644}, {"partner", 0o600}, {"unheard of", 0o600}} {
		err := trace.Create(path, func(trace.Writer[trace.Request]) (trace.Meta, error) { return trace.Meta{Tier: c.tier}, nil })
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || os.PathSeparator == '/' && info.Mode().Perm() != c.mode {
			t.Errorf("tier %q: %v, %v", c.tier, info.Mode(), err)
		}
	}
}
