package replay

import (
	"path/filepath"
	"reflect"
	"testing"

	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
)

// Results hold the environment, and those of versions without it are still read.
func TestEnvironmentInResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.parquet")
	env := &result.Environment{Host: host.This(), GPUs: []host.GPU{{Name: "A", Count: 2}}, Deployment: &result.Deployment{GPUs: 4}}
	if n := env.GPUCount(); n != 4 {
		t.Errorf("%d GPUs: what is said stands above what is found", n)
	}
	for _, want := range []*result.Environment{env, nil} {
		if err := result.Write(path, result.Run{Environment: want}, new(trace.SliceReader[result.Result])); err != nil {
			t.Fatal(err)
		}
		f, err := result.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(f.Run.Environment, want) {
			t.Errorf("%+v", f.Run.Environment)
		}
		f.Close()
	}
	if (*result.Environment)(nil).GPUCount() != 0 {
		t.Error("GPUs of no environment")
	}
}
