//go:build clouds

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"reprise/trace/crash"
)

// Limits of time, after which a store is asked again.
const (
	requestTime = time.Minute
	partTime    = 5 * time.Minute // of maxData bytes on their way

	noticeEvery = 20 // seconds
)

// Parts of an upload: their least size, and the most that there may be (S3 allows 10,000).
const (
	partBytes = 8 << 20
	maxParts  = 9000
)

var (
	errNoBucket      = errors.New("no such bucket")
	errMissingFolder = errors.New("there is no such object, and no folder of that name")
)

// A server answers requests.
type server struct {
	ctx     context.Context
	buckets buckets
	notices io.Writer

	answered atomic.Bool  // something was
	said     atomic.Int64 // Unix time of the last notice

	out     sync.Mutex
	to      io.Writer
	mu      sync.Mutex
	uploads map[uint64]*upload
}

// An upload is under way.
type upload struct {
	w      *blob.Writer
	cancel context.CancelFunc
}

// serve answers what is asked until from ends. Then uploads under way are dropped.
func serve(ctx context.Context, from io.Reader, to, notices io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &server{ctx: ctx, to: to, notices: notices, uploads: map[uint64]*upload{}}
	var under sync.WaitGroup
	defer under.Wait()
	defer s.dropAll()
	defer cancel()
	places := make(chan struct{}, 16) // requests at once
	for {
		var m message
		if err := m.Read(from); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		places <- struct{}{}
		under.Go(func() {
			defer func() { <-places }()
			defer crash.Caught()
			answer, err := s.do(&m)
			answer.ID = m.ID
			if err != nil {
				answer = message{ID: m.ID, Error: fault(m.URL, err)}
				s.say(answer.Error)
			} else {
				s.answered.Store(true)
			}
			s.out.Lock()
			defer s.out.Unlock()
			answer.Write(s.to) // an error means that the other process has ended, as the next read says
		})
	}
}

// say tells people that a store that answered before does not. The other process learns that
// when its patience is at its end.
func (s *server) say(why *Error) {
	now, last := time.Now().Unix(), s.said.Load()
	if why.Kind == Later && s.answered.Load() && now > last+noticeEvery && s.said.CompareAndSwap(last, now) {
		fmt.Fprintf(s.notices, "reprise: %v; trying again\n", why)
	}
}

func (s *server) dropAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.uploads {
		delete(s.uploads, id)
		u.drop()
	}
}

func (s *server) do(m *message) (answer message, err error) {
	defer func() {
		// Closing a writer of Azure after an error panics (gocloud.dev v0.47.0).
		if fault := recover(); fault != nil {
			err = errors.New("the library for this store failed")
		}
	}()
	limit := requestTime
	if m.Op == opCommit || m.Op == opData {
		limit = partTime
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	b, key, err := s.buckets.at(ctx, m.URL)
	if err != nil {
		return answer, err
	}
	switch m.Op {
	case opStat:
		e, err := look(ctx, b, key)
		answer.Entries = []entry{e}
		return answer, err
	case opList:
		answer.Entries, err = list(ctx, b, key, 0)
		if gcerrors.Code(err) == gcerrors.NotFound {
			err = errNoBucket
		}
		return answer, err
	case opRead:
		answer.Data, err = readRange(ctx, b, key, m)
		return answer, err
	case opRemove:
		return answer, b.Delete(ctx, key)
	case opPut:
		return answer, s.begin(b, key, m)
	case opData:
		u := s.upload(m.Upload, false)
		if u == nil {
			return answer, errors.New("there is no such upload")
		}
		return answer, within(ctx, u, func() error { _, err := u.w.Write(m.Data); return err })
	case opCommit:
		u := s.upload(m.Upload, true)
		if u == nil {
			return answer, errors.New("there is no such upload")
		}
		defer u.cancel()
		if err := within(ctx, u, u.close); err != nil {
			return answer, err
		}
		at, err := b.Attributes(ctx, key)
		if err == nil && at.Size != m.Size {
			err = errShort
		}
		return answer, err
	case opAbort:
		if u := s.upload(m.Upload, true); u != nil {
			u.drop()
		}
		return answer, nil
	}
	return answer, errors.New("it is no request that this process knows")
}

func (s *server) begin(b *blob.Bucket, key string, m *message) error {
	ctx, cancel := context.WithCancel(s.ctx)
	w, err := b.NewWriter(ctx, key, &blob.WriterOptions{BufferSize: int(max(partBytes, m.Size/maxParts+1)),
		MaxConcurrency: 3, ContentType: "application/octet-stream"})
	if err != nil {
		cancel()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads[m.ID] = &upload{w, cancel}
	return nil
}

func (s *server) upload(id uint64, last bool) *upload {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uploads[id]
	if last {
		delete(s.uploads, id)
	}
	return u
}

// within does a step of an upload, which is dropped when that takes too long.
func within(ctx context.Context, u *upload, step func() error) error {
	stop := context.AfterFunc(ctx, u.cancel)
	defer stop()
	err := step()
	if ctx.Err() != nil {
		return errStalled
	}
	return err
}

// close ends an upload.
func (u *upload) close() (err error) {
	defer func() {
		if recover() != nil { // see do
			err = errStalled
		}
	}()
	return u.w.Close()
}

// drop ends an upload so that nothing of it is left.
func (u *upload) drop() {
	u.cancel()
	_ = u.close() // which says that it was cancelled
}

// look looks for an object, then for a folder.
func look(ctx context.Context, b *blob.Bucket, key string) (entry, error) {
	if key != "" && !strings.HasSuffix(key, "/") {
		at, err := b.Attributes(ctx, key)
		if err == nil {
			return entry{Name: path.Base(key), Bytes: at.Size, Modified: at.ModTime}, nil
		}
		if gcerrors.Code(err) != gcerrors.NotFound {
			return entry{}, err
		}
	}
	key = strings.TrimSuffix(key, "/")
	in, err := list(ctx, b, key, 1)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return entry{}, errNoBucket
	case err != nil:
		return entry{}, err
	case len(in) == 0 && key != "":
		return entry{}, errMissingFolder
	}
	return entry{Name: path.Base("/" + key), Folder: true}, nil
}

// list is what is in a folder, or the first so many of it.
func list(ctx context.Context, b *blob.Bucket, key string, most int) (entries []entry, err error) {
	if key = strings.TrimSuffix(key, "/"); key != "" {
		key += "/"
	}
	objects := b.List(&blob.ListOptions{Prefix: key, Delimiter: "/"})
	for most == 0 || len(entries) < most {
		o, err := objects.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, key), "/")
		if name == "" { // the folder itself, which some tools make as an object
			if most == 1 {
				entries = append(entries, entry{})
			}
			continue
		}
		entries = append(entries, entry{Name: name, Bytes: o.Size, Modified: o.ModTime, Folder: o.IsDir})
	}
	return entries, nil
}

// readRange reads a range of an object, if it is still the one that is meant.
func readRange(ctx context.Context, b *blob.Bucket, key string, m *message) ([]byte, error) {
	if m.Size < 0 || m.Size > maxData {
		return nil, errors.New("a read of that size is not allowed")
	}
	r, err := b.NewRangeReader(ctx, key, m.Offset, m.Size, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.Size() != m.Whole || !r.ModTime().Truncate(time.Second).Equal(m.Modified.Truncate(time.Second)) {
		return nil, errChanged
	}
	data := make([]byte, m.Size)
	if n, err := io.ReadFull(r, data); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("%w: %d of %d bytes", errShort, n, m.Size)
	} else if err != nil {
		return nil, err
	}
	return data, nil
}
