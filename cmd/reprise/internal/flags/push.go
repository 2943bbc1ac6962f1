package flags

import (
	"os"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/report"
)

// Push says where a summary is pushed to, and with which credentials: no flag
// takes those themselves.
type Push struct {
	URL             string
	credentialsEnv  string
	credentialsFile string
}

// Register adds the flags.
func (f *Push) Register(cmd *cobra.Command) {
	_, rest := Sections(cmd.Flags(), ResultsFlags)
	rest.StringVar(&f.URL, "push", "",
		"push the summary to a Prometheus Pushgateway at this `URL`, as job reprise unless it ends in /metrics/job/…")
	rest.StringVar(&f.credentialsEnv, "push-credentials-env", "",
		"environment `variable` with user:password or a bearer token for --push")
	rest.StringVar(&f.credentialsFile, "push-credentials-file", "",
		"`file` with user:password or a bearer token for --push")
}

// Pusher is nil without --push.
func (f *Push) Pusher() (*report.Pusher, error) {
	switch {
	case f.URL == "" && (f.credentialsEnv != "" || f.credentialsFile != ""):
		return nil, cli.Usagef("--push-credentials-env and --push-credentials-file need --push")
	case f.URL == "":
		return nil, nil
	case f.credentialsEnv != "" && f.credentialsFile != "":
		return nil, cli.Usagef("give one of --push-credentials-env and --push-credentials-file")
	}
	p := &report.Pusher{URL: f.URL}
	if err := p.Check(); err != nil {
		return nil, cli.Usagef("--push: %v", err)
	}
	switch {
	case f.credentialsEnv != "":
		if p.Credentials = os.Getenv(f.credentialsEnv); p.Credentials == "" {
			return nil, cli.Usagef("--push-credentials-env: %s", notSet(f.credentialsEnv))
		}
	case f.credentialsFile != "":
		var err error
		if p.Credentials, err = cli.ReadSecret("--push-credentials-file", f.credentialsFile); err != nil {
			return nil, err
		}
		if p.Credentials == "" {
			return nil, cli.Usagef("--push-credentials-file: the file is empty")
		}
	}
	return p, nil
}
