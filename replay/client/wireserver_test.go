package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reprise/replay/host"
)

// A wireServer is a server in a process of its own, so that what the client costs
// can be told from what the server does.
type wireServer struct {
	url  string
	stop func() wireCounts
}

// wireCounts are what the server has seen and sent.
type wireCounts struct{ Requests, Events int64 }

// wireAnswers say what the server sends: so many token events, the first after ITL
// as well, then a finish and the end.
type wireAnswers struct {
	Tokens int
	ITL    time.Duration
	Burst  int  // token events in one write, without a pause between; 0 is one
	Silent bool // nothing is ever answered
}

const wireServerVariable = "REPRISE_WIRE_SERVER"

func startWireServer(tb testing.TB, a wireAnswers) *wireServer {
	tb.Helper()
	about, err := json.Marshal(a)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWireServerProcess$")
	cmd.Env = append(os.Environ(), wireServerVariable+"="+string(about))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); cmd.Wait() }) // the end of its input ends it
	lines := bufio.NewReader(out)
	address, err := lines.ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return &wireServer{url: "http://" + strings.TrimSpace(address), stop: func() (c wireCounts) {
		in.Close()
		if err := json.NewDecoder(lines).Decode(&c); err != nil {
			tb.Fatal(err)
		}
		return c
	}}
}

// TestWireServerProcess is the server's process; a test only in name.
func TestWireServerProcess(t *testing.T) {
	var a wireAnswers
	about, ok := os.LookupEnv(wireServerVariable)
	if !ok {
		t.Skip("the process of a server, for other tests")
	}
	if err := json.Unmarshal([]byte(about), &a); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	debug.SetGCPercent(400)
	host.GrowFiles()
	fmt.Println(l.Addr())
	var seen wireCounts
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go a.serve(c, &seen)
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	json.NewEncoder(os.Stdout).Encode(wireCounts{atomic.LoadInt64(&seen.Requests), atomic.LoadInt64(&seen.Events)})
	l.Close()
}

const wireHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// serve answers the requests of one connection, each event on its absolute time.
func (a wireAnswers) serve(c net.Conn, seen *wireCounts) {
	defer c.Close()
	burst := max(a.Burst, 1)
	event, end := []byte(strings.Repeat(chunked(tok), burst)), []byte(chunked(stop+done)+"0\r\n\r\n")
	for b := bufio.NewReaderSize(c, 1<<10); ; {
		closes, err := skipRequest(b)
		if err != nil {
			return
		}
		at := time.Now()
		atomic.AddInt64(&seen.Requests, 1)
		if a.Silent {
			continue
		}
		io.WriteString(c, wireHead)
		for n := 0; n < a.Tokens; n += burst {
			if at = at.Add(a.ITL); a.ITL > 0 {
				time.Sleep(time.Until(at))
			}
			if _, err := c.Write(event); err != nil {
				return
			}
			atomic.AddInt64(&seen.Events, int64(burst))
		}
		if _, err := c.Write(end); err != nil || closes {
			return
		}
	}
}

// skipRequest reads a request as the client of this package writes it.
func skipRequest(b *bufio.Reader) (closes bool, err error) {
	length := 0
	for {
		line, err := b.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		switch s := string(line); {
		case s == "\r\n":
			_, err = b.Discard(length)
			return closes, err
		case s == "Connection: close\r\n":
			closes = true
		case strings.HasPrefix(s, "Content-Length: "):
			fmt.Sscan(s[len("Content-Length: "):], &length)
		}
	}
}
