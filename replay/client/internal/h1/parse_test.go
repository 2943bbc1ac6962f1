package h1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"reprise/replay/openai"
)

// wired is a connection that reads what it is given.
type wired struct {
	net.Conn
	r io.Reader
}

func (w wired) Read(p []byte) (int, error)  { return w.r.Read(p) }
func (w wired) Write(p []byte) (int, error) { return len(p), nil }
func (w wired) Close() error                { return nil }

// receive reads an answer as one of a Client's.
func receive(r io.Reader) (*Response, []byte, error) {
	c := New(Options{Keep: Pooled, Dial: func(context.Context) (net.Conn, error) { return wired{r: r}, nil }})
	defer c.Close()
	resp, err := c.Do(context.Background(), []byte("x"), NoSession, func() {})
	if err != nil {
		return nil, nil, err
	}
	defer resp.Close()
	body, err := io.ReadAll(resp)
	return resp, body, err
}

// heads are answers, and how the reading of each ends: a class, or its body.
var heads = []struct{ name, answer, class, body string }{
	{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", "hello"},
	{"no reason", "HTTP/1.1 200\r\nContent-Length:5\r\n\r\nhello", "", "hello"},
	{"length and more", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n", "", "hello"},
	{"length twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "", "hello"},
	{"nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", ""},
	{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "", ""},
	{"until the end", "HTTP/1.0 200 OK\r\n\r\nhello", "", "hello"},
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", "", "hello"},
	{"chunks with all that may be", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nTrailer: X\r\n\r\n03;a=\"b\"\r\nhel\r\n2  \r\nlo\r\n0\r\nX: y\r\nZ:\r\n\r\n", "", "hello"},
	{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "", "hello"},
	{"an error", "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}", "", "{}"},

	{"none", "", openai.KindReset, ""},
	{"half a head", "HTTP/1.1 200 OK\r\nContent-Le", openai.KindReset, ""},
	{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", openai.KindReset, "hel"},
	{"half the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", openai.KindReset, "hel"},
	{"no last line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n0\r\n", openai.KindReset, "hel"},

	{"another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", openai.KindStream, ""},
	{"another version", "HTTP/2.0 200 OK\r\n\r\n", openai.KindStream, ""},
	{"no status", "HTTP/1.1 OK\r\n\r\n", openai.KindStream, ""},
	{"status of two digits", "HTTP/1.1 20\r\n\r\n", openai.KindStream, ""},
	{"status of four digits", "HTTP/1.1 2000\r\n\r\n", openai.KindStream, ""},
	{"status below 100", "HTTP/1.1 099 X\r\n\r\n", openai.KindStream, ""},
	{"switched", "HTTP/1.1 101 Switching Protocols\r\n\r\n", openai.KindStream, ""},
	{"endless interim", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 10), openai.KindStream, ""},
	{"endless head", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20000) + "\r\n", openai.KindStream, ""},
	{"no colon", "HTTP/1.1 200 OK\r\nX\r\n\r\n", openai.KindStream, ""},
	{"blank before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", openai.KindStream, ""},
	{"line that continues", "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n", openai.KindStream, ""},
	{"zero byte", "HTTP/1.1 200 OK\r\nX: y\x00\r\n\r\n", openai.KindStream, ""},
	{"line feed inside", "HTTP/1.1 200 OK\r\nX: y\nZ: a\r\n\r\n", openai.KindStream, ""},
	{"signed length", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", openai.KindStream, ""},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", openai.KindStream, ""},
	{"a length in two spellings", "HTTP/1.1 200 OK\r\nContent-Length: 05\r\nContent-Length: 5\r\n\r\nhello", openai.KindStream, ""},
	{"and the other way round", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 05\r\n\r\nhello", openai.KindStream, ""},
	{"huge length", "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", openai.KindStream, ""},
	{"compressed", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", openai.KindStream, ""},
	{"chunks in 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", openai.KindStream, ""},
	{"chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n;\r\n", openai.KindStream, ""},
	{"chunk with a sign", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", openai.KindStream, ""},
	{"chunk too large", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", openai.KindStream, ""},
	{"chunk too long", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n", openai.KindStream, "he"},
	{"chunk without its end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\rX0\r\n\r\n", openai.KindStream, "he"},
	{"endless extension", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 5000), openai.KindStream, ""},
	{"endless trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 5000), openai.KindStream, ""},
	{"bad trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX y\r\n\r\n", openai.KindStream, ""},
}

func TestAnswers(t *testing.T) {
	for _, c := range heads {
		for name, r := range map[string]io.Reader{
			"at once":      strings.NewReader(c.answer),
			"byte by byte": iotest.OneByteReader(strings.NewReader(c.answer)),
		} {
			_, body, err := receive(r)
			if class := openai.ClassifyError(err); class != c.class || string(body) != c.body {
				t.Errorf("%s, %s: body %q, %q (%v)", c.name, name, body, class, err)
			}
			if _, bad := errors.AsType[*protocolError](err); bad != (c.class == openai.KindStream) {
				t.Errorf("%s: %T", c.name, err)
			}
		}
	}
}

func TestHeaderFields(t *testing.T) {
	r, _, err := receive(strings.NewReader("HTTP/1.1 429 Busy\r\nRetry-After: \t7 \r\nX:\r\nRETRY-after: 8\r\nContent-Length: 0\r\n\r\n"))
	if err != nil || r.Status() != 429 || r.Get("retry-after") != "7" || r.Get("X") != "" || r.Get("Y") != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// oracle reads the same by net/http.
func oracle(answer []byte) (*http.Response, []byte, error) {
	b := bufio.NewReader(bytes.NewReader(answer))
	for {
		resp, err := http.ReadResponse(b, &http.Request{Method: http.MethodPost})
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode >= 200 {
			body, err := io.ReadAll(resp.Body)
			return resp, body, err
		}
	}
}

// What is taken for an answer is one to net/http too, and the same. How it is cut
// into reads makes no difference.
func FuzzResponse(f *testing.F) {
	for _, c := range heads {
		f.Add([]byte(c.answer))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, body, err := receive(bytes.NewReader(answer))
		_, slow, slowErr := receive(iotest.OneByteReader(bytes.NewReader(answer)))
		if !bytes.Equal(body, slow) || openai.ClassifyError(err) != openai.ClassifyError(slowErr) {
			t.Fatalf("at once %q, %v; byte by byte %q, %v", body, err, slow, slowErr)
		}
		if err != nil {
			return
		}
		want, wantBody, err := oracle(answer)
		if err != nil && strings.Contains(err.Error(), "bad trailer key") {
			return // a declaration of trailers, of which we read none
		}
		if err != nil || got.Status() != want.StatusCode || !bytes.Equal(body, wantBody) || got.Get("Content-Type") != want.Header.Get("Content-Type") {
			t.Fatalf("%d %q %q; net/http: %+v %q %v", got.Status(), body, got.Get("Content-Type"), want, wantBody, err)
		}
		if got.keep && want.Close {
			t.Fatal("kept, and net/http closes")
		}
	})
}
