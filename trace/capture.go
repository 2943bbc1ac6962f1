package trace

import (
	"errors"
	"fmt"
	"time"
)

// A Capture is the window [Begin, End) within which a source was recorded, as its
// operator declared it. Nothing of it is taken from the rows, so it tells nothing
// of a person. The arrivals of a trace with a Capture count from Begin. The zero
// Capture is none.
type Capture struct {
	Begin, End time.Time // in UTC
	// Relative says that the source's clock shows no dates: Begin and End are as
	// far after 1970 began as they are after the zero of that clock.
	Relative bool
}

// captureZero is where the zero of a clock without dates stands.
var captureZero = time.Unix(0, 0).UTC()

// RelativeCapture is a window on a clock without dates.
func RelativeCapture(begin, end time.Duration) Capture {
	return Capture{captureZero.Add(begin), captureZero.Add(end), true}
}

// Declared reports whether there is a window.
func (c Capture) Declared() bool { return !c.End.IsZero() }

// Length is how long the window is; 0 where none is declared.
func (c Capture) Length() time.Duration { return c.End.Sub(c.Begin) }

// Outside says how far t is outside the window, or "" where it is inside.
func (c Capture) Outside(t time.Time) string {
	switch {
	case t.Before(c.Begin):
		return fmt.Sprintf("its time is %v before the declared begin of the capture", c.Begin.Sub(t))
	case !t.Before(c.End):
		return fmt.Sprintf("its time is %v after the declared end of the capture, which is not part of it",
			t.Sub(c.End))
	}
	return ""
}

// Slice is the window of the rows that arrive in [from, to) nanoseconds after
// Begin; to 0 is its end. ok is false where nothing of the window is left. Without
// a window there is none of a slice.
func (c Capture) Slice(from, to int64) (part Capture, ok bool) {
	if !c.Declared() {
		return c, true
	}
	end := int64(c.Length())
	if to == 0 || to > end {
		to = end
	}
	part = Capture{c.Begin.Add(time.Duration(from)), c.Begin.Add(time.Duration(to)), c.Relative}
	return part, from < to
}

// Undated is the window of a release: as long, on a clock without dates that
// begins with it. What the clock on the wall showed stays with the source.
func (c Capture) Undated() Capture {
	if !c.Declared() {
		return c
	}
	return RelativeCapture(0, c.Length())
}

// Texts are Begin and End as metadata have them: in RFC 3339, or as durations such
// as 0s where Relative. Both are empty without a window.
func (c Capture) Texts() (begin, end string) {
	switch {
	case !c.Declared():
		return "", ""
	case c.Relative:
		return c.Begin.Sub(captureZero).String(), c.End.Sub(captureZero).String()
	}
	return c.Begin.Format(time.RFC3339Nano), c.End.Format(time.RFC3339Nano)
}

// Check refuses a window that is empty, or outside the years 1970 to 2200.
func (c Capture) Check() error {
	switch {
	case !c.Begin.Before(c.End):
		return errors.New("the capture window is empty: its begin must be before its end")
	case c.Begin.Before(captureZero) || c.End.Year() > 2200:
		return errors.New("the capture window is not within the years 1970 to 2200")
	}
	return nil
}

var errCapture = errors.New("its capture window is not two instants or two durations, the begin before the end")

// parseCapture reads what Texts wrote.
func parseCapture(begin, end string) (Capture, error) {
	if begin == "" && end == "" {
		return Capture{}, nil
	}
	var c Capture
	from, err := time.ParseDuration(begin)
	to, err2 := time.ParseDuration(end)
	if err == nil && err2 == nil {
		c = RelativeCapture(from, to)
	} else {
		c.Begin, err = time.Parse(time.RFC3339Nano, begin)
		c.End, err2 = time.Parse(time.RFC3339Nano, end)
		if err != nil || err2 != nil {
			return Capture{}, errCapture
		}
		c.Begin, c.End = c.Begin.UTC(), c.End.UTC()
	}
	if c.Check() != nil {
		return Capture{}, errCapture
	}
	return c, nil
}
