package arrowipc

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A batch holds so many bytes in memory, and unpacks times those that came where these are more,
// up to MaxPlainBatch as they come: pandas writes 65,536 rows into a batch. In an archive a few
// bytes bring as many as they like, so that there it is MaxBatch alone.
const (
	MaxBatch      = 128 << 20
	MaxPlainBatch = 1 << 30
	unpacks       = 4
)

// boundedMemory refuses what a damaged file asks for. The reader makes an error of it.
type boundedMemory struct {
	memory.Allocator
	used, most int // bytes
}

// ErrBatch says that a batch is larger than a reader takes.
var ErrBatch = errors.New("a batch of it is larger than 128 MiB, and than four times its size in the file, or than 1 " +
	"GiB: write smaller ones, such as with chunksize=100")

// Allocate implements [memory.Allocator].
func (m *boundedMemory) Allocate(size int) []byte {
	m.take(size)
	return m.Allocator.Allocate(size)
}

// Reallocate implements [memory.Allocator].
func (m *boundedMemory) Reallocate(size int, b []byte) []byte {
	m.take(size - len(b))
	return m.Allocator.Reallocate(size, b)
}

// Free implements [memory.Allocator].
func (m *boundedMemory) Free(b []byte) {
	m.used -= len(b)
	m.Allocator.Free(b)
}

func (m *boundedMemory) take(size int) {
	if m.used+size > m.most {
		panic(ErrBatch)
	}
	m.used += size
}
