package flags

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/quantity"
)

// Mistake turns an error of pflag into one that says what to type. It is cobra's
// FlagErrorFunc of all commands.
func Mistake(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if gone := departed(commandPath(cmd), unknown.GetSpecifiedName()); gone != nil {
			return gone
		}
		if instead := elsewhere[commandPath(cmd)][unknown.GetSpecifiedName()]; instead != "" {
			return fmt.Errorf("there is no --%s here: %s", unknown.GetSpecifiedName(), instead)
		}
	}
	return mistake(cmd.Flags(), err)
}

// expectations are flags that people know from elsewhere, and what to do with a command that has a flag of another name
// and form for it.
var expectations = []struct{ typed, has, says string }{
	{"model-config", "preset", "here a preset names the model and its GPUs, such as --preset " +
		"roofline:config.json:8xh100:fp8"},
	{"api-key", "api-key-env", "no flag takes the key itself, which others could read. Put it into " + DefaultKeyEnv +
		", or name its variable with --api-key-env"},
	{"port", "listen", "the address has the port: --listen 127.0.0.1:8000"},
	{"qps", "rate", "--rate 4 is 4 requests a second on average"},
	{"dataset", "input-tokens", "the file itself is the workload: reprise replay FILE --rate 4"},
	{"host", "listen", "the address has the host: --listen 127.0.0.1:8000"},
}

// shorthands are single letters that other tools have for a flag.
var shorthands = map[string]string{"n": "max-requests", "c": "concurrency", "r": "rate", "m": "model", "u": "url",
	"H": "header"}

// elsewhere says for a command what stands in place of flags that other commands, or other tools, have.
var elsewhere = map[string]map[string]string{
	"sweep": {
		"requests":        ofLevels,
		"num-prompts":     ofLevels,
		"max-requests":    ofLevels,
		"duration":        "a level is measured for --level-duration, such as 30s",
		"request-rate":    "a sweep has a rate for each level: --rates 1,2,5",
		"max-concurrency": "a sweep has a number of requests in flight for each level: --concurrencies 1,2,4",
		"rounds":          "a sweep makes one run of a level; --precision 5% adds runs until a level is that precise",
	},
	"report": {
		"csv":      "--format csv -o FILE",
		"markdown": "--format markdown -o FILE",
		"junit":    "--format junit -o FILE",
	},
	"bench":   ofReplay,
	"profile": ofReplay,
	"compare": {
		"rates":         "rounds have one load, such as --rate 5; reprise sweep has several levels",
		"concurrencies": "rounds have one load, such as --concurrency 8; reprise sweep has several levels",
	},
}

// ofReplay are flags of a load that people give to a command whose name another tool has for it.
var ofReplay = func() map[string]string {
	says := map[string]string{}
	for _, name := range []string{"concurrency", "max-concurrency", "rate", "request-rate", "requests", "request-count",
		"num-prompts", "base-url", "target", "input-tokens", "isl", "random-input-len", "dataset-name", "duration"} {
		says[name] = "one load is sent by reprise replay, such as reprise replay --input-tokens 550 --output-tokens " +
			"150 --concurrency 10 --requests 100 --url URL"
	}
	return says
}()

const ofLevels = "a sweep sends as many requests as a level lasts: --level-requests 150 is the fewest that it measures"

func mistake(fl *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	var noValue *pflag.ValueRequiredError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		if name, value, quoted := strings.Cut(unknown.GetSpecifiedName(), " "); quoted && fl.Lookup(name) != nil {
			return fmt.Errorf("%q is one word, with its quotes: write --%s %s", "--"+unknown.GetSpecifiedName(), name,
				strings.TrimSpace(value))
		}
		for _, e := range expectations {
			if e.typed == unknown.GetSpecifiedName() && fl.Lookup(e.has) != nil {
				return fmt.Errorf("unknown flag: --%s: %s", e.typed, e.says)
			}
		}
		var names []string // without those of hidden flags, which are never proposed
		fl.VisitAll(func(f *pflag.Flag) {
			if Offered(f) {
				names = append(names, f.Name)
			}
		})
		if name := closest(unknown.GetSpecifiedName(), names); name != "" {
			return fmt.Errorf("unknown flag: --%s: did you mean %s?", unknown.GetSpecifiedName(), Spelled(fl.Lookup(name)))
		}
		return fmt.Errorf("unknown flag: --%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown) && fl.Lookup(shorthands[unknown.GetSpecifiedName()]) != nil:
		return fmt.Errorf("unknown flag: -%s: did you mean --%s?", unknown.GetSpecifiedName(),
			shorthands[unknown.GetSpecifiedName()])
	case errors.As(err, &noValue) && noValue.GetFlag() != nil && cli.IsSetting(noValue.GetFlag()):
		return asSetting(noValue.GetFlag())
	case errors.As(err, &noValue) && noValue.GetFlag() != nil:
		return fmt.Errorf("--%s needs a value: --%[1]s %s", noValue.GetFlag().Name, placeholder(noValue.GetFlag()))
	case errors.As(err, &bad) && bad.GetFlag().Value.Type() == "bool":
		return fmt.Errorf("%s: %s is neither true nor false", Spelled(bad.GetFlag()), quantity.Quote(bad.GetValue()))
	case errors.As(err, &bad):
		return fmt.Errorf("%s: %w", Spelled(bad.GetFlag()), bad.Unwrap())
	}
	return err
}

// Detached is the error for a switch whose value was typed as a word of its own, which would be taken for an argument.
func Detached(root *cobra.Command, typed []string) error {
	cmd, _, err := root.Find(typed)
	if err != nil {
		return nil // of another mistake
	}

	for i, word := range typed[min(1, len(typed)):] {
		on := slices.Contains([]string{"on", "true", "yes"}, word)
		if !on && !slices.Contains([]string{"off", "false", "no"}, word) {
			continue
		}
		name, isFlag := strings.CutPrefix(typed[i], "--")
		if flag := cmd.Flags().Lookup(name); isFlag && flag != nil && flag.NoOptDefVal != "" {
			return cli.Usagef("a switch takes its value behind an equals sign: --%s=%t", name, on)
		}
	}
	return nil
}

// UnknownCommand is the error for a command that there is not, whose name is in quotes.
func UnknownCommand(root *cobra.Command, quoted string) error {
	if gone := departed(strings.Trim(quoted, `"`), ""); gone != nil {
		return gone
	}
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if name := closest(strings.Trim(quoted, `"`), names); name != "" {
		return fmt.Errorf("there is no command %s: did you mean %s %s?", quoted, root.Name(), name)
	}
	return fmt.Errorf("there is no command %s: %s --help lists them; replay sends a load", quoted, root.Name())
}

// closest is the name that a typed one was most likely meant to be, or "": the one that
// the fewest changes of a letter lead to, two of them or a third of its letters, or else
// the first that begins or ends with it. Letters in another order are one change.
func closest(typed string, names []string) (found string) {
	fewest := max(3, len(typed)/3+1)
	if len(typed) < 4 {
		fewest = 2
	}
	for _, name := range names {
		n := levenshtein.ComputeDistance(typed, name)
		if n > 0 && slices.Equal(letters(typed), letters(name)) {
			n = 1
		}
		if n < fewest {
			found, fewest = name, n
		}
	}
	for _, name := range names {
		if found == "" && len(typed) > 2 && (strings.HasPrefix(name, typed) || strings.HasSuffix(name, "-"+typed)) {
			found = name
		}
	}
	return found
}

// letters are those of a name in their alphabetical order.
func letters(name string) []byte { return slices.Sorted(slices.Values([]byte(name))) }
