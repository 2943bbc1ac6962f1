package peerfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"reprise/replay/report"
)

// members calls each for the members of the object that comes next, which must take the
// value of its key.
func members(d *json.Decoder, each func(key string) error) error {
	return within(d, '{', func() error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		return each(key.(string))
	})
}

// elements calls each before every element of the array that comes next. A null has none.
func elements(d *json.Decoder, each func(i int) error) error {
	i := -1
	return within(d, '[', func() error {
		i++
		return each(i)
	})
}

var errShape = errors.New("a value has another type than in the files of this tool")

func within(d *json.Decoder, open json.Delim, each func() error) error {
	token, err := d.Token()
	switch {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != open:
		return errShape
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// skip passes over the value that comes next, and keeps nothing of it.
func skip(d *json.Decoder) error {
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// nanoseconds converts a time in units of per nanoseconds. A time that no run can have is
// an error.
func nanoseconds(v, per float64) (int64, error) {
	ns := math.Round(v * per)
	if !(math.Abs(ns) <= report.MaxInstant) {
		return 0, fmt.Errorf("a time of %g s is longer than a run can be", v*per/1e9)
	}
	return int64(ns), nil
}

const (
	perSecond = 1e9 // nanoseconds
	perMilli  = 1e6
)

// epochNS is an instant of Unix time in nanoseconds, within the whole numbers of a float64
// and the years that clocks show.
func epochNS(seconds float64) *int64 {
	return new(int64(math.Round(min(max(seconds, 0), 1<<33) * 1e9)))
}
