package datasets

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	flatbuffers "github.com/google/flatbuffers/go"
)

// arrowMessages reads the messages of an Arrow stream. The reader of package ipc makes
// slices of any length that their metadata says, so that a damaged file could end the
// process for want of memory: here no vector is longer than the metadata that holds it,
// and a body takes memory as it comes.
type arrowMessages struct {
	in       *bufio.Reader
	most     int // bytes of a body
	unpacked *boundedMemory
}

const (
	maxArrowMetadata = 16 << 20 // bytes; a column takes some hundred
	maxArrowFields   = 1 << 16
)

var errArrowMessage = errors.New("a message of it is damaged")

// Message implements [ipc.MessageReader].
func (a *arrowMessages) Message() (m *ipc.Message, err error) {
	defer func() {
		if recover() != nil { // by offsets that lead out of the metadata
			m, err = nil, errArrowMessage
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
	if length > maxArrowMetadata {
		return nil, errArrowMessage
	}
	meta := make([]byte, length)
	if _, err := io.ReadFull(a.in, meta); err != nil {
		return nil, err
	}
	size, err := arrowBody(meta)
	switch {
	case err != nil:
		return nil, err
	case size < 0:
		return nil, errArrowMessage
	case size > int64(a.most):
		return nil, errArrowBatch
	}
	var body bytes.Buffer
	if n, err := io.CopyN(&body, a.in, size); err != nil {
		return nil, fmt.Errorf("it ends %d bytes before the end of a batch: %w", size-n, io.ErrUnexpectedEOF)
	}
	if a.most > maxArrowBatch {
		a.unpacked.most = max(maxArrowBatch, arrowUnpacks*int(size))
	}
	return ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body.Bytes())), nil
}

// Retain implements [ipc.MessageReader].
func (a *arrowMessages) Retain() {}

// Release implements [ipc.MessageReader].
func (a *arrowMessages) Release() {}

// arrowBody checks the metadata of a message and returns the length of its body in bytes.
// Slots are those of Message.fbs and Schema.fbs in Arrow's format folder: 4 is the first
// field of a table, 6 the second.
func arrowBody(meta []byte) (int64, error) {
	message := flatbuffers.Table{Bytes: meta, Pos: flatbuffers.GetUOffsetT(meta)}
	kind := message.GetByteSlot(6, 0)
	header, ok := arrowTable(message, 8)
	sound := true
	const schema, dictionary, batch = 1, 2, 3
	switch {
	case !ok:
	case kind == schema:
		fields := 0
		sound = arrowVector(header, 8, 4) && arrowFields(header, 6, &fields, 0)
	case kind == dictionary:
		if header, ok = arrowTable(header, 6); !ok {
			break
		}
		fallthrough
	case kind == batch:
		rows := header.GetInt64Slot(4, 0)
		sound = rows >= 0 && rows <= maxArrowBatch && arrowVector(header, 6, 16) && arrowVector(header, 8, 16) && arrowVector(header, 12, 8)
	}
	if !sound {
		return 0, errArrowMessage
	}
	return message.GetInt64Slot(10, 0), nil
}

// arrowFields checks fields and those below them, which may not be without end.
func arrowFields(t flatbuffers.Table, slot flatbuffers.VOffsetT, seen *int, depth int) bool {
	if depth > 64 || !arrowVector(t, slot, 4) {
		return false
	}
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return true
	}
	for i := range t.VectorLen(o) {
		if *seen++; *seen > maxArrowFields {
			return false
		}
		field := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Vector(o) + flatbuffers.UOffsetT(4*i))}
		if !arrowVector(field, 16, 4) || !arrowFields(field, 14, seen, depth+1) {
			return false
		}
	}
	return true
}

// arrowVector says whether a vector of elements of so many bytes fits the metadata.
func arrowVector(t flatbuffers.Table, slot flatbuffers.VOffsetT, size int) bool {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	return o == 0 || uint64(t.VectorLen(o))*uint64(size) <= uint64(len(t.Bytes))
}

// arrowTable is the table that stands in a slot of another.
func arrowTable(t flatbuffers.Table, slot flatbuffers.VOffsetT) (flatbuffers.Table, bool) {
	o := flatbuffers.UOffsetT(t.Offset(slot))
	if o == 0 {
		return flatbuffers.Table{}, false
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.Pos + o)}, true
}
