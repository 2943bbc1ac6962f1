// Package picture makes synthetic PNG images as data URLs, each of its own, at the cost of
// one row of pixels.
package picture

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"

	"reprise/trace/sample"
)

// A Size is of pixels. Both are at least 1.
type Size struct{ Width, Height int }

// maxKept is how many bytes of rows that images share are kept, of all sizes together.
const maxKept = 64 << 20

// A Maker makes images. It is not for use by several goroutines at once.
//
// The first row of pixels is drawn from the seed, and stored as it is. The rows below are
// squares of 8 by 8 pixels, of a colour each, and the same in every image of a size. They
// are compressed once: at most 64 MiB of them are kept, and what was kept is dropped
// altogether beyond that.
type Maker struct {
	below map[Size]rows
	kept  int
	raw   []byte // scratch: the image as a file
	first []byte // the first row
}

// rows are those below the first, as a chunk of compressed data, and the checksum of their
// pixels.
type rows struct {
	chunk []byte
	adler uint32
	bytes int
}

const prefix = "data:image/png;base64,"

// AppendURL appends the data URL of an image. The same size and seed are the same image.
func (m *Maker) AppendURL(dst []byte, size Size, seed uint64) []byte {
	below, ok := m.below[size]
	if !ok {
		if m.kept > maxKept || m.below == nil {
			m.below, m.kept = map[Size]rows{}, 0
		}
		below = compressed(size)
		m.below[size] = below
		m.kept += len(below.chunk)
	}
	var head [13]byte
	binary.BigEndian.PutUint32(head[:], uint32(size.Width))
	binary.BigEndian.PutUint32(head[4:], uint32(size.Height))
	head[8], head[9] = 8, 2 // bits of a channel; red, green and blue
	m.raw = appendChunk(append(m.raw[:0], "\x89PNG\r\n\x1a\n"...), "IHDR", head[:])

	m.first = append(m.first[:0], 0x78, 0x01) // zlib without a dictionary
	// Stored blocks, of at most 65,535 bytes each.
	row := make([]byte, 1, 1+3*size.Width+8) // no filter
	for x := uint64(0); len(row) < 1+3*size.Width; x++ {
		row = binary.LittleEndian.AppendUint64(row, sample.Mix64(seed+x*sample.Golden))
	}
	row = row[:1+3*size.Width]
	for rest := row; len(rest) > 0; {
		n := min(len(rest), 65535)
		m.first = append(m.first, 0)
		m.first = binary.LittleEndian.AppendUint16(m.first, uint16(n))
		m.first = binary.LittleEndian.AppendUint16(m.first, ^uint16(n))
		m.first = append(m.first, rest[:n]...)
		rest = rest[n:]
	}
	m.raw = appendChunk(m.raw, "IDAT", m.first)
	m.raw = append(m.raw, below.chunk...)
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], joined(adler32.Checksum(row), below.adler, below.bytes))
	m.raw = appendChunk(m.raw, "IDAT", sum[:])
	m.raw = appendChunk(m.raw, "IEND", nil)
	return base64.StdEncoding.AppendEncode(append(dst, prefix...), m.raw)
}

// compressed makes the rows below the first.
func compressed(size Size) rows {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestSpeed) // an error is of the level alone
	sum := adler32.New()
	row := make([]byte, 1+3*size.Width)
	for y := 1; y < size.Height; y++ {
		for x := 0; x < size.Width && (y == 1 || y%8 == 0); x++ {
			colour := sample.Mix64(uint64(y/8)<<32 + uint64(x/8) + sample.Golden)
			row[1+3*x], row[2+3*x], row[3+3*x] = byte(colour), byte(colour>>8), byte(colour>>16)
		}
		_, _ = w.Write(row) // to memory
		_, _ = sum.Write(row)
	}
	_ = w.Close()
	return rows{appendChunk(nil, "IDAT", out.Bytes()), sum.Sum32(), (size.Height - 1) * len(row)}
}

// joined is the Adler-32 of two texts, the second of n bytes, from those of each.
func joined(a, b uint32, n int) uint32 {
	const mod = 65521
	a1, a2, b1, b2 := a&0xffff, a>>16, b&0xffff, b>>16
	one := (a1 + b1 + mod - 1) % mod
	two := (uint64(n%mod)*uint64(a1+mod-1) + uint64(a2) + uint64(b2)) % mod
	return uint32(two)<<16 | one
}

// appendChunk appends a chunk of a PNG file.
func appendChunk(dst []byte, kind string, data []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(data)))
	at := len(dst)
	dst = append(append(dst, kind...), data...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:]))
}
