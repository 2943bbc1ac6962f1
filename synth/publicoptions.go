package synth

import (
	"errors"

	"reprise/anonymize/dp"
	"reprise/trace"
)

// Tiers that a model may be of, beside those it inherits.
const (
	TierPublic  = "public"
	tierPartner = "partner"
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

// PublicOptions are the settings of [FitPublic]. But for Unit the zero value of
// each stands for its default.
type PublicOptions struct {
	Budget       dp.Budget       // ε = 1, δ = 1e-6
	Unit         string          // [UnitUser], [UnitSession] or [UnitRequest], see [ChooseUnit]; it has no default
	Contribution dp.Contribution // [dp.DefaultContribution]; of [UnitRequest], one record
	MaxInput     int32           // public limit of input tokens, such as the context window: 131072
	MaxOutput    int32           // of output tokens: 16384
	// Noise is nil, for the system's randomness. Only tests set it: whoever knows
	// the noise can take it off.
	Noise *dp.Noise
	// Progress, when not nil, is called with the number of rows read.
	Progress func(rows int64)
}

// ErrNoUnit is the error of [FitPublic] for a trace without users and sessions.
var ErrNoUnit = errors.New("the trace names neither users nor sessions of its source, so requests cannot be assigned to people; " +
	"the unit request would protect single requests, not people")

// ErrNoCapture is the error of [FitPublic] for a trace without a declared capture.
var ErrNoCapture = errors.New("the trace has no declared capture window. Its times count from the first request, which is one person's, " +
	"so noise for one user would not hide that user. Import the source again with its window: reprise import … --capture-begin T --capture-end T")

func (o *PublicOptions) defaults(meta trace.Meta) error {
	if o.Budget == (dp.Budget{}) {
		o.Budget = dp.Budget{Epsilon: 1, Delta: 1e-6}
	}
	if o.Contribution == (dp.Contribution{}) {
		o.Contribution = dp.DefaultContribution
	}
	if o.Unit == UnitRequest {
		o.Contribution = dp.Contribution{Records: 1, PerCell: 1}
	}
	if o.MaxInput == 0 {
		o.MaxInput = 131072
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 16384
	}
	if o.Noise == nil {
		o.Noise = dp.NewNoise()
	}
	switch {
	case o.Contribution.Records < 1 || o.Contribution.PerCell < 1 || o.Contribution.PerCell > o.Contribution.Records:
		return errors.New("a unit must contribute at least one record, and no more in a cell than overall")
	case o.MaxInput < 1 || o.MaxOutput < 1 || o.MaxInput > 1<<24 || o.MaxOutput > 1<<24:
		return errors.New("the public limits of lengths must be 1 to 16,777,216 tokens")
	}
	return Publishable(meta)
}

// Publishable says why no public model can be made of the trace that meta
// describes, whatever its rows: of its tier, or [ErrNoCapture].
func Publishable(meta trace.Meta) error {
	switch {
	case meta.Tier == tierPartner:
		return errors.New("its tier is partner: its rows depend on those of other users, so noise for one user would not protect that user. Fit the trace of tier internal")
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
