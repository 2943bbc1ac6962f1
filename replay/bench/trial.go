package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
)

// A Trial is one measured run to make.
type Trial struct {
	Name     string // for people
	Workload string // file of the trace or workload that is sent
	Load     Load
	Seed     string // of prompts and arrivals; "" takes the workload's
	// of the prompts in place of Seed, where the cache is to be cold and the server cannot empty it; "" is one that no
	// run had
	ColdSeed string
	Duration time.Duration // nothing is sent that is due later; 0 is the whole workload
	Loop     bool          // play the workload again and again until Duration is over
	Rows     int64         // send only so many, the first; 0 is all

	Warmup, Cooldown string        // requests or times that are not measured, see [replay.ParseSpan]
	Timeout          time.Duration // of one request; 0 is the target's own, of an engine in virtual time none
	Cache            string        // what the prefix cache holds before: see [result.CacheCold]; "" is as it is
	Note             string        // to keep in the results

	// Session is of a load by session; nil plays trees as a replay without flags does.
	Session *SessionTrial `json:",omitempty"`

	// Series is the seed of what differs between runs of one series, as the noise of engines
	// in virtual time does, and Run the place of this one among them, from 0.
	Series, Run uint64

	Results string // Parquet file to write
}

// ArrivalStream names the random stream that the arrivals of a run are drawn from, by the seed of its trial:
// who draws from it knows before the run when its requests will be due.
const ArrivalStream = "replay arrivals"

// A Target makes trials.
type Target interface {
	// Run makes the trial and writes its results, whole or not at all. That the
	// results cannot be trusted is no error: they say so themselves.
	Run(ctx context.Context, t Trial) error
}

// Summarise summarises a results file and, when there is one beside it, what was
// measured at the servers.
func Summarise(path string, o report.Options) (report.Summary, error) {
	results, err := result.Open(path)
	if err != nil {
		return report.Summary{}, err
	}
	defer results.Close()
	switch metrics, err := result.OpenMetrics(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return report.Summary{}, err
	default:
		defer metrics.Close()
		if metrics.Started == results.Run.Started { // else an earlier run left it
			o.Metrics = metrics.Reader
		}
	}
	if err := o.AddSteady(results.Run, results.Reader); err != nil {
		return report.Summary{}, err
	}
	return report.Summarise(results.Run, results.Reader(), o)
}

// A Load says when requests are sent: at recorded times, unless one of its fields
// says otherwise.
type Load struct {
	Rate        string        // an arrival process such as "poisson:5", in requests per second
	Concurrency int           // requests in flight of a closed loop
	RampUp      time.Duration // until all of the Concurrency have begun, one after another
	Speed       float64       // of recorded times; 0 is 1

	Sessions    int    `json:",omitempty"` // session trees that are live, of a closed loop
	SessionRate string `json:",omitempty"` // an arrival process of session trees
}

// allAtOnce is the rate of a burst.
const allAtOnce = "inf"

// ParseLoad reads a load as suites have it.
func ParseLoad(s string) (Load, error) {
	notALoad := &quantity.Error{Text: s, Want: "a load", Examples: [3]string{"recorded", "concurrency:8", "300/min"}}
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
		speed, err := quantity.Factor(value)
		if !ok || err != nil || speed > 1e9 {
			return Load{}, notALoad
		}
		if speed == 1 { // as the trace is, which is one load however it is written
			return Load{}, nil
		}
		return Load{Speed: speed}, nil
	case strings.HasPrefix(s, "session-rate:"):
		process, err := arrival.ParseProcess(strings.TrimPrefix(s, "session-rate:"))
		if err != nil {
			return Load{}, err
		}
		return Load{SessionRate: process.String()}, nil
	case strings.HasPrefix(kind, "concurrency:"), strings.HasPrefix(kind, "sessions:"):
		var l Load
		kind, number, _ := strings.Cut(kind, ":")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 1<<20 {
			return Load{}, notALoad
		}
		if l.Concurrency = n; kind == "sessions" {
			l.Concurrency, l.Sessions = 0, n
		}
		if option == "" {
			return l, nil
		}
		value, ok := strings.CutPrefix(option, "ramp-up=")
		if l.RampUp, err = quantity.Duration(value); !ok || err != nil || l.RampUp == 0 {
			return Load{}, notALoad
		}
		return l, nil
	}
	process, err := arrival.ParseProcess(s)
	switch {
	case errors.As(err, new(*quantity.Error)): // not even the kind of a process
		return Load{}, notALoad
	case err != nil:
		return Load{}, err
	case !strings.Contains(s, ":"): // a rate alone
		s = process.String()
	}
	return Load{Rate: s}, nil
}

// String names the load, for messages and tables, as [ParseLoad] reads it.
func (l Load) String() string {
	switch {
	case l.Rate == allAtOnce:
		return "burst"
	case l.Rate != "":
		return l.Rate
	case l.SessionRate != "":
		return "session-rate:" + l.SessionRate
	case l.Concurrency+l.Sessions > 0:
		out := fmt.Sprintf("concurrency:%d", l.Concurrency)
		if l.Sessions > 0 {
			out = fmt.Sprintf("sessions:%d", l.Sessions)
		}
		if l.RampUp > 0 {
			out += fmt.Sprintf(",ramp-up=%v", l.RampUp)
		}
		return out
	case l.Speed != 0 && l.Speed != 1:
		return fmt.Sprintf("recorded,speed=%v", l.Speed)
	}
	return "recorded"
}
