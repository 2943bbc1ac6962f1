package synth

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"reprise/trace"
)

// Values of trace.Meta.Sessions.
const (
	sessionsOfSource = "source"
	sessionsInferred = "inferred"
)

// Options say what to generate from a [Model]. There are two ways to more load,
// and they differ: more Users bring more sessions side by side, with the same
// think times, and push each other's prefixes deeper into the LRU stack; a
// higher Speed brings the same requests in less time, and leaves distances as
// they are.
type Options struct {
	Seed uint64
	// Requests is how many requests to generate. Beyond those fitted the
	// process continues: see [Model.Generate]. 0 means as many as Duration says.
	Requests int64
	// Duration is the length of the workload. 0, without Requests, means that
	// of the trace divided by Speed.
	Duration time.Duration
	// Users is the number of independent populations, each the size of the
	// trace's; 0 means 1. They share the prefixes that more than half of the
	// requests of a cache domain carry, and nothing else.
	Users int
	// SharedAbove, when above 0, makes the course of the rate common to all
	// populations, as far as it is slower than that: day and night. Otherwise each has
	// it turned by a phase of its own.
	SharedAbove time.Duration
	// Speed divides all times; 0 means 1.
	Speed float64
	// Progress, when not nil, is called with the number of requests placed so
	// far, now and then, from any goroutine.
	Progress func(requests int64)
}

// GeneratedSource begins [trace.Meta].SourceFormat of what was generated.
const GeneratedSource = "synth of "

// A Workload is what [Model.Generate] made. It can be read any number of times.
type Workload struct {
	model       *Model
	options     Options
	populations []population
	rows        int64
	first       int64 // time of the first arrival
	prefix      int32 // blocks of the global prefix
}

// Rows is the number of requests.
func (w *Workload) Rows() int64 { return w.rows }

// Meta describes the workload: as the trace that the model was fitted to, with
// its tier and card; the seed; and a line that names the model. It has no
// digest, which the writer of the rows adds.
func (w *Workload) Meta() trace.Meta {
	meta := w.model.meta
	meta.Digest = ""
	meta.Seed = strconv.FormatUint(w.options.Seed, 10)
	meta.SourceFormat = w.model.describe(w.options)
	meta.Sessions, meta.SessionDoubt = w.model.sessions(), ""
	if meta.BlockSize > 0 {
		meta.Convention, meta.Categories = trace.PartialTail, trace.CategoryRule
	}
	return meta
}

// sessions says where the sessions of a workload are from; empty for none. Requests of a trace in which
// none were found have none either. In a model of histograms, which have no requests, and of a version
// that did not keep inferred sessions, they are those of prefixes.
func (m *Model) sessions() string {
	switch {
	case m.sourced && m.meta.Sessions == sessionsInferred:
		return sessionsInferred
	case m.sourced:
		return sessionsOfSource
	case m.meta.BlockSize > 0 && (m.cells != nil || m.meta.Sessions == sessionsInferred):
		return sessionsInferred
	}
	return ""
}

// describe says in one line where a workload comes from: with 12 digits of the
// model's digest, what was asked for beside the seed, and of how many requests the
// model is if they are few.
func (m *Model) describe(o Options) string {
	s := GeneratedSource + cmp.Or(m.meta.SourceFormat, "a trace") + ", model " +
		strings.TrimPrefix(m.meta.Digest, "sha256:")[:12]
	if m.cells == nil {
		s += ", k_swap " + strconv.Itoa(m.kSwap)
	}
	if m.few() {
		s += fmt.Sprintf(", fitted to %d requests (few: below %d)", len(m.places), FewRequests)
	}
	if m.sampled != nil {
		s += fmt.Sprintf(", one in %d prefix trees", m.sampled.OneIn)
	}
	if o.Users > 1 {
		s += ", users " + strconv.Itoa(o.Users)
		if o.SharedAbove > 0 {
			s += ", shared above " + o.SharedAbove.String()
		}
	}
	if o.Speed != 1 {
		s += ", speed " + strconv.FormatFloat(o.Speed, 'g', -1, 64)
	}
	return s
}

// prepare finds where the workload begins and how deep its global prefix is:
// the deepest block that more than half of its requests with blocks carry, be
// it on a trunk, which all populations share, or in one population.
func (w *Workload) prepare() {
	w.first = -1
	blocked := int64(0)
	// by template and depth: requests that follow what is shared so far and no further
	ends := make([][]int64, len(w.model.templates))
	for i := range w.populations {
		c := &w.populations[i]
		w.rows += int64(len(c.tail))
		if len(c.times) > 0 && (w.first < 0 || c.times[0] < w.first) {
			w.first = c.times[0]
		}
		for r, x := range c.forest.leaf {
			if x == none {
				continue
			}
			blocked++
			if depth := c.overlap[r]; depth > 0 {
				t := templateAt(w.model.templates, c.template[r], depth)
				depth -= w.model.templates[t].from
				if n := int(depth) + 1 - len(ends[t]); n > 0 {
					ends[t] = append(ends[t], make([]int64, n)...)
				}
				ends[t][depth]++
			}
		}
	}
	for t := len(ends) - 1; t >= 0; t-- { // what goes on from others comes after them
		carriers, of := int64(0), w.model.templates[t]
		for depth := len(ends[t]) - 1; depth > 0; depth-- {
			if carriers += ends[t][depth]; 2*carriers > blocked {
				w.prefix = max(w.prefix, of.from+int32(depth))
			}
		}
		if of.up != none && carriers > 0 {
			up := of.from - w.model.templates[of.up].from
			if n := int(up) + 1 - len(ends[of.up]); n > 0 {
				ends[of.up] = append(ends[of.up], make([]int64, n)...)
			}
			ends[of.up][up] += carriers
		}
	}
	// More than half of all requests may carry blocks of one population,
	// below its trunk.
	for i := range w.populations {
		f := &w.populations[i].forest
		for _, s := range f.common(nil, 1)[0] {
			for k, carriers := range s.carriers {
				if 2*carriers > blocked {
					w.prefix = max(w.prefix, f.runs[s.run].start+int32(k)+1)
				}
			}
		}
	}
}

func (o *Options) check() error {
	o.Users = max(o.Users, 1)
	if o.Speed == 0 {
		o.Speed = 1
	}
	switch {
	case o.Users > 1<<16:
		return fmt.Errorf("more than %d populations of users", 1<<16)
	case !(o.Speed > 0) || math.IsInf(o.Speed, 0):
		return errors.New("the speed must be above 0")
	case o.Requests < 0 || o.Duration < 0 || o.SharedAbove < 0:
		return errors.New("neither requests nor a duration can be negative")
	case o.Requests > 0 && o.Duration > 0:
		return errors.New("give requests or a duration, not both: the model's rate sets the other")
	}
	return nil
}
