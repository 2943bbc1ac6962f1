package h1

// Bounds on what a chunked body may carry besides its data, in bytes.
const (
	maxChunkLine = 4 << 10  // size and extensions of one
	maxTrailers  = 16 << 10 // together
)

// The states of chunks name what comes next.
type chunkState int

const (
	sizeDigit chunkState = iota
	sizePad              // blanks after the size, which some servers pad to a width
	extension
	sizeLF
	inData
	dataCR
	dataLF
	trailerStart
	trailerName
	trailerValue
	trailerLF
	endLF
	chunksDone
)

// chunks decodes a chunked body (RFC 9112, section 7.1) in place, from whatever
// pieces it comes in. The zero value is at its beginning.
type chunks struct {
	state chunkState
	size  int64 // of this chunk, read so far; what is left of it in inData
	line  int   // bytes of this line of a size, or of the trailers
}

// decode moves the body's bytes in p to its front. It returns how many they are, and
// how much of p belongs to the answer: all, unless its end is in p.
func (c *chunks) decode(p []byte) (payload, used int, err error) {
	for used < len(p) && c.state != chunksDone {
		if c.state == inData {
			n := int(min(c.size, int64(len(p)-used)))
			copy(p[payload:], p[used:used+n])
			payload, used, c.size = payload+n, used+n, c.size-int64(n)
			if c.size == 0 {
				c.state = dataCR
			}
			continue
		}
		switch b := p[used]; c.state {
		case sizeDigit, sizePad, extension, sizeLF:
			err = c.sizeLine(b)
		case dataCR:
			err = c.expect(b, '\r', dataLF)
		case dataLF:
			c.size, c.line = 0, 0
			err = c.expect(b, '\n', sizeDigit)
		default:
			err = c.trailer(b)
		}
		if err != nil {
			return payload, used, err
		}
		used++
	}
	return payload, used, nil
}

var errChunk = malformed("a bad chunk")

func (c *chunks) expect(b, want byte, next chunkState) error {
	if b != want {
		return errChunk
	}
	c.state = next
	return nil
}

// sizeLine takes a byte of the line before a chunk.
func (c *chunks) sizeLine(b byte) error {
	if c.line++; c.line > maxChunkLine {
		return malformed("a chunk's line is too long")
	}
	switch digit, isDigit := hex(b); {
	case c.state == sizeLF:
		if c.line = 0; c.size > 0 {
			return c.expect(b, '\n', inData)
		}
		return c.expect(b, '\n', trailerStart)
	case c.state == sizeDigit && isDigit:
		if c.line > 15 {
			return malformed("a chunk is too large")
		}
		c.size = c.size<<4 | digit
	case c.line == 1: // no digit at all
		return errChunk
	case b == '\r':
		c.state = sizeLF
	case c.state == extension && valueByte(b):
	case b == ';' && c.state == sizeDigit:
		c.state = extension
	case b == ' ' || b == '\t':
		c.state = sizePad
	default:
		return errChunk
	}
	return nil
}

func hex(b byte) (int64, bool) {
	switch {
	case b >= '0' && b <= '9':
		return int64(b - '0'), true
	case b >= 'a' && b <= 'f':
		return int64(b-'a') + 10, true
	case b >= 'A' && b <= 'F':
		return int64(b-'A') + 10, true
	}
	return 0, false
}

// trailer takes a byte after the last chunk. Trailers are checked and dropped.
func (c *chunks) trailer(b byte) error {
	if c.line++; c.line > maxTrailers {
		return malformed("the trailers are too long")
	}
	switch {
	case c.state == trailerStart && b == '\r':
		c.state = endLF
	case c.state == endLF:
		return c.expect(b, '\n', chunksDone)
	case c.state == trailerLF:
		return c.expect(b, '\n', trailerStart)
	case c.state == trailerName && b == ':':
		c.state = trailerValue
	case (c.state == trailerStart || c.state == trailerName) && tokenByte(b):
		c.state = trailerName
	case c.state == trailerValue && b == '\r':
		c.state = trailerLF
	case c.state == trailerValue && valueByte(b):
	default:
		return malformed("a bad trailer")
	}
	return nil
}
