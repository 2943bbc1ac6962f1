package objectstore

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"reprise/trace/crash"
)

// Objects are read and kept in chunks. What is read in sequence is read ahead by several, in
// one request.
const (
	chunkBytes = 1 << 20
	ahead      = 8  // chunks
	keptChunks = 32 // of an open object
)

// An object is open for reading. It is one state of the object: when another takes its
// place, reading fails.
type object struct {
	client *client
	info   info

	mu     sync.Mutex
	at     int64 // of Read
	chunks map[int64]*chunk
	order  []int64 // chunks, the one used last at the end
	closed bool
}

// A chunk is there, or on its way.
type chunk struct {
	done chan struct{}
	data []byte
	err  error
}

// Read implements io.Reader.
func (o *object) Read(p []byte) (int, error) {
	o.mu.Lock()
	at := o.at
	o.mu.Unlock()
	if at >= o.info.entry.Bytes && !o.info.IsDir() {
		return 0, io.EOF
	}
	n, err := o.read(p, at, false)
	o.mu.Lock()
	o.at = at + int64(n)
	o.mu.Unlock()
	return n, err
}

// ReadAt implements io.ReaderAt.
func (o *object) ReadAt(p []byte, at int64) (n int, err error) {
	if at < 0 {
		return 0, errors.New("objectstore: negative offset")
	}
	return o.read(p, at, true)
}

// Seek implements io.Seeker.
func (o *object) Seek(by int64, whence int) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		by += o.at
	case io.SeekEnd:
		by += o.info.entry.Bytes
	}
	if by < 0 {
		return o.at, errors.New("objectstore: seek to before the beginning")
	}
	o.at = by
	return by, nil
}

// read reads what is asked for, or, without whole, what the first chunk has of it.
func (o *object) read(p []byte, at int64, whole bool) (n int, err error) {
	if o.info.IsDir() {
		return 0, &Error{URL: o.info.url, Text: "it is a folder: name an object in it"}
	}
	for n < len(p) {
		if at+int64(n) >= o.info.entry.Bytes {
			return n, io.EOF
		}
		i := (at + int64(n)) / chunkBytes
		last := min((at+int64(len(p))-1), o.info.entry.Bytes-1) / chunkBytes
		c, err := o.chunk(i, last-i+1)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], c[at+int64(n)-i*chunkBytes:])
		if !whole {
			break
		}
	}
	return n, nil
}

// chunk returns chunk i, of so many that are wanted from it on.
func (o *object) chunk(i, wanted int64) ([]byte, error) {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil, os.ErrClosed
	}
	c := o.chunks[i]
	_, before := o.chunks[i-1]
	if before && i > 0 { // it is read in sequence
		wanted = ahead
	}
	if c == nil {
		o.fetch(i, min(wanted, ahead))
		c = o.chunks[i]
	} else if next := i + ahead/2; before && o.chunks[next] == nil {
		// So that half of what was read ahead is still to come when the rest is asked for.
		if o.chunks[next-1] != nil {
			o.fetch(next, ahead)
		}
	}
	o.use(i)
	o.mu.Unlock()
	<-c.done
	if c.err != nil {
		o.mu.Lock()
		if o.chunks[i] == c {
			delete(o.chunks, i)
		}
		o.mu.Unlock()
	}
	return c.data, c.err
}

// fetch asks for chunks from i on, which are not there, in one request. The lock is held.
func (o *object) fetch(i, n int64) {
	chunks := (o.info.entry.Bytes + chunkBytes - 1) / chunkBytes
	var asked []*chunk
	for k := i; k < min(i+n, chunks) && o.chunks[k] == nil; k++ {
		c := &chunk{done: make(chan struct{})}
		o.chunks[k] = c
		o.use(k)
		asked = append(asked, c)
	}
	if len(asked) == 0 {
		return
	}
	from := i * chunkBytes
	size := min(int64(len(asked))*chunkBytes, o.info.entry.Bytes-from)
	go func() {
		defer crash.Caught()
		got, err := o.client.ask(message{Op: opRead, URL: o.info.url, Offset: from, Size: size,
			Whole: o.info.entry.Bytes, Modified: o.info.entry.Modified})
		if err == nil && int64(len(got.Data)) != size {
			err = &Error{URL: o.info.url, Text: "the store sent another number of bytes than it was asked for"}
		}
		for k, c := range asked {
			if c.err = err; err == nil {
				c.data = got.Data[k*chunkBytes : min((k+1)*chunkBytes, len(got.Data))]
			}
			close(c.done)
		}
	}()
}

// use notes that a chunk was used, and drops the one that was not for longest. The lock is held.
func (o *object) use(i int64) {
	for k, other := range o.order {
		if other == i {
			o.order = append(append(o.order[:k:k], o.order[k+1:]...), i)
			return
		}
	}
	if o.order = append(o.order, i); len(o.order) > keptChunks {
		delete(o.chunks, o.order[0])
		o.order = o.order[1:]
	}
}

// Stat says how large the object was when it was opened.
func (o *object) Stat() (fs.FileInfo, error) { return o.info, nil }

// Name is the path of the object.
func (o *object) Name() string { return o.info.url }

// Close drops what was read.
func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return os.ErrClosed
	}
	o.closed, o.chunks, o.order = true, nil, nil
	return nil
}
