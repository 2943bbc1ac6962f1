package job

import (
	"errors"
	"math"
	"slices"
	"time"

	"reprise/replay/ceiling"
)

// A Demand is a load that is wanted.
type Demand struct {
	Rate     float64       // requests per second
	Tokens   float64       // of an answer, on average
	Latency  time.Duration // of a request, on average
	Length   time.Duration // of the run
	Servers  int           // addresses that requests go to
	Pooled   bool          // connections are used again; else each request has its own
	ClockOff time.Duration // how far the clocks of two machines may be apart
}

// A Machine is what one machine, or pod, of those that are to send has.
type Machine struct {
	Ceiling ceiling.Ceiling
	Ports   int64 // local ports for connections to one address; 0 is not known
	Files   int64 // open files
}

// A Need is how many machines one resource asks for.
type Need struct {
	Resource string  `json:"resource"`
	Machines int     `json:"machines"`
	Has      float64 `json:"one_machine_has"`
	Asked    float64 `json:"all_ask_for"`
	Says     string  `json:"says"` // in what, in words
}

// A Plan says how many machines a load takes, by what runs out first.
type Plan struct {
	Machines int    `json:"machines"`
	Needs    []Need `json:"needs"` // the one that breaks first before the others
	// InFlight are requests, and connections that the servers hold, at once.
	InFlight float64 `json:"in_flight"`
	Events   float64 `json:"events_per_second"`
	// Unordered is how many requests are due within the clocks' distance: which of two of
	// different machines was first is not known there.
	Unordered  float64 `json:"due_within_clock_offset"`
	Rows       float64 `json:"rows"`
	Bytes      float64 `json:"result_bytes"`             // of all results
	BytesASec  float64 `json:"journal_bytes_per_second"` // written while it runs, all machines together
	MachineSec float64 `json:"journal_bytes_per_second_of_one"`
	MergeBytes float64 `json:"merge_memory_bytes"`
}

// Bytes of a request in files: measured, see docs/scale.md. A part is for each token.
const (
	resultBytesRow, resultBytesToken   = 34.0, 4.5
	journalBytesRow, journalBytesToken = 306.0, 18.0
	mergeBytesRow                      = 16
)

// portRest is how long a local port rests after its connection was closed: Linux's TIME_WAIT.
const portRest = 60 * time.Second

// descriptors is what a process has open beside connections.
const descriptors = 16

// Plan says how many machines like m a demand takes.
func (d Demand) Plan(m Machine) (p Plan, err error) {
	if !(d.Rate > 0) || !(d.Tokens >= 1) || d.Latency <= 0 || d.Length <= 0 || d.Servers < 1 || !(m.Ceiling.Requests > 0) || !(m.Ceiling.Events > 0) {
		return p, errors.New("a plan needs a rate, tokens, a latency, a duration, a server and a ceiling that was measured")
	}
	p.InFlight, p.Events = d.Rate*d.Latency.Seconds(), d.Rate*d.Tokens
	p.Needs = []Need{{"sending", m.Ceiling.Machines(d.Rate, p.Events), m.Ceiling.Requests, d.Rate, "requests/s, with their tokens, at 60 % of what one sends"}}
	if m.Ports > 0 {
		has := float64(m.Ports) * float64(d.Servers)
		p.Needs = append(p.Needs, Need{"ports", machines(p.InFlight, has), has, p.InFlight, "requests in flight, by local ports to each server"})
		if !d.Pooled {
			rests := d.Rate * (d.Latency + portRest).Seconds()
			p.Needs = append(p.Needs, Need{"ports that rest", machines(rests, has), has, rests, "connections in flight or closed in the last 60 s, with a connection for each request and closed by the client"})
		}
	}
	if m.Files > descriptors {
		has := float64(m.Files - descriptors)
		p.Needs = append(p.Needs, Need{"open files", machines(p.InFlight, has), has, p.InFlight, "connections at once"})
	}
	slices.SortStableFunc(p.Needs, func(a, b Need) int { return b.Machines - a.Machines })
	p.Machines = p.Needs[0].Machines
	p.Unordered = d.Rate * d.ClockOff.Seconds()
	p.Rows = d.Rate * d.Length.Seconds()
	p.Bytes = p.Rows * (resultBytesRow + resultBytesToken*d.Tokens)
	p.BytesASec = d.Rate * (journalBytesRow + journalBytesToken*d.Tokens)
	p.MachineSec = p.BytesASec / float64(p.Machines)
	p.MergeBytes = mergeBytesRow * p.Rows
	return p, nil
}

func machines(asked, has float64) int { return max(int(math.Ceil(asked/has-1e-9)), 1) }
