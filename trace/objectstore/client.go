package objectstore

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"reprise/trace/crash"
)

// Patience is for how long a store that has answered before is asked again when it does
// not; the pauses between double from the first to the last of these.
const (
	patience   = 2 * time.Minute
	firstPause = 250 * time.Millisecond
	lastPause  = 5 * time.Second
)

// A client asks a fetch process.
type client struct {
	to io.Writer

	sending  sync.Mutex
	mu       sync.Mutex
	last     uint64
	waiting  map[uint64]chan message
	ended    error           // why there are no more answers
	answered map[string]bool // buckets
}

// child is the fetch process of this one, which has at most one, as it has one
// confinement: it is started when it is first needed.
var child = sync.OnceValues(startChild)

// Start starts the fetch process if one of the paths is an object's. A process that is
// going to give up its network or the right to start programs does so before. Without an
// object among the paths it does nothing.
func Start(paths ...string) error {
	for _, p := range paths {
		if IsURL(p) {
			_, err := of(p)
			return err
		}
	}
	return nil
}

// of is the client for a path.
func of(name string) (*client, error) {
	scheme, bucket, _, _ := split(name)
	switch {
	case !linked:
		return nil, &Error{URL: name,
			Text: "this program reads and writes files of the machine alone. reprise-cloud, the same program for " +
				"object stores, takes this address; it is in the release, and make reprise-cloud builds it"}
	case bucket == "":
		return nil, &Error{URL: name, Text: "it names no bucket: write it as " + scheme + "://BUCKET/KEY"}
	case strings.Contains(name, "?"):
		return nil, &Error{URL: name,
			Text: "an address has no options after a question mark: endpoint, region and credentials come from the " +
				"environment, see docs/objectstores.md"}
	}
	c, err := child()
	if err != nil {
		return nil, &Error{URL: name, Text: "the process that speaks to the store could not be started: " + err.Error()}
	}
	return c, nil
}

// startChild starts this program again, as a fetch process, which ends when its pipe does.
func startChild() (*client, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, FetchCommand)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return newClient(to, from), nil
}

func newClient(to io.Writer, from io.Reader) *client {
	c := &client{to: to, waiting: map[uint64]chan message{}, answered: map[string]bool{}}
	go func() {
		defer crash.Caught()
		c.receive(bufio.NewReader(from))
	}()
	return c
}

// receive hands answers to those who wait for them.
func (c *client) receive(from io.Reader) {
	for {
		var m message
		if err := m.Read(from); err != nil {
			if err == io.EOF {
				err = errors.New("the process that speaks to the store has ended")
			}
			c.mu.Lock()
			c.ended = err
			for id, answer := range c.waiting {
				delete(c.waiting, id)
				close(answer)
			}
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		answer := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// once asks once.
func (c *client) once(m message) (message, error) {
	answer := make(chan message, 1)
	c.mu.Lock()
	c.last++
	m.ID = c.last
	err := c.ended
	if err == nil {
		c.waiting[m.ID] = answer
	}
	c.mu.Unlock()
	if err == nil {
		c.sending.Lock()
		err = m.Write(c.to)
		c.sending.Unlock()
	}
	if err != nil {
		return message{}, &Error{URL: m.URL, Text: err.Error()}
	}
	got, ok := <-answer
	switch {
	case !ok:
		return got, &Error{URL: m.URL, Text: "the process that speaks to the store has ended"}
	case got.Error != nil:
		return got, got.Error
	}
	return got, nil
}

// ask asks, and again where that may help.
func (c *client) ask(m message) (got message, err error) {
	err = c.again(m.URL, func() error {
		got, err = c.once(m)
		return err
	})
	return got, err
}

// again calls f until it succeeds, fails for good, or patience is at its end. A bucket that
// never answered is not asked again: its address may be wrong.
func (c *client) again(name string, f func() error) error {
	scheme, bucket, _, _ := split(name)
	bucket = scheme + "://" + bucket
	begin, pause := time.Now(), firstPause
	for {
		err := f()
		var at *Error
		if !errors.As(err, &at) || at.Kind != Later {
			c.mu.Lock()
			c.answered[bucket] = c.answered[bucket] || err == nil
			c.mu.Unlock()
			return err
		}
		c.mu.Lock()
		known := c.answered[bucket]
		c.mu.Unlock()
		if !known {
			return err
		}
		if time.Since(begin) > patience {
			return &Error{URL: name, Text: "for 2 minutes there was no other answer than this: " + at.Text}
		}
		time.Sleep(pause)
		pause = min(2*pause, lastPause)
	}
}
