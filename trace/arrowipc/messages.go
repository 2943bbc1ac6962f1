// Package arrowipc reads the messages of Arrow IPC from files that may be damaged or hostile. The
// reader of Arrow's own library makes slices of any length that the metadata of a message says, so
// that a file of some bytes could end the process for want of memory: here no vector is longer
// than the metadata that holds it, and a body takes memory as it comes.
//
// # Files
//
//   - messages.go: the messages, with checks of their metadata
//   - memory.go: the memory that their batches unpack to
package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

const (
	maxMetadata = 16 << 20 // bytes; a column takes some hundred
	maxFields   = 1 << 16
)

var errMessage = errors.New("a message of it is damaged")

// messages implements [ipc.MessageReader].
type messages struct {
	in       io.Reader
	most     int // bytes of a body
	unpacked *boundedMemory
}

// NewReader reads a stream of batches, each of so many bytes at the most. where turns the messages
// into others before they are decoded; nil leaves them as they are. Batches unpack to MaxBatch
// bytes, or less where most is less; where it is more, up to unpacks times what came. An error
// that ends with ErrBatch says that a batch was larger.
func NewReader(in io.Reader, most int, where func(ipc.MessageReader) ipc.MessageReader) (*ipc.Reader, error) {
	bounded := &boundedMemory{memory.DefaultAllocator, 0, min(most, MaxBatch)}
	var m ipc.MessageReader = &messages{in, most, bounded}
	if where != nil {
		m = where(m)
	}
	return ipc.NewReaderFromMessageReader(m, ipc.WithAllocator(bounded))
}

// Message implements [ipc.MessageReader].
func (a *messages) Message() (m *ipc.Message, err error) {
	defer func() {
		if recover() != nil { // by offsets that lead out of the metadata
			m, err = nil, errMessage
		}
	}()
	var length uint32
	if err := binary.Read(a.in, binary.LittleEndian, &length); err != nil {
		return nil, err
	}
	if length == 0xffffffff { // since Arrow 0.15
		if err := binary.Read(a.in, binary.LittleEndian, &length); err != nil {
			return nil, err
		}
	}
	if length == 0 {
		return nil, io.EOF
	}
	if length > maxMetadata {
		return nil, errMessage
	}
	meta := make([]byte, length)
	if _, err := io.ReadFull(a.in, meta); err != nil {
		return nil, err
	}
	size, err := bodyLength(meta)
	switch {
	case err != nil:
		return nil, err
	case size < 0:
		return nil, errMessage
	case size > int64(a.most):
		return nil, ErrBatch
	}
	var body bytes.Buffer
	if n, err := io.CopyN(&body, a.in, size); err != nil {
		return nil, fmt.Errorf("it ends %d bytes before the end of a batch: %w", size-n, io.ErrUnexpectedEOF)
	}
	if a.most > MaxBatch {
		a.unpacked.most = max(MaxBatch, unpacks*int(size))
	}
	return ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body.Bytes())), nil
}

// Retain implements [ipc.MessageReader].
func (a *messages) Retain() {}

// Release implements [ipc.MessageReader].
func (a *messages) Release() {}

// bodyLength checks the metadata of a message and returns the length of its body in bytes.
// Slots are those of Message.fbs and Schema.fbs in Arrow's format folder: 4 is the first
// field of a table, 6 the second.
func bodyLength(meta []byte) (int64, error) {
	message := flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	kind := message.GetByteSlot(6, 0)
	header, ok := tableIn(message, 8)
	sound := true
	const schema, dictionary, batch = 1, 2, 3
	switch {
	case !ok:
	case kind == schema:
		fields := 0
		sound = vectorFits(header, 8, 4) && fieldsFit(header, 6, &fields, 0)
	case kind == dictionary:
		if header, ok = tableIn(header, 6); !ok {
			break
		}
		fallthrough
	case kind == batch:
		rows := header.GetInt64Slot(4, 0)
		sound = rows >= 0 && rows <= MaxBatch && vectorFits(header, 6, 16) && vectorFits(header, 8, 16) &&
			vectorFits(header, 12, 8)
	}
	if !sound {
		return 0, errMessage
	}
	return message.GetInt64Slot(10, 0), nil
}

// fieldsFit checks fields and those below them, which may not be without end.
func fieldsFit(t flatbuffers.Table, slot flatbuffers.VOffsetT, seen *int, depth int) bool {
	if depth > 64 || !vectorFits(t, slot, 4) {
		return false
	}
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return true
	}
	for i := range t.VectorLen(o) {
		if *seen++; *seen > maxFields {
			return false
		}
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Vector(o) + flatbuffers.UOffsetT(4*i))}
		if !vectorFits(field, 16, 4) || !fieldsFit(field, 14, seen, depth+1) {
			return false
		}
	}
	return true
}

// vectorFits says whether a vector of elements of so many bytes fits the metadata.
func vectorFits(t flatbuffers.Table, slot flatbuffers.VOffsetT, size int) bool {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	return o == 0 || uint64(t.VectorLen(o))*uint64(size) <= uint64(len(t.Bytes))
}

// tableIn is the table that stands in a slot of another.
func tableIn(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return flatbuffers.Table{}, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + o)}, true
}
