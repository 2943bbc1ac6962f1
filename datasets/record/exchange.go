package record

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"reprise/trace/usage"
)

// An api is what a path asks for.
type api int

const (
	noAPI api = iota
	chatAPI
	completionsAPI
	responsesAPI
	embeddingsAPI
	messagesAPI // Anthropic's
)

// apis are told by the ends of paths: a server may have them below another.
var apis = []struct {
	end string
	is  api
}{{"/chat/completions", chatAPI}, {"/completions", completionsAPI}, {"/responses", responsesAPI},
	{"/embeddings", embeddingsAPI}, {"/v1/messages", messagesAPI}}

func apiOf(r *http.Request) api {
	if r.Method != http.MethodPost {
		return noAPI
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	for _, a := range apis {
		if strings.HasSuffix(path, a.end) {
			return a.is
		}
	}
	return noAPI
}

// loss says why a request is not recorded.
type loss int

const (
	kept loss = iota
	lostMemory
	lostTooLong
	lostFault
)

// An exchange is a request and its answer, as far as they have passed. The body of the
// request is read by another goroutine than the answer, and may be read still when that
// is over.
type exchange struct {
	w       *workers
	api     api
	begin   time.Time
	session string         // by a header
	server  string         // which of several answered
	request string         // content encoding of the request
	found   usage.Findings // in the usage of the answer

	// What a shadow gets beside the body: of the headers, those that say what the body is
	// and what may answer it.
	path, query string
	about       http.Header
	pair        *pairing
	sent        time.Duration // when all of the request had passed

	mu   sync.Mutex
	body []byte // of the request, until over
	read bool   // to its end
	over bool
	lost loss
	held int64 // bytes of the limit that are taken

	status int
	answer answer
	ended  bool          // the answer came to its end
	broke  bool          // the server ended it before
	gone   bool          // the client did
	last   time.Duration // of the last read of the answer
}

// since is the time since the request came.
func (x *exchange) since() time.Duration { return time.Since(x.begin) }

// hold takes n more bytes of the limit. Where there are none left, the exchange is not
// recorded. It is called under the lock.
func (x *exchange) hold(n int) bool {
	if x.lost != kept {
		return false
	}
	if x.held+int64(n) > maxExchange {
		x.drop(lostTooLong)
		return false
	}
	if !x.w.hold(int64(n)) {
		x.drop(lostMemory)
		return false
	}
	x.held += int64(n)
	return true
}

// maxExchange is how long a request and its answer may be together.
const maxExchange = 256 << 20

// drop forgets the texts, for a reason that is counted at the end.
func (x *exchange) drop(why loss) {
	if x.lost == kept {
		x.lost = why
	}
	x.body = nil
	x.answer = answer{}
	x.w.held.Add(-x.held)
	x.held = 0
}

// guarded calls f under the lock. A fault in it ends the recording of this exchange, and
// nothing else.
func (x *exchange) guarded(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if recover() != nil {
			x.drop(lostFault)
		}
	}()
	if x.lost == kept && !x.over {
		f()
	}
}

// A requestBody is the body of a request on its way to the server.
type requestBody struct {
	io.ReadCloser
	x    *exchange       // nil where it is not recorded
	left int64           // of Content-Length; below 0 where it is not known
	over <-chan struct{} // closed when the answer has gone
	end  bool
}

// Read implements [io.Reader]. An error from it would cut off an answer that is under way:
// that of an engine that answers before it has the whole request, for net/http closes the
// body then; and every other one, for the transport reads once more after the end, when
// the body may be closed already. So the end stays the end, and a body that was closed
// before has none until the answer has gone. A short rest net/http throws away before it
// closes the body, which then ends before its length.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.end {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); err == io.EOF && b.left > 0 {
		err = http.ErrBodyReadAfterClose
	}
	if errors.Is(err, http.ErrBodyReadAfterClose) {
		<-b.over
	}
	b.end = err == io.EOF
	if b.x != nil && (n > 0 || b.end) {
		b.x.guarded(func() { b.x.keep(p[:n], b.end) })
	}
	return n, err
}

// keep takes a piece of the request, which may be the last.
func (x *exchange) keep(piece []byte, end bool) {
	if before := cap(x.body); before-len(x.body) < len(piece) {
		grown := max(2*before, len(x.body)+len(piece), 4<<10)
		if !x.hold(grown - before) {
			return
		}
		x.body = append(make([]byte, 0, grown), x.body...)
	}
	x.body, x.read = append(x.body, piece...), end
	if s := x.w.shadow; end && s != nil {
		s.begin(x)
	}
}

// answered takes the head of the answer.
func (x *exchange) answered(r *http.Response) {
	x.guarded(func() {
		x.status = r.StatusCode
		x.answer.begin(x.api, r.Header.Get("Content-Type"), r.Header.Get("Content-Encoding"))
	})
}

// An answerBody is the body of an answer on its way to the client. What a read brought is
// looked at when the next one is asked for: by then it was written and flushed.
type answerBody struct {
	io.ReadCloser
	x    *exchange
	last []byte
	at   time.Duration
}

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	b.look()
	n, err := b.ReadCloser.Read(p)
	b.at = b.x.since()
	b.last = append(b.last[:0], p[:n]...)
	if err != nil {
		b.look()
		b.x.guarded(func() {
			b.x.last, b.x.ended, b.x.broke = b.at, err == io.EOF, err != io.EOF
		})
	}
	return n, err
}

// Close implements [io.Closer].
func (b *answerBody) Close() error {
	b.look()
	return b.ReadCloser.Close()
}

func (b *answerBody) look() {
	if len(b.last) == 0 {
		return
	}
	b.x.guarded(func() {
		b.x.last = b.at
		before := b.x.answer.size()
		b.x.answer.write(b.last, b.at)
		b.x.hold(b.x.answer.size() - before)
	})
	b.last = b.last[:0]
}
