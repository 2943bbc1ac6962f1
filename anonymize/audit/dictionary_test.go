package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"reflect"
	"testing"

	"github.com/cespare/xxhash/v2"

	"reprise/trace/block"
)

func TestCut(t *testing.T) {
	for n, want := range map[int][][]uint32{
		1: {{1}}, 2: {{1, 2}}, 3: {{1, 2}, {3}}, 4: {{1, 2}, {3, 4}}, 5: {{1, 2}, {3, 4}, {5}},
	} {
		if got := cut([]uint32{1, 2, 3, 4, 5}[:n], 2); !reflect.DeepEqual(got, want) {
			t.Errorf("%d tokens: %v, want %v", n, got, want)
		}
	}
}

// A digest may be cut to its first or last 64 bits, in either order of bytes.
func TestDigestsAreCut(t *testing.T) {
	d := &dictionary{ids: map[uint64]string{}}
	d.digest("x", []byte{1, 2, 3, 4, 5, 6, 7, 8, 99, 11, 12, 13, 14, 15, 16, 17, 18})
	want := map[uint64]string{0x0102030405060708: "x", 0x0807060504030201: "x", 0x0b0c0d0e0f101112: "x", 0x1211100f0e0d0c0b: "x"}
	if !maps.Equal(d.ids, want) {
		t.Errorf("%x, want %x", d.ids, want)
	}
}

// The dictionary holds the ids of every scheme for each block, chained and by itself,
// and for the beginning of a chain that is known; and no other id.
func TestDictionaryOfTwoBlocks(t *testing.T) {
	tokens := []uint32{5, 300, 70_000} // a block of two and the rest
	var key block.Key
	copy(key[:], "secret")
	d := &dictionary{ids: map[uint64]string{}, weak: []block.Key{key}, plain: []string{"secret"}}
	d.add("o200k_base", 2, tokens)
	want := map[uint64]string{}
	word := func(b []byte, at int) uint64 { return binary.BigEndian.Uint64(b[at:]) }
	expect := func(scheme string, sum []byte) { // by two of its four words
		want[word(sum, 0)], want[word(sum, len(sum)-8)] = scheme, scheme
	}
	first, rest := []byte{5, 0, 0, 0, 44, 1, 0, 0}, []byte{0x70, 0x11, 1, 0}
	simple := func(scheme string, of func(b []byte) []byte) {
		one := of(first)
		expect(scheme, one)
		expect(scheme, of(append(append([]byte{}, one...), rest...)))
		expect(scheme, of(rest))
	}
	simple("SHA-256", sum256)
	simple("HMAC of a weak key", func(b []byte) []byte {
		m := hmac.New(sha256.New, []byte("secret"))
		m.Write(b)
		return m.Sum(nil)
	})
	simple("xxh64", func(b []byte) []byte { return binary.LittleEndian.AppendUint64(nil, xxhash.Sum64(b)) })
	simple("SipHash of a zero key", func(b []byte) []byte { return binary.LittleEndian.AppendUint64(nil, sipHash(0, 0, b)) })
	for _, root := range [][]byte{nil, make([]byte, 32), sum256([]byte("\x610")), sum256([]byte("\x60")), sum256([]byte("\x6242"))} {
		head := []byte{0x83, 0xf6}
		if root != nil {
			head = append([]byte{0x83, 0x58, 32}, root...)
		}
		one := sum256(append(head, 0x82, 5, 0x19, 1, 44, 0xf6))
		expect("vLLM CBOR SHA-256", one)
		two := sum256(append(append([]byte{0x83, 0x58, 32}, one...), 0x81, 0x1a, 0, 1, 0x11, 0x70, 0xf6))
		expect("vLLM CBOR SHA-256", two)
	}
	h, err := block.NewHasher(key, "o200k_base", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range []block.ID{h.Root("", "", ""), h.Root()} {
		c := h.Cutter(root)
		c.Write(tokens)
		ids := c.Append(nil)
		if len(ids) != 2 {
			t.Fatalf("%d ids", len(ids))
		}
		for _, id := range ids {
			expect("own ids of a weak key", id[:])
		}
	}
	for id, scheme := range want {
		if d.ids[id] != scheme {
			t.Errorf("%x is of %q, want %q", id, d.ids[id], scheme)
		}
		delete(d.ids, id)
	}
	for id := range d.ids { // the other two words have their bytes the other way round
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], id)
		if want[binary.BigEndian.Uint64(b[:])] == "" {
			t.Errorf("%x is of %q and of nothing known", id, d.ids[id])
		}
	}
}

// Numbers at the bounds of what CBOR writes in one, two, three, five and nine bytes.
func TestCBORHeads(t *testing.T) {
	for n, want := range map[uint64]string{0: "\x40", 23: "\x57", 24: "\x58\x18", 255: "\x58\xff", 256: "\x59\x01\x00", 65535: "\x59\xff\xff",
		65536: "\x5a\x00\x01\x00\x00", 1<<32 - 1: "\x5a\xff\xff\xff\xff", 1 << 32: "\x5b\x00\x00\x00\x01\x00\x00\x00\x00"} {
		if got := string(cborHead(nil, 2, n)); got != want {
			t.Errorf("%d: %x, want %x", n, got, want)
		}
	}
}
