package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/synth"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// ledgerOf are the files in which releases of a trace count: the one that was named, the
// one beside the trace unless that is in a store, and that of the user. It makes the folder of the latter,
// so that a confined process finds it.
func ledgerOf(cmd *cobra.Command, named, path string) (l dp.Ledger) {
	if named != "" {
		l.Files = append(l.Files, named)
	}
	if path != "" && path != cli.Standard && !objectstore.IsURL(path) {
		l.Files = append(l.Files, strings.TrimSuffix(filepath.Clean(path), ".parquet")+".ledger.jsonl")
	}
	if folder := cli.StateFolder(cmd); folder != "" && os.MkdirAll(folder, 0o700) == nil {
		l.User = filepath.Join(folder, "ledger.jsonl")
	}
	l.Waits = func(file string) { cli.Notef(cmd, "waiting for another release, which has %s", file) }
	return l
}

// fewArrivals are too few for their times to tell a log.
const fewArrivals = 16

// countRelease is the entry of a release of a trace, before that begins.
func countRelease(f *flags.Release, t *trace.Trace) (dp.Release, error) {
	r := dp.Release{ID: randomID(), Tier: f.Tier, Release: "begun",
		Time:   time.Now().UTC().Truncate(time.Second),
		Source: dp.Source{Digest: t.Meta.Digest, People: dp.NewPeople(f.Unit, f.Population)}, Budget: f.Budget,
		Mechanism: dp.Gaussian}
	if t.Meta.Captures != "" {
		r.Captures = strings.Split(t.Meta.Captures, ",")
	}
	keys, _ := anonymize.SharedKeys(t.Meta)
	for _, key := range keys {
		r.Captures = append(r.Captures, "key:"+key)
	}
	if c := t.Meta.Capture; c.Declared() {
		r.Format, _, _ = strings.Cut(t.Meta.SourceFormat, ",")
		r.Begin, r.End, r.Relative = c.Begin, c.End, c.Relative
	}
	if t.Meta.Timing != "" { // arrivals were made up, and are those of every log with the same seed
		return r, nil
	}
	src, err := trace.Columns[trace.Arrival](t)
	if err != nil {
		return r, err
	}
	sum, first, last, rows := sha256.New(), int64(0), int64(0), 0
	err = trace.Each(src, func(_ int64, a *trace.Arrival) error {
		if rows == 0 {
			first = a.ArrivalNS
		}
		last = a.ArrivalNS - first // whatever was declared as the begin
		rows++
		_, err := sum.Write(binary.AppendVarint(nil, last))
		return err
	})
	if rows >= fewArrivals && last > 0 {
		r.Arrivals = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	}
	return r, err
}

// countsBefore are the releases before one, by why they add up.
func countsBefore(r *dp.Release, before []dp.Release) string {
	count := map[string]int{}
	var by []string
	for i := range before {
		why := r.Meets(&before[i].Source)
		if count[why]++; count[why] == 1 {
			by = append(by, why)
		}
	}
	for i, why := range by {
		by[i] = fmt.Sprintf("%d of %s", count[why], why)
	}
	return strings.Join(by, ", ")
}

// afford refuses a release for which what was spent before leaves no room.
func afford(l dp.Ledger, r *dp.Release, before []dp.Release, understood bool) error {
	spent := dp.Sum(before)
	if spent+r.Epsilon <= synth.MaxEpsilon || understood {
		return nil
	}
	advice := fmt.Sprintf("above %d it protects little: --i-understand allows it", synth.MaxEpsilon)
	unnamed := func(b dp.Release) bool { return b.Population == "" }
	switch earlier := slices.ContainsFunc(before, unnamed); {
	case r.Unit != synth.UnitUser:
	case earlier:
		advice += ". An earlier release or attempt named no --population, so it counts for every one; --unit request " +
			"protects requests and not people, and adds up over releases of one source alone"
	case !earlier && r.Population == "":
		advice += ". Releases of other users do not add up where all of them say so: --population NAME"
	}
	return cli.Usagef("ε would be %.3g in all: earlier releases or attempts (%d) spent %.3g of it, by %s (%s); %s",
		spent+r.Epsilon, dp.Spent(before).Releases, spent, l, countsBefore(r, before), advice)
}

// ledgerWords say what a ledger knows of a source, and what it cannot know.
func ledgerWords(l dp.Ledger, r *dp.Release, before []dp.Release, unwritten []string) (out []string) {
	total := dp.Spent(append(slices.Clone(before), *r)).Epsilon
	if most := map[string]float64{anonymize.Public: synth.WarnEpsilon, anonymize.Partner: 8}[r.Tier]; total > most {
		out = append(out, fmt.Sprintf(
			"warning: an ε of %.3g, all releases together that add up, protects little; 1 is usual", total))
	}
	if slices.ContainsFunc(before, func(r dp.Release) bool { return r.Grid != "" }) {
		out = append(out, "warning: rows of this source were released to a partner without noise: no ε says what "+
			"both releases show together")
	}
	switch {
	case l.String() == "":
		out = append(out, "no ledger was found, so this release counts as the first of its source, and later ones do "+
			"not know of it: --ledger FILE names one")
	case len(before) == 0:
		out = append(out, fmt.Sprintf("%s: no earlier release or attempt of this source. One by another user or on "+
			"another machine is not counted: name its ledger with --ledger", l))
	default:
		out = append(out, fmt.Sprintf("%s: releases or attempts before: %s", l, countsBefore(r, before)))
	}
	if l.User == "" && len(l.Files) == 1 {
		out = append(out, "the ledger of the user is missing: a copy or a slice in another folder does not know of "+
			"this release")
	}
	if len(r.Captures) == 0 {
		out = append(out, "the trace has no capture id: a slice of it, or another import of its log, may not be "+
			"known for it. A new import gives one")
	}
	for _, path := range unwritten {
		out = append(out, "warning: this release could not be written to "+path)
	}
	return out
}
