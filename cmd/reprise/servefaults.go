package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"reprise/replay/simserver"
)

// serveFaults say how a simulated endpoint differs from the usual, and fails.
type serveFaults struct{ list bool }

func (f *serveFaults) register(fl *pflag.FlagSet, c *simserver.Config) {
	fl.StringVar(&c.Imitate, "imitate", "", "the wire of a server: "+strings.Join(simserver.Imitations(), ", "))
	fl.StringVar(&c.Quirks, "quirks", "", "`list` of quirks of every answer, such as crlf,usage-missing; see --list-quirks")
	fl.StringVar(&c.Faults, "fault", "", "`list` of quirks that are drawn for each request, with their shares: error=503:5%,stall=5s:1%; + joins those that strike together: error=429+retry-after=2:1%")
	fl.Uint64Var(&c.FaultSeed, "fault-seed", 1, "seed of these draws, which depend on nothing else but the number of a request")
	fl.BoolVar(&c.FaultHeader, "fault-header", false, "let requests choose quirks of their answer, by the header "+simserver.FaultHeader)
	fl.BoolVar(&c.Admin, "admin", false, "serve /admin/config: latencies, limits, quirks and faults, to be read and changed while it runs")
	fl.BoolVar(&f.list, "list-quirks", false, "print the quirks, and what the imitations are made of")
}

// writeQuirks prints the closed list.
func writeQuirks(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, q := range simserver.Quirks() {
		name := q.Name
		if q.Value != "" {
			name = strings.Replace(name+"="+q.Value, "=[", "[=", 1)
		}
		fmt.Fprintf(t, "%s\t%s\n", name, q.Does)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, name := range simserver.Imitations() {
		if _, err := fmt.Fprintf(w, "--imitate %s is --quirks %s\n", name, simserver.Imitation(name)); err != nil {
			return err
		}
	}
	return nil
}
