package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A capacity is a size of cache: whole blocks, and the memory in tokens that
// they fit into. A paged KV cache gives a partial block the room of a whole one.
// gib is the memory in GiB when it is a round number of these, and otherwise 0.
type capacity struct{ blocks, tokens, gib int64 }

const maxBlocks = 1 << 32

// inGiB is the memory of the capacity, or nil where that of a token is unknown.
func (c capacity) inGiB(kvBytes int64) *float64 {
	if c.gib > 0 {
		return new(float64(c.gib))
	}
	return inGiB(c.tokens, kvBytes)
}

// ofBlocks is the capacity of so many blocks. Its tokens are 0, unknown, with a
// size below 1, or one with which an int64 does not hold them.
func ofBlocks(blocks int64, size int) capacity {
	if size < 1 || blocks > math.MaxInt64/int64(size) {
		return capacity{blocks: blocks}
	}
	return capacity{blocks: blocks, tokens: blocks * int64(size)}
}

// listedCapacities lists, in ascending order, every capacity at which the LRU
// curve may be printed: 1k, 2k, 5k and so on blocks, with 30k between, and 1M,
// 2M, 5M and so on tokens, rounded down to whole blocks; and when
// the memory of a token is known, 1, 2, 5 and so on GiB. Block numbers have 32
// bits, so nothing needs a larger cache than the last.
func listedCapacities(size int, kvBytes int64) []capacity {
	var list []capacity
	for _, n := range roundNumbers(1000, maxBlocks) {
		list = append(list, ofBlocks(n, size))
		if n == 20_000 {
			list = append(list, ofBlocks(30_000, size))
		}
	}
	if size >= 1 {
		most := min(maxBlocks, math.MaxInt64/10/int64(size)) * int64(size)
		for _, n := range roundNumbers(1_000_000, most) {
			list = append(list, capacity{blocks: n / int64(size), tokens: n})
		}
	}
	for _, n := range roundNumbers(1, 1<<32) {
		if size < 1 || kvBytes < 1 {
			break
		}
		tokens := n * gib / kvBytes
		list = append(list, capacity{tokens / int64(size), tokens, n})
		if tokens/int64(size) >= maxBlocks {
			break
		}
	}
	slices.SortFunc(list, func(a, b capacity) int {
		return cmp.Or(cmp.Compare(a.blocks, b.blocks), cmp.Compare(a.tokens, b.tokens))
	})
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(c capacity) bool { return c.blocks == 0 })
}

// roundNumbers lists 1, 2 and 5 times each power of 10 from first, itself a power
// of 10, up to the first number that is at least most.
func roundNumbers(first, most int64) []int64 {
	var list []int64
	for decade := first; ; decade *= 10 {
		for _, m := range []int64{1, 2, 5} {
			list = append(list, m*decade)
			if m*decade >= most {
				return list
			}
		}
	}
}

// upTo returns the capacities up to the first that holds all blocks.
func upTo(list []capacity, unique int64) []capacity {
	for i, c := range list {
		if c.blocks >= unique {
			return list[:i+1]
		}
	}
	return list
}

// denseCapacities lists 20 capacities a decade from 1 block up to all of them.
func denseCapacities(unique int64, size int) []capacity {
	var list []capacity
	for i := 0; ; i++ {
		c := int64(math.Round(math.Pow(10, float64(i)/20)))
		if c >= unique {
			break
		}
		list = append(list, ofBlocks(c, size))
	}
	return slices.Compact(append(list, ofBlocks(max(unique, 1), size)))
}

const gib = 1 << 30

// A ModelShape is what the memory of a model's KV cache depends on. One token
// takes, over all layers,
//
//	2 × layers × KV heads × head dimension × bytes
//
// for its keys and values (grouped-query attention; with as many KV heads as
// heads it is plain multi-head attention), or, of a model with multi-head latent
// attention (DeepSeek-V2, arXiv:2405.04434), which keeps one compressed vector
// and one rotary key in place of both,
//
//	layers × (KV LoRA rank + rotary dimension) × bytes.
//
// It is the memory of all GPUs together; tensor parallelism over more GPUs than
// there are KV heads, or of latent attention, copies it.
type ModelShape struct {
	Layers, KVHeads, HeadDim int
	Latent                   int // KV LoRA rank + rotary dimension; 0 except for latent attention
	Bytes                    int // of one value: 2 for BF16 and FP16, 1 for FP8
}

// KVBytesPerToken is the memory of one token.
func (s ModelShape) KVBytesPerToken() int64 {
	if s.Latent > 0 {
		return int64(s.Layers) * int64(s.Latent) * int64(s.Bytes)
	}
	return 2 * int64(s.Layers) * int64(s.KVHeads) * int64(s.HeadDim) * int64(s.Bytes)
}

// modelShapes are from the config.json that each model is published with:
// num_hidden_layers, num_key_value_heads, head_dim; or kv_lora_rank and
// qk_rope_head_dim. Models that limit the attention of some layers to a window
// are left out: their cache does not grow with every token alike.
func modelShapes() map[string]ModelShape {
	return map[string]ModelShape{
		"llama-2-7b":      {Layers: 32, KVHeads: 32, HeadDim: 128},
		"llama-2-70b":     {Layers: 80, KVHeads: 8, HeadDim: 128},
		"llama-3-8b":      {Layers: 32, KVHeads: 8, HeadDim: 128},
		"llama-3-70b":     {Layers: 80, KVHeads: 8, HeadDim: 128},
		"llama-3.1-8b":    {Layers: 32, KVHeads: 8, HeadDim: 128},
		"llama-3.1-70b":   {Layers: 80, KVHeads: 8, HeadDim: 128},
		"llama-3.3-70b":   {Layers: 80, KVHeads: 8, HeadDim: 128},
		"llama-3.1-405b":  {Layers: 126, KVHeads: 8, HeadDim: 128},
		"mixtral-8x7b":    {Layers: 32, KVHeads: 8, HeadDim: 128},
		"mixtral-8x22b":   {Layers: 56, KVHeads: 8, HeadDim: 128},
		"qwen2.5-7b":      {Layers: 28, KVHeads: 4, HeadDim: 128},
		"qwen2.5-14b":     {Layers: 48, KVHeads: 8, HeadDim: 128},
		"qwen2.5-32b":     {Layers: 64, KVHeads: 8, HeadDim: 128},
		"qwen2.5-72b":     {Layers: 80, KVHeads: 8, HeadDim: 128},
		"qwen3-8b":        {Layers: 36, KVHeads: 8, HeadDim: 128},
		"qwen3-32b":       {Layers: 64, KVHeads: 8, HeadDim: 128},
		"qwen3-30b-a3b":   {Layers: 48, KVHeads: 4, HeadDim: 128},
		"qwen3-235b-a22b": {Layers: 94, KVHeads: 4, HeadDim: 128},
		"deepseek-v2":     {Layers: 60, Latent: 512 + 64},
		"deepseek-v3":     {Layers: 61, Latent: 512 + 64},
		"deepseek-r1":     {Layers: 61, Latent: 512 + 64},
		"kimi-k2":         {Layers: 61, Latent: 512 + 64},
	}
}

// ModelShapes lists the names that [ParseModelShape] knows.
func ModelShapes() []string {
	var names []string
	for name := range modelShapes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ParseModelShape reads the name of a model, or the fields of a shape with
// commas between: layers=32,kv_heads=8,head_dim=128, or layers=61,latent=576
// for latent attention. bytes=1 after either is for a cache of FP8; without it
// a value has 2 bytes.
func ParseModelShape(text string) (ModelShape, error) {
	parts := strings.Split(text, ",")
	shape, named := modelShapes()[strings.ToLower(strings.TrimSpace(parts[0]))]
	if named {
		parts = parts[1:]
	} else if !strings.Contains(parts[0], "=") {
		return shape, errors.New("it is not one of the models " + strings.Join(ModelShapes(), ", ") +
			"; for another model give layers=,kv_heads=,head_dim=")
	}
	shape.Bytes = 2
	fields := map[string]*int{"layers": &shape.Layers, "kv_heads": &shape.KVHeads, "head_dim": &shape.HeadDim,
		"latent": &shape.Latent, "bytes": &shape.Bytes}
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		field := fields[name]
		if field == nil || named && name != "bytes" {
			return shape, errors.New(
				"its fields are layers, kv_heads, head_dim, latent and bytes; after a name only bytes")
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 1 || n > 1<<20 {
			return shape, fmt.Errorf("%s is not a whole number from 1 to %d", name, 1<<20)
		}
		*field = n
	}
	if shape.Layers == 0 || (shape.KVHeads == 0 || shape.HeadDim == 0) == (shape.Latent == 0) {
		return shape, errors.New("give layers, kv_heads and head_dim, or layers and latent")
	}
	if shape.KVBytesPerToken() > MaxKVBytesPerToken {
		return shape, fmt.Errorf("a token would take more than %d bytes", int64(MaxKVBytesPerToken))
	}
	return shape, nil
}

// inGiB is the memory of so many tokens, or nil where that of one is unknown.
func inGiB(tokens, kvBytes int64) *float64 {
	if kvBytes < 1 {
		return nil
	}
	return new(float64(tokens) * float64(kvBytes) / gib)
}

// MaxKVBytesPerToken is how much a token of KV cache may take: 1 GiB, some thousand
// times that of the largest model so far.
const MaxKVBytesPerToken = gib

// A CacheSize is a size of cache as people name it.
type CacheSize struct {
	amount float64
	bytes  bool // else tokens, or blocks
	tokens bool
}

// cacheUnits are the units of a [CacheSize], by their names in lower case.
var cacheUnits = []struct {
	name  string
	scale float64
	bytes bool
}{{"mib", 1 << 20, true}, {"gib", gib, true}, {"tib", 1 << 40, true},

	{"mtok", 1e6, false}, {"ktok", 1e3, false}, {"tok", 1, false}}

// ParseCacheSize reads a number of blocks, such as 10000, of tokens, such as
// 500ktok or 1.5Mtok, or of bytes, such as 40GiB.
func ParseCacheSize(text string) (CacheSize, error) {
	number, size := strings.TrimSpace(text), CacheSize{}
	scale, lower := 1.0, strings.ToLower(number)
	for _, unit := range cacheUnits {
		if rest, ok := strings.CutSuffix(lower, unit.name); ok {
			number, scale, size.bytes, size.tokens = strings.TrimSpace(rest), unit.scale, unit.bytes, !unit.bytes
			break
		}
	}
	amount, err := strconv.ParseFloat(number, 64)
	size.amount = amount * scale
	if err != nil || !(size.amount >= 1 && size.amount < 1<<62) {
		return size, errors.New("it is not a number of blocks (10000), tokens (1Mtok) or memory (40GiB)")
	}
	return size, nil
}

// NeedsKVBytes tells whether the size is in bytes, so that its blocks depend on
// the memory of a token.
func (c CacheSize) NeedsKVBytes() bool { return c.bytes }

// Blocks is how many whole blocks of so many tokens fit. kvBytes is the memory
// of a token.
func (c CacheSize) Blocks(blockSize int, kvBytes int64) int64 {
	per := 1.0
	switch {
	case c.bytes:
		per = float64(blockSize) * float64(kvBytes)
	case c.tokens:
		per = float64(blockSize)
	}
	if !(per >= 1) {
		return 0
	}
	return int64(math.Min(c.amount/per, 1<<62))
}
