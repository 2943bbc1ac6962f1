package audit

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

const (
	starts    = 16     // how many of the first requests of the source are tried as the first of the release
	timesLike = 20_000 // how many times of a release are compared with those of the source; more add nothing
)

// times looks whether instants of the source come out, to the nanosecond and but
// for the distance by which all are moved; and whether arrivals and pauses lie
// nearer to those of the source than chance explains.
func times(ctx context.Context, c *Case) Finding {
	tier := c.Output.Tier()
	if tier != anonymize.Partner && tier != anonymize.Public {
		return skipped("it is of tiers partner and public: tier internal keeps exact times, and says so")
	}
	src, err := c.Before(ctx)
	if err != nil {
		return broken(err)
	}
	source, err := clockOf(ctx, src, int64(quantum))
	if err != nil {
		return broken(err)
	}
	out, err := clockOf(ctx, sourceOf(c.Output.Trace), int64(quantum))
	if err != nil {
		return broken(err)
	}
	first := source.first
	if src.Meta.Capture.Declared() {
		first = append([]int64{0}, first...) // that of the release counts from the same begin
	}
	most, n := 0, len(out.arrivals)
	for _, from := range first {
		same := 0
		for _, at := range out.arrivals {
			if at == 0 {
				continue // the first is 0 in every trace without a declared capture
			}
			if _, ok := slices.BinarySearch(source.arrivals, at+from); ok {
				same++
			}
		}
		most = max(most, same)
	}
	// By chance each instant that comes out is one of the source with this share.
	instants := slices.Compact(slices.Clone(source.arrivals))
	chance := float64(len(instants)) / math.Max(float64(source.last), 1)
	fig := Figures{"rows": n, "instants_of_the_source": most, "expected_by_chance": chance * float64(n)}
	if n < 10 {
		return inconclusive(fig, "%d rows are too few to tell times by", n)
	}
	if limit := 3 + 10*chance*float64(n); float64(most) > limit {
		return failed(fig, "%d instants of %d equal the source's to the nanosecond", most, n)
	}
	var worst nearTimes
	for _, from := range first {
		worst = worst.worse(nearness("arrivals", instants, out.arrivals, from, quantum))
	}
	worst = worst.worse(nearness("pauses between requests", source.pauses, out.pauses, 0, quantum))
	worst = worst.worse(nearness("pauses between turns of a session", source.turns, out.turns, 0, quantum))
	fig["nearest"] = worst
	if worst.found() {
		return failed(fig, "%s", worst)
	}
	return passed(fig, "instants of the source do not come out, and no times lie near them")
}

// quantum bounds the distances at which times are compared.
const quantum = time.Second

// A clock holds the times of a trace, each list in ascending order. Pauses shorter
// than a quantum say nothing: within it all times are drawn anew.
type clock struct {
	arrivals      []int64
	pauses, turns []int64 // between requests next to each other, and turns of a session
	first         []int64 // arrivals of the first rows
	last          int64
}

func clockOf(ctx context.Context, src anonymize.Source, quantum int64) (c clock, err error) {
	before := map[int64]int64{} // last turn of each session
	err = eachRow(ctx, src, func(row int64, r *trace.Request) error {
		if row < starts {
			c.first = append(c.first, r.ArrivalNS)
		}
		if d := r.ArrivalNS - c.last; row > 0 && d >= quantum {
			c.pauses = append(c.pauses, d)
		}
		if r.Session != nil {
			if was, ok := before[*r.Session]; ok && r.ArrivalNS-was >= quantum {
				c.turns = append(c.turns, r.ArrivalNS-was)
			}
			before[*r.Session] = r.ArrivalNS
		}
		c.arrivals, c.last = append(c.arrivals, r.ArrivalNS), r.ArrivalNS
		return nil
	})
	slices.Sort(c.arrivals)
	slices.Sort(c.pauses)
	slices.Sort(c.turns)
	return c, err
}

// A nearTimes says how many times of a release lie near one of the source, and how
// many do once they are moved a little, which is chance.
type nearTimes struct {
	Of     string        `json:"of"`
	Times  int           `json:"times"` // that were compared
	Within time.Duration `json:"within_ns"`
	Near   int           `json:"near"`
	Chance float64       `json:"by_chance"`
}

// nearness compares times with those of the source, which are sorted, at several distances
// up to a thirty-second of the quantum, or of the whole trace where that is shorter. Chance is what the same times show
// when each is moved by a few such distances, and by whole milliseconds, since logs often count in these. An honest
// time is drawn from the whole quantum, so both are about equal.
func nearness(of string, source, times []int64, from int64, quantum time.Duration) (worst nearTimes) {
	if len(source) == 0 {
		return worst
	}
	step := (len(times) + timesLike - 1) / timesLike
	for within := time.Microsecond; within <= min(quantum, time.Duration(source[len(source)-1]))/32; within *= 4 {
		near := nearTimes{Of: of, Within: within}
		move := int64((4 * within).Truncate(time.Millisecond) + time.Millisecond)
		for i := 0; i < len(times); i += step {
			if of == "arrivals" && times[i] == 0 {
				continue // of every trace without a declared capture
			}
			near.Times++
			for at, shift := range [...]int64{0, move, -move, 2 * move, -2 * move} {
				v := times[i] + from + shift
				j, _ := slices.BinarySearch(source, v-int64(within))
				switch {
				case j == len(source) || source[j] > v+int64(within):
				case at == 0:
					near.Near++
				default:
					near.Chance += 0.25
				}
			}
		}
		worst = worst.worse(near)
	}
	return worst
}

// excess is how far what is near goes beyond chance; found says when it is too far. Chance may
// be half of what an honest release shows: where the source's clock is coarse, its
// instants lie at the edges of the quanta.
func (n nearTimes) excess() float64 {
	return float64(n.Near) - 2.5*n.Chance - 6*math.Sqrt(n.Chance) - 6
}
func (n nearTimes) found() bool { return n.excess() > 0 }

func (n nearTimes) worse(o nearTimes) nearTimes {
	if n.Of == "" || o.Of != "" && o.excess() > n.excess() {
		return o
	}
	return n
}

func (n nearTimes) String() string {
	return fmt.Sprintf("%d %s of %d lie within %v of one in the source; by chance %.1f would", n.Near, n.Of, n.Times,
		n.Within, n.Chance)
}
