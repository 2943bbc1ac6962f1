package main

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/replay"
	"reprise/replay/report"
	"reprise/trace"
)

// terms are the contract that the flags name, or spell; nil when they do neither.
func (f *sweepFlags) terms() (*report.Contract, error) {
	if len(f.clauses) == 0 {
		return f.contract()
	}
	if f.path != "" {
		return nil, usagef("--clause and --contract contradict each other")
	}
	var c report.Contract
	for _, clause := range f.clauses {
		text, err := yaml.Marshal(map[string][]string{"clauses": {clause}})
		if err != nil {
			return nil, err
		}
		one, err := report.ParseContract("", text)
		if err != nil {
			_, why, _ := strings.Cut(err.Error(), ": ") // behind the place in what was made here
			return nil, usagef("--clause %q: %s", clause, why)
		}
		c.Clauses = append(c.Clauses, one.Clauses...)
	}
	return &c, nil
}

// workload is the file that every level sends, and the digest of its rows. That of a
// specification is made in dir.
func (f *sweepFlags) workload(cmd *cobra.Command, path, dir string) (file, digest string, err error) {
	if path == standard {
		return "", "", usagef("every level reads the workload again, and stdin can be read once: give a file")
	}
	s, err := openSpec(path)
	if err != nil {
		return "", "", err
	}
	if s != nil {
		path = filepath.Join(dir, "workload.parquet")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", "", err
		}
		err := trace.Create(path, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			rows, err := s.Rows(1)
			if err != nil {
				return trace.Meta{}, err
			}
			_, err = trace.Copy(dst, rows)
			return s.Meta(1), err
		})
		if err != nil {
			return "", "", err
		}
	}
	w, err := openTrace(cmd, path)
	if err != nil {
		return "", "", err
	}
	return path, w.Meta.Digest, w.Close()
}

// line writes the flags that say what is measured, and not how a sweep goes.
func (f *trialFlags) line(cmd *cobra.Command) string {
	own := new(cobra.Command)
	new(trialFlags).register(own)
	return flagLine(cmd, func(name string) bool { return own.Flags().Lookup(name) != nil && name != "seed" && name != "quiet" })
}

// commandLine is how the command was called, without what may be secret.
func commandLine(cmd *cobra.Command, args ...string) string {
	out := []string{cmd.CommandPath()}
	for _, a := range args {
		out = append(out, replay.Redact(a))
	}
	if flags := flagLine(cmd, func(string) bool { return true }); flags != "" {
		out = append(out, flags)
	}
	return strings.Join(out, " ")
}

// flagLine writes the flags that were given. Values of headers and of further fields
// of the body may hold secrets, as may users, passwords and queries in URLs.
func flagLine(cmd *cobra.Command, take func(name string) bool) string {
	var out []string
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !take(fl.Name) {
			return
		}
		values := []string{fl.Value.String()}
		if list, ok := fl.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch {
			case slices.Contains([]string{"header", "extra-body"}, fl.Name):
				v = "…"
			case strings.Contains(v, "://"):
				v = plainURL(v)
			}
			v = replay.Redact(v)
			if strings.ContainsAny(v, " '\"$&|;<>()") {
				v = "'" + strings.ReplaceAll(v, "'", `'\''`) + "'"
			}
			out = append(out, "--"+fl.Name+"="+v)
		}
	})
	return strings.Join(out, " ")
}

// plainURL leaves out of a URL what may be secret.
func plainURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "…"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
