package synth

import (
	"errors"

	"reprise/trace"
)

// Tiers of releases.
const (
	TierPartner = "partner"
	TierPublic  = "public"
)

// Units of privacy: what may be added to a trace or taken away without being
// noticed.
const (
	UnitUser    = "user"
	UnitSession = "session"
	UnitRequest = "request" // protects one request, not a person
)

// ε above WarnEpsilon protects little; above MaxEpsilon, for all releases of one
// source together, it hardly protects.
const (
	WarnEpsilon = 4
	MaxEpsilon  = 10
)

// ErrNoUnit is the error for a trace without users and sessions.
var ErrNoUnit = errors.New("the trace names neither users nor sessions of its source, so requests cannot be assigned " +
	"to people; the unit request would protect single requests, not people")

// ErrNoCapture is the error for a trace without a declared capture.
var ErrNoCapture = errors.New(
	"the trace has no declared capture window. Its times count from the first request, which is one person's, " +
		"so noise for one user would not hide that user. Import the source again with its window: reprise import … " +
		"--capture-begin T --capture-end T")

// Publishable says why no release can be made of the trace that meta describes, whatever
// its rows: of its tier, or [ErrNoCapture].
func Publishable(meta trace.Meta) error {
	switch {
	case meta.Tier == TierPartner:
		return errors.New("its tier is partner: its rows depend on the rows of other users, so noise for one user " +
			"would not protect that user. Fit the trace of tier internal")
	case meta.Tier == TierPublic:
		return errors.New("it is already public")
	case !meta.Capture.Declared():
		return ErrNoCapture
	}
	return nil
}

// ChooseUnit says what a trace can protect: users, else sessions of its source.
func ChooseUnit(src trace.Reader[trace.Request], meta trace.Meta) (string, error) {
	found := errors.New("found")
	err := trace.Each(src, func(_ int64, r *trace.Request) error {
		if r.User != nil {
			return found
		}
		return nil
	})
	switch {
	case errors.Is(err, found):
		return UnitUser, nil
	case err != nil:
		return "", err
	case meta.Sessions == sessionsOfSource:
		return UnitSession, nil
	}
	return "", ErrNoUnit
}
