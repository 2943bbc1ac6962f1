package ceiling

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"reprise/replay"
	"reprise/replay/client"
	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/trace"
)

// A Ceiling is the most that this machine can send and read.
type Ceiling struct {
	Requests float64 `json:"requests_per_second"` // of answers of one token
	Events   float64 `json:"events_per_second"`   // of many streams at once
	Streams  int     `json:"streams"`             // at once, of 50 events a second each, within the limits of open files and local ports

	RequestCPU float64 `json:"cpu_us_per_request"` // microseconds of CPU, those of the server included
	EventCPU   float64 `json:"cpu_us_per_event"`
	Cores      int     `json:"cores"`
	Machine    string  `json:"machine"` // CPU and system: a ceiling is good on this one alone
	Version    string  `json:"version"` // of Reprise
}

// comfort is the share of a Ceiling up to which requests leave on time.
const comfort = 0.6

// streamRate is how many events a second a stream is taken to have.
const streamRate = 50

const (
	requestSlots = 64  // requests at once, for the ceiling of requests
	streamSlots  = 512 // streams at once, for that of events
	streamTokens = 200
)

// Measure takes about as long as it is told, of which half goes to requests and half to
// events. version is that of Reprise.
func Measure(ctx context.Context, took time.Duration, version string) (Ceiling, error) {
	if took < 200*time.Millisecond {
		return Ceiling{}, errors.New("ceiling: too little time to measure in")
	}
	if err := client.CheckFiles(2 * streamSlots); err != nil {
		return Ceiling{}, err
	}
	requests, err := saturate(ctx, took/2, requestSlots, 1)
	if err != nil {
		return Ceiling{}, err
	}
	events, err := saturate(ctx, took/2, streamSlots, streamTokens)
	if err != nil {
		return Ceiling{}, err
	}
	m := host.This()
	c := Ceiling{Requests: requests.rate(requests.requests), Events: events.rate(events.events), Cores: m.Cores, Machine: machine(m), Version: version,
		RequestCPU: requests.cpu(requests.requests), EventCPU: events.cpu(events.events)}
	c.Streams = int(c.Events / streamRate)
	for _, limit := range []int64{host.FileLimit() - host.OpenFiles(), host.LocalPorts()} {
		if limit > 0 {
			c.Streams = min(c.Streams, int(limit))
		}
	}
	return c, nil
}

func machine(m host.Machine) string {
	return fmt.Sprintf("%s, %d cores, %s/%s", m.CPU, m.Cores, m.OS, m.Arch)
}

// share is how much of the ceiling a load takes, in requests and events per second: 1 is
// all of it. Both take the same cores, so that their shares add up; the first event of a
// request is in the request.
func (c Ceiling) share(requests, events float64) float64 {
	return requests/c.Requests + max(events-requests, 0)/c.Events
}

// Machines is on how many such machines a load, in requests and events per second, leaves on
// time.
func (c Ceiling) Machines(requests, events float64) int {
	return max(int(math.Ceil(c.share(requests, events)/comfort-1e-9)), 1)
}

// Warning says that a load, in requests and events per second, is more than this machine
// sends on time, and on how many such machines it would be; "" where it is not.
func (c Ceiling) Warning(requests, events float64) string {
	share := c.share(requests, events)
	if share <= comfort {
		return ""
	}
	return fmt.Sprintf("the busiest second has %.0f requests and %.0f tokens, %.0f %% of what this machine can send (%.0f requests/s or %.0f events/s, by reprise check --self). Above %.0f %% requests may leave late: send the workload from %d machines, each a part of the sessions (--shard)",
		requests, events, 100*share, c.Requests, c.Events, 100*comfort, c.Machines(requests, events))
}

// WriteText writes the ceiling for people; path is where it was saved.
func (c Ceiling) WriteText(w io.Writer, path string) error {
	_, err := fmt.Fprintf(w, `Requests   %.0f a second, of answers of one token; %.0f µs of CPU each
Events     %.0f a second, of %d streams at once; %.1f µs of CPU each
Streams    %d at once, of %d events a second each
Measured on %s, against a server in the same process, whose
CPU is in these figures. A replay warns before its start when its busiest second
takes more than %.0f %% of this. Saved in %s
`, c.Requests, c.RequestCPU, c.Events, streamSlots, c.EventCPU, c.Streams, streamRate, c.Machine, 100*comfort, path)
	return err
}

// A saturation counts what came of sending as fast as the machine can.
type saturation struct {
	requests, events, failed int64
	first, last              int64 // ns: the first sent, the last done
	cores                    float64
	class                    string // of the last failure
}

func (s *saturation) rate(n int64) float64 {
	if s.last <= s.first {
		return 0
	}
	return float64(n) / (float64(s.last-s.first) / 1e9)
}

// cpu is the CPU of one in microseconds.
func (s *saturation) cpu(n int64) float64 {
	return s.cores / max(s.rate(n), 1) * 1e6
}

// Write implements trace.Writer.
func (s *saturation) Write(rows []result.Result) (int, error) {
	for i := range rows {
		r := &rows[i]
		if r.Error != "" || r.SentNS == nil || r.DoneNS == nil {
			s.failed++
			s.class = r.Error
			continue
		}
		if s.requests == 0 {
			s.first = *r.SentNS
		}
		s.requests++
		s.events += int64(r.Events)
		s.first, s.last = min(s.first, *r.SentNS), max(s.last, *r.DoneNS)
	}
	return len(rows), nil
}

// saturate replays in a closed loop against a server of its own.
func saturate(ctx context.Context, took time.Duration, slots, tokens int) (*saturation, error) {
	server, err := newCannedServer(tokens)
	if err != nil {
		return nil, err
	}
	endpoint, err := client.New(client.Options{URL: "http://" + server.listener.Addr().String(), API: result.APICompletions, Model: "canned",
		Connections: client.Pooled, Proxy: "none", NoTraceHeaders: true})
	if err != nil {
		server.close()
		return nil, err
	}
	defer server.close()
	defer endpoint.Close()
	r := replay.Runner{Prompter: fixedPrompt{}, Endpoint: endpoint,
		Options: replay.Options{Concurrency: slots, Duration: took, Endless: true, Grace: 5 * time.Second}}
	out := &saturation{}
	run, err := r.Run(ctx, sameRow{tokens}, out)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case out.requests == 0 || out.failed > out.requests/100:
		return nil, fmt.Errorf("ceiling: %d of %d requests over loopback failed (%s)", out.failed, out.requests+out.failed, out.class)
	}
	out.cores = run.ClientCPU
	return out, nil
}

// sameRow is a workload without end of one row.
type sameRow struct{ tokens int }

// Read implements trace.Reader.
func (s sameRow) Read(rows []trace.Request) (int, error) {
	for i := range rows {
		rows[i] = trace.Request{InputTokens: 100, OutputTokens: trace.Ptr(int32(s.tokens))}
	}
	return len(rows), nil
}

// fixedPrompt makes one prompt of some hundred tokens.
type fixedPrompt struct{}

// Prompt implements result.Prompter.
func (fixedPrompt) Prompt(_ *trace.Request, buf []byte) ([]byte, error) {
	for range 100 {
		buf = append(buf, " word"...)
	}
	return buf, nil
}

// Tokens implements result.Prompter.
func (fixedPrompt) Tokens(_ *trace.Request, buf []uint32) ([]uint32, error) {
	for range 100 {
		buf = append(buf, 1)
	}
	return buf, nil
}
