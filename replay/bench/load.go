package bench

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/trace/arrival"
)

// A Load says when requests are sent: at recorded times, unless one of its fields
// says otherwise.
type Load struct {
	Rate        string        // an arrival process such as "poisson:5", in requests per second
	Concurrency int           // requests in flight of a closed loop
	RampUp      time.Duration // until all of the Concurrency have begun, one after another
	Speed       float64       // of recorded times; 0 is 1
}

// allAtOnce is the rate of a burst.
const allAtOnce = "inf"

var errLoad = errors.New("want recorded, recorded,speed=2, sequential, burst, concurrency:8, concurrency:8,ramp-up=30s, or an arrival process such as poisson:6 or constant:4")

// ParseLoad reads a load as suites have it.
func ParseLoad(s string) (Load, error) {
	kind, option, _ := strings.Cut(s, ",")
	switch {
	case s == "" || s == "recorded":
		return Load{}, nil
	case s == "sequential":
		return Load{Concurrency: 1}, nil
	case s == "burst":
		return Load{Rate: allAtOnce}, nil
	case kind == "recorded":
		value, ok := strings.CutPrefix(option, "speed=")
		speed, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil || !(speed > 0 && speed <= 1e9) {
			return Load{}, errLoad
		}
		return Load{Speed: speed}, nil
	case strings.HasPrefix(kind, "concurrency:"):
		return parseClosed(strings.TrimPrefix(kind, "concurrency:"), option)
	}
	if _, err := arrival.ParseProcess(s); err != nil {
		return Load{}, fmt.Errorf("%w: %w", errLoad, err)
	}
	return Load{Rate: s}, nil
}

func parseClosed(count, option string) (l Load, err error) {
	if l.Concurrency, err = strconv.Atoi(count); err != nil || l.Concurrency < 1 || l.Concurrency > 1<<20 {
		return Load{}, errLoad
	}
	if option == "" {
		return l, nil
	}
	value, ok := strings.CutPrefix(option, "ramp-up=")
	if l.RampUp, err = time.ParseDuration(value); !ok || err != nil || l.RampUp <= 0 {
		return Load{}, errLoad
	}
	return l, nil
}

// String names the load, for messages and tables, as [ParseLoad] reads it.
func (l Load) String() string {
	switch {
	case l.Rate == allAtOnce:
		return "burst"
	case l.Rate != "":
		return l.Rate
	case l.Concurrency > 0 && l.RampUp > 0:
		return fmt.Sprintf("concurrency:%d,ramp-up=%v", l.Concurrency, l.RampUp)
	case l.Concurrency > 0:
		return fmt.Sprintf("concurrency:%d", l.Concurrency)
	case l.Speed != 0 && l.Speed != 1:
		return fmt.Sprintf("recorded,speed=%v", l.Speed)
	}
	return "recorded"
}
