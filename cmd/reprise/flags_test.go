package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
)

// allCommands are the commands that do something, with those below others.
func allCommands() (all []*cobra.Command) {
	list := rootCommand(nil).Commands()
	for i := 0; i < len(list); i++ {
		list = append(list, list[i].Commands()...)
		if list[i].Runnable() && list[i].IsAvailableCommand() {
			all = append(all, list[i])
		}
	}
	return all
}

// Every flag with a number refuses what is none, and shows how to write one. No text of
// the standard library gets out.
func TestEveryNumberIsRefusedWell(t *testing.T) {
	good := regexp.MustCompile(`^--(set )?[a-z0-9-]+: "\?!" is not .+: write .+, .+ or .+$`)
	numbers := 0
	for _, cmd := range allCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !flags.Offered(f) {
				return
			}
			err := cmd.Flags().Set(f.Name, "?!")
			switch f.Value.Type() {
			case "string", "stringArray", "stringSlice":
				return
			case "bool":
				if want := flags.Spelled(f) + `: "?!" is neither true nor false`; err == nil || flags.Mistake(cmd, err).Error() != want {
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
		"replay w.parquet --concurency 5": "reprise: unknown flag: --concurency: did you mean --concurrency?\n",
		"replay w.parquet -n 5": "reprise: unknown flag: -n: did you mean " +
			"--max-requests?\n",
		"replay chat --ignore-eos off": "reprise: a switch takes its value behind an " +
			"equals sign: --ignore-eos=false\n",
		"replay --ignore-eos false --isl 5 --osl 5": "reprise: a switch takes its value behind an " +
			"equals sign: --ignore-eos=false\n",
		"replay chat --extra-inputs ignore_eos:false": "reprise: there is no --extra-inputs here: members of a request's body go into " +
			"--extra-body, such as '{\"ignore_eos\":false}'\n",
		"report r.parquet --csv": "reprise: there is no --csv here: --format csv -o FILE\n",
		"replay chat --api-key sk-1": "reprise: unknown flag: --api-key: no flag " +
			"takes the key itself, which others could read. Put it into OPENAI_API_KEY, or name its variable with " +
			"--api-key-env\n",
		"replay chat --url http://x --api-key-env sk-1": "reprise: --api-key-env: no environment " +
			"variable of that name is set; it takes the name of a variable, such as MY_KEY, and never the secret " +
			"itself\n",
		"replay chat --url http://x --api-key-env NO_KEY": "reprise: --api-key-env: the environment " +
			"variable NO_KEY is not set\n",
		"replay w.parquet --duration 5parsecs": "reprise: --duration: \"5parsecs\" is not a " +
			"duration: write 60s, 5min or 1h30m\n",
		"replay w.parquet --rate fast": "reprise: --rate: \"fast\" is not a rate or " +
			"an arrival process: write 5, 300/min or gamma:5,cv=2\n",
		"sweep chat --preset document-h100-llama-70b --rates 1,two": "reprise: --rates: \"two\" is not a rate: " +
			"write 5, 5/s or 300/min\n",
	} {
		_, errs, code := reprise(t, strings.Fields(args)...)
		if code != 2 || errs != want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", args, code, errs, want)
		}
	}
}

// Budgets of help, which only sink: what few people type is a setting, see flags/section.go.
const (
	mostHelpLines     = 90
	mostDistinctFlags = 255
)

var mostFlags = map[string]int{"reprise replay": 75, "reprise sweep": 70, "reprise compare": 75, "reprise bench": 60, "reprise capacity": 25}

// The help of every command fits a screen and a half: at most so many flags, each in a
// section, in 80 columns, with defaults as people write them. --help-all has all of them.
func TestHelp(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	distinct, rows := map[string]bool{}, map[string]bool{} // rows of the table of settings that no command has
	table, err := os.ReadFile("internal/flags/settings.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		rows[regexp.MustCompile(`^[a-z0-9-]+`).FindString(line)] = true
	}
	defer func() {
		if len(rows) > 0 {
			t.Errorf("no command has the settings %v", rows)
		}
		if len(distinct) > mostDistinctFlags {
			t.Errorf("there are %d distinct flags, want %d at most", len(distinct), mostDistinctFlags)
		}
	}()
	for _, cmd := range allCommands() {
		path := strings.Fields(cmd.CommandPath())[1:]
		help, _, code := reprise(t, append(path, "--help")...)
		all, _, codeAll := reprise(t, append(path, "--help-all")...)
		if code != 0 || codeAll != 0 {
			t.Errorf("%s: exit codes %d and %d", path, code, codeAll)
		}
		if n := strings.Count(help, "\n"); n > mostHelpLines {
			t.Errorf("%s --help has %d lines, want %d at most", path, n, mostHelpLines)
		}
		help, last, _ := strings.Cut(help, "\nExamples:\n")
		if strings.Contains(last, "\n\n") || last == "" {
			t.Errorf("%s --help does not end in examples", path)
		}
		shown, rest, set := 0, 0, 0
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !flags.Offered(f) {
				return
			}
			if cli.IsSetting(f) {
				delete(rows, f.Name)
				if set++; f.Usage == "" || !regexp.MustCompile(`(?m)^ +`+f.Name+`( |$)`).MatchString(all) {
					t.Errorf("%s --help-all has no setting %s", path, f.Name)
				}
				return
			}
			distinct[f.Name] = true
			if len(f.Annotations["reprise_section"]) != 1 {
				t.Errorf("%s --%s is in no section", path, f.Name)
			}
			named := regexp.MustCompile(`(?m)^ +(-., )?--` + f.Name + `( |$)`)
			if !named.MatchString(all) {
				t.Errorf("%s --help-all has no --%s", path, f.Name)
			}
			if named.MatchString(help) {
				shown++
			} else {
				rest++
			}
		})
		if shown > flags.MostEveryday {
			t.Errorf("%s --help shows %d flags, want %d at most: declare some with the rest of their section", path, shown, flags.MostEveryday)
		}
		if most, limited := mostFlags[cmd.CommandPath()]; limited && shown+rest > most {
			t.Errorf("%s has %d flags, want %d at most: turn flags that few people type into settings", path, shown+rest, most)
		}
		if n := rest + set; n > 0 && !strings.Contains(help, fmt.Sprintf("\n%d more: %s --help-all\n", n, cmd.CommandPath())) {
			t.Errorf("%s --help does not say %d more", path, n)
		}
		for line := range strings.SplitSeq(help+all, "\n") {
			if n := utf8.RuneCountInString(line); n > 80 && !strings.Contains(line, "=") || strings.Contains(line, "default -") || strings.Contains(line, "0m0s") || strings.Contains(line, "default [") {
				t.Errorf("%s --help-all, %d columns: %s", path, n, line)
			}
		}
	}
}

// A command that is called with too little asks for it.
func TestMissingArguments(t *testing.T) {
	for args, want := range map[string]string{
		"replay":     "which workload? reprise replay WORKLOAD --url URL, or in place of WORKLOAD --input-tokens 550 --output-tokens 150",
		"replay a b": `too many arguments: leave out "b": reprise replay WORKLOAD [--url URL]`,
		"sweep":      "which workload? reprise sweep WORKLOAD --url URL, or in place of WORKLOAD --input-tokens 550 --output-tokens 150",
		"simulate":   "which workload? reprise simulate WORKLOAD --preset PRESET, or in place of WORKLOAD --input-tokens 550 --output-tokens 150",
		"import":     "which log? reprise import LOG... -o TRACE",
		"profile":    "which trace? reprise profile TRACE",
		"slice":      "which trace? reprise slice TRACE",
		"anonymize":  "which trace? reprise anonymize TRACE -o OUTPUT",
		"audit":      "which output? reprise audit OUTPUT [OTHER…]",
		"synth":      "from which trace, model, specification or name? reprise synth TRACE|MODEL|SPEC|NAME -o WORKLOAD",
		"synth fit":  "which trace? reprise synth fit TRACE|HISTOGRAMS",
		"fidelity a": "which trace, and which workload? reprise fidelity TRACE WORKLOAD",
		"export":     "which trace, or which results? reprise export FILE... --to FORMAT",
		"report":     "which results? reprise report RESULTS...",
		"bench":      "which suite? reprise bench --list has them: reprise bench SUITE",
		"capacity":   "which sweep? reprise capacity DIR|SWEEP.json --target-rate RATE",
		"demo x":     `too many arguments: leave out "x": reprise demo`,
		"serve x y":  `too many arguments: leave out "x" "y": reprise serve`,
		"repaly":     `there is no command "repaly": did you mean reprise replay?`,
		"xyzzy":      `there is no command "xyzzy": reprise --help lists them; replay sends a load`,
	} {
		_, errs, code := reprise(t, strings.Fields(args)...)
		if got := strings.TrimSpace(strings.TrimPrefix(errs, "reprise: ")); code != 2 || got != want {
			t.Errorf("%s: exit code %d\n got %s\nwant %s", args, code, got, want)
		}
	}
}
