package audit

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

// Checks that say how far they are.
const (
	nonInterference = "non-interference"
	neighboursCheck = "neighbours"
)

// interference is the gate: rename every token, user, session, model and id of
// the source, move all its times, make the output anew under a fresh key and with
// the same noise, and it must be the same to the last bit. What a name cannot
// change, it cannot be read from. It begins after the tokeniser; planted strings
// cover the way before that.
func interference(ctx context.Context, c *Case) Finding {
	tier := c.Output.Tier()
	j := &judge{Case: c, fig: Figures{}}
	switch {
	case tier == anonymize.Internal && c.Log == nil:
		return skipped("it needs the source log (--source): rows of tier internal are the first that are made of it")
	case tier != anonymize.Internal:
		return skipped("it is for tier internal; the checks neighbours and linkage judge releases drawn from noisy " +
			"counts")
	}
	err := j.internal(ctx)
	f := broken(err)
	if err == nil {
		f = j.finding()
	}
	f.Figures, f.Seed = j.fig, strconv.FormatUint(c.Seed, 10)
	return f
}

// A judge gathers what a renaming changed.
type judge struct {
	*Case
	fig   Figures
	runs  int
	shows []string // parts of the output that depend on a name
	same  bool     // what was made anew is the output
}

func (j *judge) finding() Finding {
	j.fig["runs"] = j.runs
	j.fig["made_anew_is_the_output"] = j.same
	switch {
	case len(j.shows) > 0:
		j.fig["differs_in"] = j.shows
		return failed(nil, "with everything renamed the output is another one: names of the source show")
	case !j.same:
		return inconclusive(nil, "the output made anew depends on no name, but differs from this one: give the "+
			"source and the flags that made it")
	}
	return passed(nil, "with all tokens, names, ids and times of the source renamed, rows and metadata are the same "+
		"to the last bit")
}

// internal imports the log as it is and renamed.
func (j *judge) internal(ctx context.Context) error {
	const rounds = 2
	j.progress(nonInterference, 0, rounds)
	if _, err := j.Before(ctx); err != nil {
		return err
	}
	j.progress(nonInterference, 1, rounds)

	other, err := j.importLog(ctx, func(p *anonymize.Policy, e trace.EntryReader) trace.EntryReader {
		p.Renaming = &anonymize.Renaming{Seed: j.Seed ^ 0x5ee1_ab1e_0dd5,
			Shift: 1000*24*time.Hour + 12345*time.Second + 678901*time.Nanosecond}
		return e
	})
	if err != nil {
		return err
	}
	defer other.Close()
	j.runs += 2
	j.same = j.before.Meta.Digest == j.Output.Meta["digest"]
	if err := j.compareRows(ctx, "internal", sourceOf(j.before), sourceOf(other)); err != nil {
		return err
	}
	j.compareMeta("internal", j.before.Meta, other.Meta)
	return nil
}

func (j *judge) addDifference(where, what string) {
	j.shows = append(j.shows, where+": "+what)
}

// compareMeta names the keys whose values differ.
func (j *judge) compareMeta(where string, a, b trace.Meta) {
	values := map[string]string{}
	a.Each(func(k, v string) { values[k] = v })
	b.Each(func(k, v string) {
		if values[k] != v && k != keyPrefix+"digest" {
			j.addDifference(where, "metadata "+strings.TrimPrefix(k, keyPrefix))
		}
		delete(values, k)
	})
	for _, k := range slices.Sorted(maps.Keys(values)) {
		j.addDifference(where, "metadata "+strings.TrimPrefix(k, keyPrefix))
	}
}

// compareRows names the columns in which rows differ.
func (j *judge) compareRows(ctx context.Context, where string, a, b anonymize.Source) error {
	if a.Meta.Digest == b.Meta.Digest {
		return nil
	}
	rows, err := b.Open()
	if err != nil {
		return err
	}
	columns := map[string]bool{}
	one := make([]trace.Request, 1)
	err = eachRow(ctx, a, func(_ int64, r *trace.Request) error {
		if n, _ := rows.Read(one); n < 1 {
			return errEnough
		}
		x, y := reflect.ValueOf(r).Elem(), reflect.ValueOf(&one[0]).Elem()
		for i := range x.NumField() {
			if f, g := x.Field(i), y.Field(i); !reflect.DeepEqual(f.Interface(), g.Interface()) &&
				!(f.Kind() == reflect.Slice && f.Len()+g.Len() == 0) {
				name, _, _ := strings.Cut(x.Type().Field(i).Tag.Get("parquet"), ",")
				columns[name] = true
			}
		}
		return nil
	})
	if err == nil {
		if n, _ := rows.Read(one); n > 0 {
			err = errEnough
		}
	}
	switch {
	case err == errEnough:
		columns["number of rows"] = true
	case err != nil:
		return err
	}
	for name := range columns {
		j.addDifference(where, name)
	}
	slices.Sort(j.shows)
	return nil
}

var errEnough = errors.New("one has more rows")
