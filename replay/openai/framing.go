package openai

import "bytes"

// doneMark is the data of the event that ends a stream.
const doneMark = "[DONE]"

// A Framing is how a server writes events. The zero value is what nearly all do; the
// others exist in the wild, and a simulated server imitates them.
type Framing struct {
	EOL     string // line end: "\n" when empty, else "\r\n" or "\r"
	NoSpace bool   // "data:{…" instead of "data: {…"
}

// AppendChunk appends a chunk as one event.
func (f Framing) AppendChunk(dst []byte, c *Chunk) []byte {
	dst = append(dst, "data:"...)
	if !f.NoSpace {
		dst = append(dst, ' ')
	}
	return f.appendEOL(f.appendEOL(AppendChunk(dst, c)))
}

// AppendEvent appends one event. Data that holds line feeds takes a data line for each line.
func (f Framing) AppendEvent(dst, data []byte) []byte {
	for more := true; more; {
		var line []byte
		line, data, more = bytes.Cut(data, []byte{'\n'})
		dst = append(dst, "data:"...)
		if !f.NoSpace {
			dst = append(dst, ' ')
		}
		dst = append(dst, line...)
		dst = f.appendEOL(dst)
	}
	return f.appendEOL(dst)
}

// AppendNamed appends one event with its name, as the Responses API has them.
func (f Framing) AppendNamed(dst []byte, name string, data []byte) []byte {
	dst = append(dst, "event:"...)
	if !f.NoSpace {
		dst = append(dst, ' ')
	}
	return f.AppendEvent(f.appendEOL(append(dst, name...)), data)
}

// AppendComment appends a comment, which clients must ignore: a keep-alive. An empty
// text makes a bare colon.
func (f Framing) AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ':')
	if text != "" && !f.NoSpace {
		dst = append(dst, ' ')
	}
	dst = append(dst, text...)
	return f.appendEOL(f.appendEOL(dst))
}

// AppendDone appends the mark that ends a stream.
func (f Framing) AppendDone(dst []byte) []byte {
	return f.AppendEvent(dst, []byte(doneMark))
}

func (f Framing) appendEOL(dst []byte) []byte {
	if f.EOL == "" {
		return append(dst, '\n')
	}
	return append(dst, f.EOL...)
}
