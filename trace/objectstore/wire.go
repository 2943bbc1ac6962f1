package objectstore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// FetchCommand is the argument by which a program starts itself as a fetch process.
const FetchCommand = "__fetch"

// The operations that a fetch process knows.
const (
	opStat   = "stat"   // of URL, an object or a folder: [message.Entries] has one
	opList   = "list"   // what is in the folder URL
	opRead   = "read"   // Size bytes of URL from Offset; Modified and Whole are those that were known
	opRemove = "remove" // the object URL
	opPut    = "put"    // begins to upload Size bytes as URL; the answer's ID is that of the upload
	opData   = "data"   // the next bytes of the upload Upload
	opCommit = "commit" // ends the upload Upload: the object appears
	opAbort  = "abort"  // drops the upload Upload
)

// A message is a request to a fetch process, or its answer, which has the same ID.
type message struct {
	ID       uint64    `json:"id"`
	Op       string    `json:"op,omitempty"`
	URL      string    `json:"url,omitempty"`
	Offset   int64     `json:"offset,omitempty"`
	Size     int64     `json:"size,omitempty"`
	Whole    int64     `json:"whole,omitempty"`   // size of the object
	Modified time.Time `json:"modified,omitzero"` // time of the object
	Upload   uint64    `json:"upload,omitempty"`  // ID of the request that began it
	Entries  []entry   `json:"entries,omitempty"` // of an answer
	Error    *Error    `json:"error,omitempty"`   // of an answer
	Data     []byte    `json:"-"`
}

// An entry is an object or a folder.
type entry struct {
	Name     string    `json:"name"` // without its folder
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified,omitzero"`
	Folder   bool      `json:"folder,omitempty"`
}

// The kinds of errors that callers tell apart.
const (
	Missing  = "missing"   // [fs.ErrNotExist]
	NoBucket = "no bucket" // that too
	Denied   = "denied"    // [fs.ErrPermission]
	Later    = "later"     // the store may answer when it is asked again
)

// An Error says why the store, or the fetch process, did not do what was asked. It holds
// no credentials and no query of an address.
type Error struct {
	URL  string `json:"url"`
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
}

func (e *Error) Error() string { return canonical(e.URL) + ": " + e.Text }

// Is makes the error one of package fs.
func (e *Error) Is(target error) bool {
	return target == fs.ErrNotExist && (e.Kind == Missing || e.Kind == NoBucket) ||
		target == fs.ErrPermission && e.Kind == Denied
}

// Limits of a message: a decoder holds no more.
const (
	maxHead = 64 << 20
	// maxData bounds the bytes of a message.
	maxData = 8 << 20
)

// Write writes a message: the lengths of its head and of its data, both as four bytes
// with the highest first, the head as JSON, the data.
func (m *message) Write(w io.Writer) error {
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(head) > maxHead || len(m.Data) > maxData {
		return errors.New("a message to or from the fetch process is too long")
	}
	lengths := binary.BigEndian.AppendUint32(nil, uint32(len(head)))
	lengths = binary.BigEndian.AppendUint32(lengths, uint32(len(m.Data)))
	if _, err := w.Write(append(lengths, head...)); err != nil || len(m.Data) == 0 {
		return err
	}
	_, err = w.Write(m.Data)
	return err
}

// Read reads the next message. The error is io.EOF at the end.
func (m *message) Read(r io.Reader) error {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return err
	}
	n, data := binary.BigEndian.Uint32(lengths[:4]), binary.BigEndian.Uint32(lengths[4:])
	if n > maxHead || data > maxData {
		return fmt.Errorf("a message of %d and %d bytes is none of the fetch process", n, data)
	}
	head, err := io.ReadAll(io.LimitReader(r, int64(n))) // as long as it comes: a length alone reserves nothing
	if err == nil && len(head) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	*m = message{}
	if err := json.Unmarshal(head, m); err != nil {
		return errors.New("a message of the fetch process does not decode")
	}
	if data > 0 {
		m.Data = make([]byte, data)
		if _, err := io.ReadFull(r, m.Data); err != nil {
			return io.ErrUnexpectedEOF
		}
	}
	return nil
}
