package flags

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/synth"
)

// Release are the flags of a release, of anonymize, import and synth fit.
type Release struct {
	Tier, Unit          string
	Budget              dp.Budget
	Ledger              string
	Population          string
	MaxInput, MaxOutput int32
	Understood          bool

	Confined *anonymize.Confinement // of this process, once the command has confined it
}

// releaseNames are the flags of tiers partner and public alone.
var releaseNames = []string{"unit", "epsilon", "delta", "ledger", "population", "max-input",
	"max-output", "i-understand"}

// Register adds the flags. tier is the default, and about says in the help which there
// are.
func (f *Release) Register(fl *pflag.FlagSet, tier, about string) {
	everyday, rest := Sections(fl, PrivacyFlags)
	everyday.StringVar(&f.Tier, "tier", tier, about)
	rest.StringVar(&f.Unit, "unit", "",
		"for --tier partner and public: unit of privacy: user, session or request. By default users, else sessions")
	rest.NumberVar(&f.Budget.Epsilon, "epsilon", 8,
		"for --tier partner and public: privacy budget ε. Default of --tier public: 1")
	rest.NumberVar(&f.Budget.Delta, "delta", 1e-6, "for --tier partner and public: δ; choose it far below 1/users")
	rest.StringVar(&f.Ledger, "ledger", "",
		"for --tier partner and public: `file` that adds up all releases of a source, beside your own ledger. "+
			"Default: TRACE.ledger.jsonl")
	rest.StringVar(&f.Population, "population", "",
		"for --tier partner and public: `name` of all the users whose logs these are, since what several releases "+
			"cost them adds up. Without one, all releases of a ledger may be of the same users")
	rest.Int32Var(&f.MaxInput, "max-input", 131072,
		"for --tier partner and public: limit of input tokens that is public, such as the context window")
	rest.Int32Var(&f.MaxOutput, "max-output", 16384,
		"for --tier partner and public: limit of output tokens that is public")
	rest.BoolVar(&f.Understood, "i-understand", false, "allow an ε above 10, of all releases together that add up")
}

// Drawn tells whether a release of the tier is drawn from noisy counts.
func (f *Release) Drawn() bool { return f.Tier == anonymize.Partner || f.Tier == anonymize.Public }

// Check refuses what does not go together.
func (f *Release) Check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if !f.Drawn() {
		return Refuse(cmd, "is for --tier partner and public", releaseNames...)
	}
	if f.Tier == anonymize.Public && !given("epsilon") {
		f.Budget.Epsilon = 1
	}
	switch {
	case !(f.Budget.Epsilon > 0) || !(f.Budget.Delta > 0 && f.Budget.Delta < 0.01):
		return cli.Usagef("--epsilon must be above 0, and --delta between 0 and 0.01")
	case given("population") && strings.TrimSpace(f.Population) == "":
		return cli.Usagef("--population: give the users a name, such as customers")
	case !slices.Contains([]string{"", synth.UnitUser, synth.UnitSession, synth.UnitRequest}, f.Unit):
		return cli.Usagef("--unit is user, session or request")
	}
	return nil
}
