package audit

import (
	"encoding/hex"
	"path/filepath"
	"testing"

	"reprise/trace"
	"reprise/trace/block"
	"reprise/trace/longtest"
	"reprise/trace/token"
)

// The vector of the SipHash paper, and the first ones of its reference code.
func TestSipHash(t *testing.T) {
	const k0, k1 = 0x0706050403020100, 0x0f0e0d0c0b0a0908
	in := make([]byte, 15)
	for i := range in {
		in[i] = byte(i)
	}
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5} {
		if got := sipHash(k0, k1, in[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// Canonical CBOR, by the examples of RFC 8949, appendix A.
func TestCBOR(t *testing.T) {
	for want, got := range map[string][]byte{
		"83f683010203f6":           cborBlock(nil, []uint32{1, 2, 3}),
		"8342010281190100f6":       cborBlock([]byte{1, 2}, []uint32{256}),
		"6130":                     cborText("0"),
		"83f6821818 1a000f4240f6":  cborBlock(nil, []uint32{24, 1000000}),
		"83f6811bffffffffffffffff": append([]byte{0x83, 0xf6}, cborHead([]byte{0x81}, 0, 1<<64-1)...),
	} {
		clean := ""
		for _, c := range want {
			if c != ' ' {
				clean += string(c)
			}
		}
		if hex.EncodeToString(got) != clean {
			t.Errorf("%x, want %s", got, clean)
		}
	}
}

// Ids that were computed of a known text without a key, or with a weak one, are
// recognised whatever the scheme.
func TestIDsOfKnownText(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	const size = 4
	tokens := tok.Append(nil, publicGuesses[2])
	chain := func(of func(parent []byte, part []uint32) []byte) []uint64 {
		var ids []uint64
		var parent []byte
		for _, part := range cut(tokens, size) {
			parent = of(parent, part)
			id := uint64(0)
			for _, c := range parent[:8] {
				id = id<<8 | uint64(c)
			}
			ids = append(ids, id)
		}
		return ids
	}
	bytesOf := func(p []byte, part []uint32) []byte {
		b := append([]byte{}, p...)
		for _, t := range part {
			b = append(b, byte(t), byte(t>>8), byte(t>>16), byte(t>>24))
		}
		return b
	}
	var key block.Key
	copy(key[:], "hunter2")
	h, err := block.NewHasher(key, tok.Name(), size)
	if err != nil {
		t.Fatal(err)
	}
	c := h.Cutter(h.Root("", "", ""))
	c.Write(tokens)
	var own []uint64
	for _, id := range c.Append(nil) {
		n := uint64(0)
		for _, b := range id[:8] {
			n = n<<8 | uint64(b)
		}
		own = append(own, n)
	}
	for name, ids := range map[string][]uint64{
		"SHA-256": chain(func(p []byte, part []uint32) []byte { return sum256(bytesOf(p, part)) }),
		"SipHash": chain(func(p []byte, part []uint32) []byte {
			n := sipHash(0, 0, bytesOf(p, part))
			return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32), byte(n >> 40), byte(n >> 48), byte(n >> 56)}
		}),
		"vLLM": chain(func(p []byte, part []uint32) []byte { return sum256(cborBlock(p, part)) }),
		"own":  own,
	} {
		f := idsOf(t, ids)
		if f.Status != Fail || f.Figures["hits"] == 0 {
			t.Errorf("%s: %s: %s %v", name, f.Status, f.Why, f.Figures)
		}
	}
	for _, c := range []struct {
		ids  []uint64
		want Status
	}{{[]uint64{0, 1, 2, 1}, Pass}, {[]uint64{1, 0}, Fail}, {[]uint64{0, 2}, Fail}, {nil, Pass}} {
		if f := idsOf(t, c.ids); f.Status != c.want {
			t.Errorf("%v: %s: %s", c.ids, f.Status, f.Why)
		}
	}
}

// idsOf is what the check finds of a trace with one row of such ids.
func idsOf(t *testing.T, ids []uint64) Finding {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{{InputTokens: int32(4 * len(ids)), Blocks: ids, Status: trace.StatusOK}})
		return trace.Meta{BlockSize: 4, Tokenizer: "o200k_base", Tier: "partner"}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := OpenOutput(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	return found(t, &Case{Output: o}, "ids")["ids"]
}
