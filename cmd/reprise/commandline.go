package main

import (
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/result"
)

// commandLine is how the command was called, without what may be secret.
func commandLine(cmd *cobra.Command, args ...string) string {
	out := []string{cmd.CommandPath()}
	for _, a := range args {
		out = append(out, result.Redact(a))
	}
	words := given(cmd, func(*pflag.Flag) bool { return true }, flags.Typed)
	return strings.Join(append(out, words...), " ")
}

// about says what a sweep measures, by what take agrees to. Levels of another are not taken up.
func about(cmd *cobra.Command, take func(*pflag.Flag) bool) string {
	return strings.Join(given(cmd, take, func(f *pflag.Flag, v string) string { return "--" + f.Name + "=" + v }), " ")
}

// given are the flags and settings that were given, each as word writes it. Values of headers and of further
// fields of the body may hold secrets, as may users, passwords and queries in URLs.
func given(cmd *cobra.Command, take func(*pflag.Flag) bool,
	word func(f *pflag.Flag, value string) string) (out []string) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		// The flags that a run file, a target file or another spelling set stand here themselves.
		if !take(fl) || flags.OtherSpelling(fl) || fl.Name == "config" || fl.Name == "target" {
			return
		}
		for _, v := range cli.FlagValues(fl) {
			switch {
			case slices.Contains([]string{"header", "extra-body"}, fl.Name):
				v = "…"
			case strings.Contains(v, "://"):
				u, err := url.Parse(v)
				if err != nil {
					v = "…"
					break
				}
				u.User, u.RawQuery, u.Fragment = nil, "", ""
				v = u.String()
			}
			v = result.Redact(v)
			if strings.ContainsAny(v, " '\"$&|;<>()") {
				v = "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
			}
			out = append(out, word(fl, v))
		}
	})
	return out
}
