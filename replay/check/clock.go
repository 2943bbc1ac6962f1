package check

import (
	"context"
	"net/http"
	"slices"
	"time"

	"reprise/replay/client"
)

// RoundTripMS is how long a GET takes on a connection that is kept, in milliseconds.
type RoundTripMS struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	N      int     `json:"n"`
}

// A Clock says how far the server's clock is ahead, by its Date headers: between the two.
type Clock struct {
	FromS float64 `json:"ahead_from_s"`
	ToS   float64 `json:"ahead_to_s"`
}

// GETs that measure, and the time between them, which is a divisor of no second: the Date
// headers of several tell more of the clock than one.
const (
	trips     = 5
	tripEvery = 230 * time.Millisecond
)

// measureRoundTrips asks for the models several times.
func (r *Report) measureRoundTrips(ctx context.Context, a *client.Admin) {
	var all []client.RoundTrip
	for i := range trips + 1 {
		if i > 0 {
			select {
			case <-time.After(tripEvery):
			case <-ctx.Done():
				return
			}
		}
		// The first may dial.
		if trip, err := a.RoundTrip(ctx, true); err == nil && trip.Status == http.StatusOK && i > 0 {
			all = append(all, trip)
		}
	}
	if len(all) == 0 {
		return
	}
	var took []float64
	for _, t := range all {
		took = append(took, float64(t.Received.Sub(t.Sent))/1e6)
	}
	slices.Sort(took)
	r.RoundTripMS = &RoundTripMS{took[0], took[len(took)/2], len(took)}
	r.Clock = clockOf(all)
}

// clockOf is where the offset of the server's clock lies by each of the round trips. A
// server may write a date of up to a second ago, as uvicorn does. It is nil without dates,
// and where those of several machines do not agree.
func clockOf(all []client.RoundTrip) (c *Clock) {
	for _, t := range all {
		if t.Date.IsZero() {
			continue
		}
		from, to := t.Date.Sub(t.Received).Seconds(), t.Date.Add(2*time.Second).Sub(t.Sent).Seconds()
		if c == nil {
			c = &Clock{from, to}
			continue
		}
		c.FromS, c.ToS = max(c.FromS, from), min(c.ToS, to)
	}
	if c != nil && c.FromS > c.ToS {
		return nil
	}
	return c
}
