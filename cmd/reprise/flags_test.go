package main

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/flags"
)

// allCommands are the commands that do something, with those below others.
func allCommands() (all []*cobra.Command) {
	list := rootCommand().Commands()
	for i := 0; i < len(list); i++ {
		list = append(list, list[i].Commands()...)
		if list[i].Runnable() {
			all = append(all, list[i])
		}
	}
	return all
}

// Every flag with a number refuses what is none, and shows how to write one. No text of
// the standard library gets out.
func TestEveryNumberIsRefusedWell(t *testing.T) {
	good := regexp.MustCompile(`^--[a-z0-9-]+: "\?!" is not .+: write .+, .+ or .+$`)
	numbers := 0
	for _, cmd := range allCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			err := cmd.Flags().Set(f.Name, "?!")
			switch f.Value.Type() {
			case "string", "stringArray", "stringSlice":
				return
			case "bool":
				if want := "--" + f.Name + `: "?!" is neither true nor false`; err == nil || flags.Mistake(cmd, err).Error() != want {
					t.Errorf("%s --%s: %v", cmd.CommandPath(), f.Name, err)
				}
				return
			case "limits":
				if err == nil {
					t.Errorf("%s --%s takes anything", cmd.CommandPath(), f.Name)
				}
				return
			}
			numbers++
			if err == nil || !good.MatchString(flags.Mistake(cmd, err).Error()) {
				t.Errorf("%s --%s: %v", cmd.CommandPath(), f.Name, errors.Unwrap(err))
			}
		})
	}
	if numbers < 100 {
		t.Errorf("only %d flags with numbers were found", numbers)
	}
}

// What a person gets for a mistake on the command line, and what is taken.
func TestMistakesOnTheCommandLine(t *testing.T) {
	for args, want := range map[string]string{
		"replay w.parquet --concurency 5":                  "reprise: unknown flag: --concurency: did you mean --concurrency?\nRun with --help for how to use it.\n",
		"replay w.parquet --duration 5parsecs":             "reprise: --duration: \"5parsecs\" is not a duration: write 60s, 5min or 1h30m\nRun with --help for how to use it.\n",
		"replay w.parquet --rate fast":                     "reprise: --rate: \"fast\" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2\nRun with --help for how to use it.\n",
		"sweep chat --preset h100-llama-70b --rates 1,two": "reprise: --rates: \"two\" is not a rate: write 5, 5/s or 300/min\nRun with --help for how to use it.\n",
	} {
		_, errs, code := reprise(t, strings.Fields(args)...)
		if code != 2 || errs != want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", args, code, errs, want)
		}
	}
}
