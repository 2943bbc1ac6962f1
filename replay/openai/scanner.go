package openai

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"time"
)

// defaultMaxEvent is the longest event, in bytes, that a Scanner takes unless told
// otherwise.
const defaultMaxEvent = 16 << 20

const (
	firstBuffer = 4 << 10  // what a Scanner begins with: there are thousands of them
	keptBuffer  = 64 << 10 // what Reset keeps of a buffer that grew
	emptyReads  = 100      // Reads without bytes or error before giving up, as in bufio
)

// errEventTooLong says that a stream held an event, or a line, beyond the limit.
var errEventTooLong = fmt.Errorf("%w: a server-sent event is longer than the limit", ErrOverlong)

// An Event is one server-sent event, or one comment line.
type Event struct {
	// At is the instant of the read that completed the event, on the Scanner's clock.
	// Events that came with one Read share it.
	At time.Duration
	// Name is the event field, empty for nearly all. Valid until the next Scan.
	Name []byte
	// Data is the payload, its data lines joined by line feeds, or a comment's text
	// after the colon. Valid until the next Scan.
	Data []byte
	// ReadDelay is how long the event had been there when it was read, in µs, rounded up,
	// by the stamp of the last segment of that Read; it is negative where more of the
	// stream came with the same Read, so that the event may have been there longer. 0 is
	// not known: the source of the stream does not tell.
	ReadDelay int32
	// Comment marks a comment line, which servers send to keep a connection alive.
	Comment bool
}

// pingEvent is the name, and in its data the type, of an event that only keeps a
// connection alive.
const pingEvent = "ping"

// IsPing reports whether an event is named ping: like a comment, it keeps a connection
// alive, and says nothing.
func IsPing(ev Event) bool { return string(ev.Name) == pingEvent }

// A Scanner reads server-sent events, as the HTML standard defines them
// (section 9.2.6), and stamps them with the instant of their arrival. It takes line
// ends of all three kinds in any mixture, a byte order mark, comments between the lines
// of an event, and any division into reads.
//
// It departs from the standard where servers do, so that nothing that was sent goes
// unseen: an event with an empty data line is delivered; one that the stream's end
// leaves without its blank line is delivered, and so is one named error without data, as
// Dynamo sends it; a field named error, which llama-server used before September 2025, becomes
// an event of that name; and a line of JSON behind the first event is data, which servers that
// fail write without its name.
//
// A Scanner does not allocate for an event once its buffers have grown. It is for one
// goroutine.
type Scanner struct {
	src   io.Reader
	timed timedReader // src, where it tells instants
	clock func() time.Duration
	limit int
	room  *Room
	taken int // of room, in bytes of buf

	buf    []byte
	r, w   int // unread bytes are buf[r:w]
	noEOL  int // buf[r:noEOL] holds no line end
	noLF   int // buf[r:noLF] holds no line feed
	skipLF bool
	begun  bool // past the first line, where a byte order mark may stand

	at    time.Duration // of the last Read that gave bytes
	delay int32         // of its bytes in µs, rounded up; 0 is not known
	err   error         // what Read ended with
	errAt time.Duration

	name, data []byte
	hasData    bool
	delivered  bool // name and data belong to an event that was handed out
	told       bool // some event was handed out
}

// A timedReader knows when the bytes of its last Read, or its error, were taken from the
// system, on the Scanner's clock; and how long the bytes had been there by then, where a
// negative delay is not known.
type timedReader interface {
	ReadInstant() (at, delay time.Duration)
}

// NewScanner reads from src. The clock is asked right after each Read, unless src has a
// method ReadInstant() (at, delay time.Duration), which tells more exactly. maxEvent is the
// longest event in bytes; 0 means defaultMaxEvent.
func NewScanner(src io.Reader, clock func() time.Duration, maxEvent int) *Scanner {
	if maxEvent <= 0 {
		maxEvent = defaultMaxEvent
	}
	s := &Scanner{clock: clock, limit: maxEvent}
	s.Reset(src)
	return s
}

// Within has the next stream's events be of at most so many bytes, and take their room of one
// that all streams share, which may be nil, beyond what a Scanner keeps anyway.
func (s *Scanner) Within(maxEvent int, room *Room) {
	s.room.give(s.taken)
	s.limit, s.room, s.taken = maxEvent, room, 0
}

// Reset begins again with another stream, keeping clock, limit and buffers.
func (s *Scanner) Reset(src io.Reader) {
	s.room.give(s.taken)
	*s = Scanner{
		src: src, clock: s.clock, limit: s.limit, room: s.room,
		buf: s.buf, name: s.name[:0], data: s.data[:0],
	}
	s.timed, _ = src.(timedReader)
	if cap(s.buf) > keptBuffer {
		s.buf = nil
	}
	if cap(s.data) > keptBuffer {
		s.data = nil
	}
}

// Scan returns the next event or comment. At the end of the stream the error is io.EOF,
// after a failed Read that Read's own, else errEventTooLong or io.ErrNoProgress; At is
// then the instant at which it was met. The error stays.
func (s *Scanner) Scan() (Event, error) {
	if s.delivered {
		s.clear()
	}
	for {
		line, ok := s.line()
		switch {
		case !ok && s.err == nil:
			s.fill()
			continue
		case !ok && s.r == s.w:
			if s.isEvent() {
				return s.deliver(), nil
			}
			return Event{At: s.errAt}, s.err
		case !ok: // the last line lacks its end
			line, s.r = s.buf[s.r:s.w], s.w
		}
		if !s.begun {
			s.begun = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		switch {
		case len(line) == 0 && s.isEvent():
			return s.deliver(), nil
		case len(line) == 0:
			s.clear()
		case line[0] == ':':
			return Event{At: s.at, Data: line[1:], Comment: true}, nil
		default:
			s.field(line)
		}
	}
}

// isEvent reports whether what was read so far is an event.
func (s *Scanner) isEvent() bool { return s.hasData || string(s.name) == "error" }

func (s *Scanner) deliver() Event {
	s.delivered, s.told = true, true
	delay := s.delay
	if left := s.w - s.r; left > 1 || left == 1 && !s.skipLF {
		delay = -delay
	}
	return Event{At: s.at, Name: s.name, Data: s.data, ReadDelay: delay}
}

func (s *Scanner) clear() {
	s.name, s.data = s.name[:0], s.data[:0]
	s.hasData, s.delivered = false, false
}

// field takes in one line of an event. Fields other than event and data (id, retry)
// mean nothing to us.
func (s *Scanner) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.addData(value)
	case "event":
		s.name = append(s.name[:0], value...)
	case "error":
		s.name = append(s.name[:0], "error"...)
		s.addData(value)
	default:
		if s.told && line[0] == '{' {
			s.addData(line)
		}
	}
}

func (s *Scanner) addData(value []byte) {
	if s.hasData {
		s.data = append(s.data, '\n')
	}
	s.hasData = true
	if len(s.data)+len(value) > s.limit {
		s.stop(errEventTooLong, s.at)
		return
	}
	s.data = append(s.data, value...)
}

// stop ends the stream with an error and forgets what was not delivered.
func (s *Scanner) stop(err error, at time.Duration) {
	s.clear()
	s.r, s.w, s.noEOL, s.noLF = 0, 0, 0, 0
	s.err, s.errAt = err, at
}

// line takes the next whole line off the buffer, without its end. It looks at no byte
// twice: what is known to hold no line end is remembered from one call to the next.
func (s *Scanner) line() ([]byte, bool) {
	if s.skipLF && s.r < s.w { // the second half of a \r\n
		s.skipLF = false
		if s.buf[s.r] == '\n' {
			s.r++
		}
	}
	from := max(s.r, s.noEOL)
	start := max(from, s.noLF)
	end := s.w
	if i := bytes.IndexByte(s.buf[start:s.w], '\n'); i >= 0 {
		end = start + i
	}
	s.noLF = end
	if i := bytes.IndexByte(s.buf[from:end], '\r'); i >= 0 {
		end = from + i
		s.skipLF = true
	}
	s.noEOL = end
	if end == s.w {
		return nil, false
	}
	line := s.buf[s.r:end]
	s.r = end + 1
	return line, true
}

// fill reads more bytes after those that are left, and takes the time.
func (s *Scanner) fill() {
	if s.r > 0 {
		copy(s.buf, s.buf[s.r:s.w])
		s.w -= s.r
		s.noEOL, s.noLF = max(s.noEOL-s.r, 0), max(s.noLF-s.r, 0)
		s.r = 0
	}
	if s.w > s.limit {
		s.stop(errEventTooLong, s.at)
		return
	}
	if s.w == len(s.buf) {
		size := min(max(2*len(s.buf), firstBuffer), s.limit+1)
		if more := size - max(len(s.buf), keptBuffer); more > 0 {
			if !s.room.take(more) {
				s.stop(errEventTooLong, s.at)
				return
			}
			s.taken += more
		}
		grown := make([]byte, size)
		copy(grown, s.buf[:s.w])
		s.buf = grown
	}
	for range emptyReads {
		n, err := s.src.Read(s.buf[s.w:])
		var now, delay time.Duration
		if s.timed != nil {
			now, delay = s.timed.ReadInstant()
		} else {
			now, delay = s.clock(), -1
		}
		if n > 0 {
			s.w += n
			s.at, s.delay = now, 0
			if delay >= 0 {
				us := (delay + time.Microsecond - 1) / time.Microsecond
				s.delay = int32(min(max(us, 1), math.MaxInt32))
			}
		}
		if err != nil {
			s.err, s.errAt = err, now
		}
		if n > 0 || err != nil {
			return
		}
	}
	s.stop(io.ErrNoProgress, s.clock())
}
