package flags

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/synth"
)

// Tier says by which rules a trace of a tier beyond internal is made.
type Tier struct {
	Name string
	anonymize.PartnerPolicy
	Public Public
}

// partnerNames are the flags of tier partner alone.
var partnerNames = []string{"k-share", "k-class", "k-link", "drop-own-blocks", "length-buckets", "time-quantum", "max-suppressed"}

// Register adds the flags. tier is the default, and tiers says in the help which there
// are.
func (f *Tier) Register(fl *pflag.FlagSet, tier, tiers string) {
	everyday, rest := Sections(fl, PrivacyFlags)
	everyday.StringVar(&f.Name, "tier", tier, "privacy tier of the trace: "+tiers)
	rest.StringVar(&f.Unit, "unit", "", "for --tier partner and public: unit of privacy: user, session or request. By default users, else the source's sessions")
	rest.IntVar(&f.KShare, "k-share", 5, "for --tier partner: fewest users that must have a block before it gets one id for all of them")
	rest.IntVar(&f.KClass, "k-class", 11, "for --tier partner: fewest users that must have a pair of lengths, or a name")
	rest.IntVar(&f.LinkK, "k-link", 0, "for --tier partner: fewest users whose sessions must have the same lengths for turns to stay linked; 0 or 1 keeps all links. Default: --k-class")
	rest.BoolVar(&f.DropOwn, "drop-own-blocks", false, "for --tier partner: do not link one user's requests by blocks that fewer than --k-share have (with --unit request: conversations)")
	rest.IntVar(&f.PerOctave, "length-buckets", 2, "for --tier partner: length buckets in an octave")
	rest.DurationVar(&f.Quantum, "time-quantum", time.Second, "for --tier partner: bins within which times are redrawn")
	rest.ShareVar(&f.Suppressed, "max-suppressed", 0.05, "for --tier partner: largest share of requests that may be left out")
	f.Public.register(fl)
}

// Check refuses flags that have no meaning for the tier.
func (f *Tier) Check(cmd *cobra.Command) error {
	fl := cmd.Flags()
	if fl.Changed("k-link") && f.LinkK == 0 {
		f.LinkK = 1
	}
	if f.Name != anonymize.Partner {
		for _, name := range partnerNames {
			if fl.Changed(name) {
				return cli.Usagef("--%s is for --tier %s", name, anonymize.Partner)
			}
		}
	}
	switch f.Name {
	case anonymize.Public:
		f.Public.Tier, f.Public.Unit = f.Name, f.Unit
		return f.Public.Check(cmd)
	case anonymize.Partner:
		return f.Public.refuse(fl, "ledger", "i-understand")
	}
	if fl.Changed("unit") {
		return cli.Usagef("--unit is for --tier %s and %s", anonymize.Partner, anonymize.Public)
	}
	return f.Public.refuse(fl)
}

// Public are the flags of --tier public, of synth fit, anonymize and import.
type Public struct {
	Tier, Unit          string // flags of the command, which may have other values for other tiers
	Budget              dp.Budget
	Ledger              string
	MaxInput, MaxOutput int32
	Understood          bool
}

// publicNames are the flags that [publicFlags.register] adds.
var publicNames = []string{"epsilon", "delta", "ledger", "max-input", "max-output", "i-understand"}

func (f *Public) register(fl *pflag.FlagSet) {
	_, rest := Sections(fl, PrivacyFlags)
	rest.NumberVar(&f.Budget.Epsilon, "epsilon", 1, "for --tier public: privacy budget ε; for synth fit --tier partner, by default 8")
	rest.NumberVar(&f.Budget.Delta, "delta", 1e-6, "for --tier public: δ; choose it far below 1/users")
	rest.StringVar(&f.Ledger, "ledger", "", "for --tier partner and public: `file` that adds up all releases of a source, beside that of the user. Default: TRACE.ledger.jsonl")
	rest.Int32Var(&f.MaxInput, "max-input", 131072, "for --tier public: limit of input tokens that is public, such as the context window")
	rest.Int32Var(&f.MaxOutput, "max-output", 16384, "for --tier public: limit of output tokens that is public")
	rest.BoolVar(&f.Understood, "i-understand", false, "allow an ε above 10, of all releases together, or with --tier partner rows that were released in other cells before")
}

// RegisterWithTier adds all flags of a command that has no other tier to give.
func (f *Public) RegisterWithTier(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, PrivacyFlags)
	everyday.StringVar(&f.Tier, "tier", "", "partner and public make differentially private models; by default the trace's tier")
	rest.StringVar(&f.Unit, "unit", "", "for --tier partner and public: unit of privacy: user, session or request. By default users, else the source's sessions")
	f.register(fl)
}

// refuse refuses flags that only tier public has, but for some.
func (f *Public) refuse(fl *pflag.FlagSet, but ...string) error {
	for _, name := range publicNames {
		if fl.Changed(name) && !slices.Contains(but, name) {
			return cli.Usagef("--%s is for --tier public", name)
		}
	}
	return nil
}

// Check refuses what does not go together.
func (f *Public) Check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if f.Tier == "" {
		if given("unit") {
			return cli.Usagef("--unit is for --tier partner and public")
		}
		return f.refuse(cmd.Flags())
	}
	if f.Tier == anonymize.Partner && !given("epsilon") {
		f.Budget.Epsilon = 8
	}
	switch {
	case f.Tier != synth.TierPublic && f.Tier != anonymize.Partner:
		return cli.Usagef("--tier: want partner or public; without the flag, the model has the trace's tier")
	case given("k-swap"):
		return cli.Usagef("--k-swap cannot be used with --tier %s, which keeps no rows to swap", f.Tier)
	case !(f.Budget.Epsilon > 0) || !(f.Budget.Delta > 0 && f.Budget.Delta < 0.01):
		return cli.Usagef("--epsilon must be above 0, and --delta between 0 and 0.01")
	case !slices.Contains([]string{"", synth.UnitUser, synth.UnitSession, synth.UnitRequest}, f.Unit):
		return cli.Usagef("--unit is user, session or request")
	}
	return nil
}
