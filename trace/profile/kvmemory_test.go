package profile_test

import (
	"strings"
	"testing"

	"reprise/trace/profile"
)

func TestModelShapes(t *testing.T) {
	// 2 × 32 × 8 × 128 × 2 = 128 KiB and so on; DeepSeek-V3 is 61 × 576 × 2.
	for text, want := range map[string]int64{
		"llama-3-8b": 128 << 10, "Llama-3-70B": 320 << 10, "llama-3.1-405b": 504 << 10, "llama-2-7b": 512 << 10,
		"qwen2.5-7b": 56 << 10, "qwen2.5-72b": 320 << 10, "qwen3-32b": 256 << 10, "deepseek-v3": 70_272,
		"llama-3-8b,bytes=1":                               64 << 10,
		"layers=32,kv_heads=8,head_dim=128":                128 << 10,
		" layers = 32 , kv_heads=8,head_dim=128, bytes=1 ": 64 << 10,
		"layers=61,latent=576,bytes=2":                     70_272,
	} {
		shape, err := profile.ParseModelShape(text)
		if err != nil || shape.KVBytesPerToken() != want {
			t.Errorf("%s takes %d bytes a token, %v; want %d", text, shape.KVBytesPerToken(), err, want)
		}
	}
	for _, name := range profile.ModelShapes() {
		if shape, err := profile.ParseModelShape(name); err != nil || shape.KVBytesPerToken() < 10_000 || shape.KVBytesPerToken() > 1<<20 {
			t.Errorf("%s takes %d bytes a token, %v", name, shape.KVBytesPerToken(), err)
		}
	}
	for _, text := range []string{"", "gpt-4", "llama-3-8b,layers=3", "layers=32", "layers=32,kv_heads=8", "kv_heads=8,head_dim=128",
		"layers=0,kv_heads=8,head_dim=128", "layers=x,kv_heads=8,head_dim=128", "layers=2,kv_heads=8,head_dim=128,latent=5",
		"layers=2,latent=5,head_dim=0", "layers=2,latent=5,width=3", "layers=1000000,kv_heads=1000000,head_dim=1000000", "layers=2,,latent=5"} {
		if shape, err := profile.ParseModelShape(text); err == nil {
			t.Errorf("%q is taken as %+v", text, shape)
		}
	}
}

func TestCacheSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"10000": 10_000, "1": 1, "1Mtok": 1953, "1.5mtok": 2929, "500 ktok": 976, "512tok": 1, "511tok": 0,
		"40GiB": 640, "1TiB": 16384, "64MiB": 1, "0.5GiB": 8, " 40 gib ": 640,
	} {
		size, err := profile.ParseCacheSize(text)
		if got := size.Blocks(512, 128<<10); err != nil || got != want {
			t.Errorf("%q is %d blocks, %v; want %d", text, got, err, want)
		}
		if size.NeedsKVBytes() != strings.Contains(strings.ToLower(text), "ib") {
			t.Errorf("%q needs the memory of a token: %v", text, size.NeedsKVBytes())
		}
	}
	for _, text := range []string{"", "x", "GiB", "-1", "0", "0GiB", "40GB", "NaN", "Inf", "1e300", "1e-9tok", "10 blocks of 3"} {
		if _, err := profile.ParseCacheSize(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	size, _ := profile.ParseCacheSize("40GiB")
	if size.Blocks(512, 0) != 0 || size.Blocks(0, 1) != 0 {
		t.Error("memory is told in blocks of unknown size")
	}
}

// FuzzMemoryFlags holds that no text of a flag panics or gives what cannot be.
func FuzzMemoryFlags(f *testing.F) {
	for _, seed := range []string{"llama-3-8b,bytes=1", "layers=61,latent=576", "40GiB", "1.5Mtok", "1e18tib"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shape, err := profile.ParseModelShape(text)
		if n := shape.KVBytesPerToken(); err == nil && (n < 1 || n > profile.MaxKVBytesPerToken) {
			t.Errorf("%d bytes a token", n)
		}
		size, err := profile.ParseCacheSize(text)
		for _, kvBytes := range []int64{1, 70_272, profile.MaxKVBytesPerToken} {
			if n := size.Blocks(16, kvBytes); err == nil && n < 0 {
				t.Errorf("%d blocks", n)
			}
		}
	})
}

// With the memory of a token every point of a curve has its GiB, and there are
// round ones; all equal a direct simulation of each capacity.
func TestCurveInGiB(t *testing.T) {
	s := shapes["everything"]
	rows := generate(161, 400, s)
	kvBytes := int64(64 << 20) // so that a GiB is 16 tokens
	u := reuseOf(rows, s.block, profile.ReuseOptions{KVBytesPerToken: kvBytes})
	for generated, sum := range map[bool]profile.ReuseSummary{false: u.Summary(), true: *u.WithGenerated()} {
		checkReuse(t, sum, rows, int64(s.block), generated)
		rounds := 0
		for i, p := range sum.LRUCurve[:len(sum.LRUCurve)-1] {
			gib := float64(*p.CapacityTokens) * float64(kvBytes) / (1 << 30)
			if p.CapacityGiB == nil || *p.CapacityGiB < gib || *p.CapacityGiB >= gib+1.0/16 {
				t.Fatalf("%d tokens are %v GiB; want about %v", *p.CapacityTokens, p.CapacityGiB, gib)
			}
			if *p.CapacityGiB == 1 || *p.CapacityGiB == 20 || *p.CapacityGiB == 50 {
				rounds++
			}
			if q := sum.Steady.LRUCurve[i]; *q.CapacityGiB != *p.CapacityGiB {
				t.Errorf("point %d has another memory in steady state", i)
			}
		}
		if rounds != 3 || sum.LRUCurve[len(sum.LRUCurve)-1].CapacityGiB != nil {
			t.Errorf("%d of 3 round capacities in GiB", rounds)
		}
		if p := sum.LRUCurveDense[3]; *p.CapacityGiB != float64(*p.CapacityTokens)/16 {
			t.Errorf("a dense point: %d tokens are %v GiB", *p.CapacityTokens, *p.CapacityGiB)
		}
	}
	if p := reuseOf(rows, s.block, profile.ReuseOptions{}).Summary().LRUCurve[0]; p.CapacityGiB != nil {
		t.Error("without the memory of a token there are GiB")
	}
}
