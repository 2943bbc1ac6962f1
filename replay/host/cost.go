package host

import (
	"math"
	"os"
	"runtime/metrics"
	"time"
)

// A Cost measures the resources of the machine that a run used. A client that is short
// of processor time, or that its garbage collector stops, measures itself in place of
// the server.
type Cost struct {
	from   time.Time
	cpu    time.Duration
	pauses []uint64
	limits *cpuCounters
}

// Begin starts the measurement.
func (c *Cost) Begin() {
	c.from, c.cpu = time.Now(), CPUTime()
	c.pauses = readPauses().Counts
	c.limits = readCPUCounters(os.DirFS("/"))
}

// CPU is what kept the process from the machine's cores since Begin; nil where the
// system does not say.
func (c *Cost) CPU() *CPULimits { return readCPUCounters(os.DirFS("/")).since(c.limits) }

// End returns the mean number of cores used since Begin, and the longest pause
// for the garbage collector in nanoseconds, rounded up to an edge of the
// runtime's histogram, whose buckets are at most a quarter wide.
func (c *Cost) End() (cores float64, pauseNS int64) {
	if wall := time.Since(c.from); wall > 0 {
		cores = float64(CPUTime()-c.cpu) / float64(wall)
	}
	h := readPauses()
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if i < len(c.pauses) && h.Counts[i] > c.pauses[i] {
			edge := h.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = h.Buckets[i]
			}
			return cores, int64(edge * 1e9)
		}
	}
	return cores, 0
}

func readPauses() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return &metrics.Float64Histogram{}
	}
	return s[0].Value.Float64Histogram()
}
