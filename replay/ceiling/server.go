package ceiling

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// A cannedServer answers every request with a stream of so many tokens, of which all but
// the first come a millisecond after the one before. It reads of a request no more than it
// must, since its work is on the cores that are measured.
type cannedServer struct {
	listener net.Listener
	tokens   int
	conns    sync.WaitGroup
}

var (
	cannedHead  = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	cannedToken = chunked(`data: {"id":"c","object":"text_completion","created":1,"model":"canned","choices":[{"index":0,"text":" word","finish_reason":null}]}` + "\n\n")
)

// chunked is a piece of a body of HTTP/1.1 that comes in chunks.
func chunked(text string) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(text), text) }

func newCannedServer(tokens int) (*cannedServer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &cannedServer{listener: l, tokens: tokens}
	s.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	return s, nil
}

// close ends the listening, and waits for the connections, which the client closes.
func (s *cannedServer) close() {
	s.listener.Close()
	s.conns.Wait()
}

// serve answers one request after another, until the client is gone.
func (s *cannedServer) serve(conn net.Conn) {
	end := append(chunked(fmt.Sprintf(`data: {"id":"c","object":"text_completion","created":1,"model":"canned","choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d}}`+
		"\n\ndata: [DONE]\n\n", s.tokens, 100+s.tokens)), "0\r\n\r\n"...)
	first := append(bytes.Clone(cannedHead), cannedToken...)
	if s.tokens == 1 {
		first, end = append(first, end...), nil
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	for {
		if skipRequest(in) != nil {
			return
		}
		if _, err := conn.Write(first); err != nil {
			return
		}
		for at, i := time.Now(), 1; i < s.tokens; i++ {
			time.Sleep(time.Until(at.Add(time.Duration(i) * time.Millisecond)))
			if _, err := conn.Write(cannedToken); err != nil {
				return
			}
		}
		if _, err := conn.Write(end); end != nil && err != nil {
			return
		}
	}
}

var errNoLength = errors.New("a request without a length")

// skipRequest reads one request and forgets it.
func skipRequest(in *bufio.Reader) error {
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errNoLength
	}
	_, err := in.Discard(length)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
