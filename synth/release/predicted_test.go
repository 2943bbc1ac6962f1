package release_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/synth"
	"reprise/synth/release"
	"reprise/trace"
)

// A predictedLog is traffic whose release is held against its predicted errors.
type predictedLog struct {
	unit    string
	blocks  int // tokens of one, or 0
	heavy   float64
	turns   float64 // chance of one more
	perUser float64
}

// rows are requests of so many users, each with some sessions, and those of a heavy user, who
// sends so many times as much as all others.
func (c predictedLog) rows(r *rand.Rand, users int) (rows []trace.Request) {
	session, block := int64(0), uint64(1)
	add := func(user int64) int {
		at, input, n := r.Int64N(int64(50*time.Minute)), 20+int(math.Exp(6.3+r.NormFloat64())), 0
		var blocks []uint64
		for more := true; more && at < int64(time.Hour) && input < 100_000; more = r.Float64() < c.turns {
			output := 1 + min(4000, int(math.Exp(5.2+.9*r.NormFloat64())))
			q := trace.Request{ArrivalNS: at, Session: trace.Ptr(session), Status: trace.StatusOK, InputTokens: int32(input), OutputTokens: trace.Ptr(int32(output))}
			if c.unit == synth.UnitUser {
				q.User = trace.Ptr(user)
			}
			if c.blocks > 0 {
				for len(blocks) < (input+c.blocks-1)/c.blocks {
					blocks = append(blocks, block)
					block++
				}
				q.Blocks = slices.Clone(blocks)
				blocks = blocks[:input/c.blocks]
			}
			rows = append(rows, q)
			n++
			at += int64(time.Second) + int64(r.ExpFloat64()*float64(time.Minute))
			input += output + int(math.Exp(4+r.NormFloat64()))
		}
		session++
		return n
	}
	all := 0
	for u := range users {
		for more := true; more; more = r.Float64() < c.perUser {
			all += add(int64(u))
		}
	}
	for n := 0; float64(n) < c.heavy*float64(all); {
		n += add(int64(users))
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(a.ArrivalNS - b.ArrivalNS) })
	return rows
}

// How often errors of releases are above what is predicted of them. It takes minutes: run it
// by hand, with the number of logs of each kind in REPRISE_TEST_PREDICTED.
func TestPredictedErrors(t *testing.T) {
	logs, _ := strconv.Atoi(os.Getenv("REPRISE_TEST_PREDICTED"))
	if logs == 0 {
		t.Skip("it takes minutes: set REPRISE_TEST_PREDICTED to a number of logs")
	}
	for _, c := range []struct {
		name string
		log  predictedLog
	}{
		{"sessions", predictedLog{unit: synth.UnitSession, turns: .5}},
		{"sessions with blocks", predictedLog{unit: synth.UnitSession, blocks: 256, turns: .5}},
		{"users", predictedLog{unit: synth.UnitUser, turns: .5, perUser: .4}},
		{"users with blocks", predictedLog{unit: synth.UnitUser, blocks: 256, turns: .5, perUser: .4}},
		{"users with one of a tenth of the load", predictedLog{unit: synth.UnitUser, turns: .5, perUser: .4, heavy: .1}},
		{"users with one of half of the load", predictedLog{unit: synth.UnitUser, turns: .5, perUser: .4, heavy: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			above, any, refused := map[string]int{}, 0, 0
			var off [4][]float64
			for seed := range logs {
				r := rand.New(rand.NewPCG(7, uint64(seed)))
				rows := c.log.rows(r, 6000+r.IntN(6000))
				meta := trace.Meta{BlockSize: c.log.blocks, Convention: trace.PartialTail, Tier: "internal", Sessions: "source", Capture: trace.RelativeCapture(0, time.Hour)}
				o := release.Options{Budget: dp.Budget{Epsilon: []float64{1, 2, 8}[seed%3], Delta: 1e-6}, Unit: c.log.unit}
				m, _, err := release.Fit(t.Context(), &trace.SliceReader[trace.Request]{Rows: rows}, meta, o)
				if noisy := new(release.TooNoisy); errors.As(err, &noisy) {
					refused++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				w, err := m.Generate(release.Drawing{Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				var was, is anonymize.Reuse
				for i := range rows {
					was.Count(&rows[i], c.log.blocks)
				}
				if err := trace.Each(w.Reader(), func(_ int64, q *trace.Request) error { is.Count(q, c.log.blocks); return nil }); err != nil {
					t.Fatal(err)
				}
				p, once := m.Statement().Predicted, false
				by := func(a, b int64) float64 { return math.Abs(float64(a)/float64(b) - 1) }
				errs := []float64{by(is.Requests, was.Requests), by(is.InputTokens, was.InputTokens), by(is.OutputTokens, was.OutputTokens), 0}
				if c.log.blocks > 0 {
					errs[3] = math.Abs(*is.HitRatio() - *was.HitRatio())
				}
				for i, most := range []float64{p.Requests, p.Input, p.Output, p.Hit} {
					off[i] = append(off[i], errs[i]/max(1e-3, most))
					if errs[i] > most+.0005 {
						above[[]string{"requests", "input", "output", "hit"}[i]]++
						once = true
					}
				}
				if once {
					any++
				}
			}
			n := logs - refused
			says := fmt.Sprintf("%d logs, %d refused; above what is predicted: %v, any %d (%.0f %%); error over predicted, median and 95th percentile:", logs, refused, above, any, 100*float64(any)/float64(max(1, n)))
			for i := range off {
				slices.Sort(off[i])
				if n > 0 {
					says += fmt.Sprintf(" %.2f %.2f;", off[i][n/2], off[i][n*95/100])
				}
			}
			t.Log(says)
		})
	}
}
