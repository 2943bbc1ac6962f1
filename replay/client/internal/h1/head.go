package h1

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds the head of an answer, as do browsers and proxies, in bytes.
const maxHead = 64 << 10

// How the length of a body is determined (RFC 9112, section 6.3).
type framing int

const (
	noBody framing = iota
	byLength
	byChunks
	byClose
)

// A head is what stands before a body.
type head struct {
	status  int
	fields  string // the lines of the header, each with its CRLF
	framing framing
	length  int64 // when byLength
	keep    bool  // the server lets the connection be used again
	idle    time.Duration
}

// headEnd returns how long a head is, with its empty line, or 0 as long as its end
// is not there. Up to seen nothing has to be looked at again.
func headEnd(b []byte, seen int) int {
	from := max(seen-3, 0)
	if i := bytes.Index(b[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4
	}
	return 0
}

// parseHead reads a whole head, that ends with its empty line. It takes CRLF as the
// one line end, and no line that continues another. Errors are of *protocolError.
func parseHead(b []byte) (head, error) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	h := head{keep: true, framing: byClose}
	// HTTP/1.x SP 3DIGIT, and a reason that means nothing.
	const version = "HTTP/1."
	if len(line) < len("HTTP/1.1 200") || string(line[:len(version)]) != version || line[8] != ' ' {
		return head{}, malformed("no status line")
	}
	minor := int(line[7] - '0')
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return head{}, malformed("no status line")
		}
		h.status = 10*h.status + int(c-'0')
	}
	if len(line) > 12 && (line[12] != ' ' || !IsValue(string(line[13:]))) || h.status < 100 || minor > 1 {
		return head{}, malformed("no status line")
	}
	h.keep = minor == 1
	h.fields = string(rest[:len(rest)-2])
	var f frame
	for left := h.fields; left != ""; {
		var field string
		field, left, _ = strings.Cut(left, "\r\n")
		name, value, ok := strings.Cut(field, ":")
		value = strings.Trim(value, " \t")
		if !ok || !IsToken(name) || !IsValue(value) {
			return head{}, malformed("a bad header field")
		}
		if err := f.readField(&h, name, value); err != nil {
			return head{}, err
		}
	}
	return h, f.settle(&h, minor)
}

// A frame is what the header says about the body's length.
type frame struct {
	chunked bool
	length  string // as Content-Length spells it; empty without one
}

// readField notes a field that says how long the body is, or for how long the
// connection is kept.
func (f *frame) readField(h *head, name, value string) error {
	switch {
	case strings.EqualFold(name, "Content-Length"):
		n, ok := parseLength(value)
		if !ok || f.length != "" && value != f.length { // another spelling of the same number, too: so does net/http
			return malformed("a bad Content-Length")
		}
		f.length, h.length = value, n
	case strings.EqualFold(name, "Transfer-Encoding"):
		if f.chunked || !strings.EqualFold(value, "chunked") {
			return malformed("a Transfer-Encoding other than chunked")
		}
		f.chunked = true
	case strings.EqualFold(name, "Connection"):
		for option := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(option, " \t"), "close") {
				h.keep = false
			}
		}
	case strings.EqualFold(name, "Keep-Alive"):
		h.idle = 0
		for p := range strings.SplitSeq(value, ",") {
			if s, ok := strings.CutPrefix(strings.Trim(p, " \t"), "timeout="); ok && h.idle == 0 {
				if n, ok := parseLength(s); ok && n > 0 && n < 1<<20 {
					h.idle = time.Duration(n) * time.Second
				}
			}
		}
	}
	return nil
}

// settle decides on the framing. Both a length and chunks are taken as chunks, as
// RFC 9112 wants, and the connection is not used again.
func (f *frame) settle(h *head, minor int) error {
	switch {
	case f.chunked && minor == 0:
		return malformed("chunks in HTTP/1.0")
	case h.status < 200 || h.status == 204 || h.status == 304:
		h.framing = noBody
		if f.chunked && h.status >= 200 {
			h.keep = false
		}
	case f.chunked:
		h.framing = byChunks
		h.keep = h.keep && f.length == ""
	case f.length != "":
		h.framing = byLength
	default:
		h.keep = false
	}
	return nil
}

// parseLength takes digits alone: no sign, no list.
func parseLength(s string) (int64, bool) {
	if s == "" || len(s) > 18 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// IsToken says whether s is a token of RFC 9110, section 5.6.2.
func IsToken(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func tokenByte(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

// IsValue says whether s has none of the bytes that no field may have.
func IsValue(s string) bool {
	for i := range len(s) {
		if !valueByte(s[i]) {
			return false
		}
	}
	return true
}

func valueByte(c byte) bool { return c >= ' ' && c != 0x7f || c == '\t' }
