package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

const nonInterference = "non-interference"

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
	case c.Output.drawn():
		return skipped("its sessions are drawn from noisy tables, and noise hides what they show")
	case tier != anonymize.Internal && tier != anonymize.Partner:
		return skipped("it is of the tiers internal and partner; noise hides what tier %s publishes", orNone(tier))
	}
	err := j.internal(ctx)
	if err == nil && tier == anonymize.Partner {
		err = j.partner(ctx)
	}
	f := j.finding(tier)
	if err != nil {
		f = broken(err)
	}
	f.Figures, f.Seed = j.fig, strconv.FormatUint(c.Seed, 10)
	return f
}

// A judge gathers what a renaming changed.
type judge struct {
	*Case
	fig      Figures
	runs     int
	shows    []string // parts of the output that depend on a name
	imported bool     // the source log was read
	same     bool     // what was made anew is the output
}

func (j *judge) finding(tier string) Finding {
	j.fig["runs"] = j.runs
	j.fig["made_anew_is_the_output"] = j.same
	switch {
	case len(j.shows) > 0:
		j.fig["differs_in"] = j.shows
		return failed(nil, "with everything renamed the output is another one: names of the source show")
	case !j.same:
		return inconclusive(nil, "what was made anew depends on no name, but it is not this output: give the source and the flags that it was made of")
	case tier == anonymize.Internal || j.imported:
		return passed(nil, "with all tokens, names, ids and times of the source renamed, rows and metadata are the same to the last bit")
	}
	return passed(nil, "with all ids, names and times of the trace of tier internal renamed, rows and metadata are the same to the last bit")
}

// internal imports the log as it is and renamed.
func (j *judge) internal(ctx context.Context) error {
	if j.Log == nil {
		return nil
	}
	j.imported = true
	if _, err := j.Before(ctx); err != nil {
		return err
	}
	other, err := j.importLog(ctx, func(p *anonymize.Policy, e trace.EntryReader) trace.EntryReader {
		p.Renaming = &anonymize.Renaming{Seed: j.Seed ^ 0x5ee1_ab1e_0dd5, Shift: 1000*24*time.Hour + 12345*time.Second + 678901*time.Nanosecond}
		return e
	})
	if err != nil {
		return err
	}
	defer other.Close()
	j.runs += 2
	j.same = j.Output.Tier() == anonymize.Internal && j.before.Meta.Digest == j.Output.Meta["digest"]
	if err := j.compareRows(ctx, "internal", sourceOf(j.before), sourceOf(other)); err != nil {
		return err
	}
	j.compareMeta("internal", j.before.Meta, other.Meta)
	return nil
}

// partner releases the rows of tier internal, as they are and renamed, for several
// rules of sharing.
func (j *judge) partner(ctx context.Context) error {
	p, card, err := policyOf(j.Output)
	if err != nil {
		return err
	}
	src, err := j.Before(ctx)
	if err != nil {
		return err
	}
	x, err := extentOf(ctx, src)
	if err != nil {
		return err
	}
	step := int64(p.Quantum)
	if src.Meta.Capture.Declared() {
		step = 0
	}
	// All arrivals move by whole quanta, as an import makes the first arrival 0
	// whatever it was. Where arrivals count from a declared begin, step is 0 and they
	// do not move.
	rng := rand.New(rand.NewPCG(j.Seed, 1))
	names := renamed{newPermutation(rng, x.blocks), newPermutation(rng, x.sessions), newPermutation(rng, x.users), step * (1 + rng.Int64N(1000))}
	other := names.source(src)
	ks := []int{1, 2, 5, 20}
	if !slices.Contains(ks, p.KShare) {
		ks = append(ks, p.KShare)
	}
	for _, k := range ks {
		a, err := j.release(ctx, p, k, src)
		if err != nil {
			return err
		}
		b, err := j.release(ctx, p, k, other)
		if err != nil {
			return err
		}
		j.runs += 2
		where := fmt.Sprintf("partner, k_share %d", k)
		if a.digest != b.digest {
			j.addDifference(where, "rows")
		}
		j.compareMeta(where, a.meta, b.meta)
		if k == p.KShare {
			j.same = sameCard(a.meta.Card, card)
		}
	}
	return nil
}

// sameCard reports whether two releases were made in the same way, by their cards. Another
// version, or another confinement of the process, is still the same way.
func sameCard(a, b string) bool {
	var texts [2]string
	for i, doc := range []string{a, b} {
		var c anonymize.Card
		if err := json.Unmarshal([]byte(doc), &c); err != nil {
			return false
		}
		c.Tool, c.Confined = "", nil
		var err error
		if texts[i], _, err = c.JSON(); err != nil {
			return false
		}
	}
	return texts[0] == texts[1]
}

// A madeRelease is one release: the digest of its rows and what its file would say.
type madeRelease struct {
	digest string
	meta   trace.Meta
}

// release makes a release without a file, with noise that is the same each time.
func (c *Case) release(ctx context.Context, p anonymize.PartnerPolicy, k int, src anonymize.Source) (madeRelease, error) {
	out := &digestWriter{d: trace.NewDigest()}
	meta, err := c.releaseTo(ctx, p, k, src, out)
	return madeRelease{out.d.Sum(), meta}, err
}

func (c *Case) releaseTo(ctx context.Context, p anonymize.PartnerPolicy, k int, src anonymize.Source, dst trace.Writer[trace.Request]) (trace.Meta, error) {
	var seed [32]byte
	copy(seed[:], strconv.FormatUint(c.Seed, 10))
	p.KShare, p.Noise, p.SpillDir = k, rand.NewChaCha8(seed), c.SpillDir
	card, err := c.make().release(ctx, p, src, dst)
	if err != nil {
		return trace.Meta{}, err
	}
	return card.Meta(src.Meta)
}

type digestWriter struct{ d *trace.Digest }

func (w *digestWriter) Write(rows []trace.Request) (int, error) {
	w.d.Add(rows)
	return len(rows), nil
}

// policyOf is the policy that a release to a partner names in its card. The card
// does not say how many requests were allowed to be left out: it is taken for the
// default, or what was left out where that is more.
func policyOf(o *Output) (anonymize.PartnerPolicy, string, error) {
	text := o.Meta["card"]
	card, err := anonymize.ParseCard(text, o.Meta["card_sha256"])
	if err != nil {
		return anonymize.PartnerPolicy{}, "", err
	}
	of := card.Partner
	if of == nil {
		return anonymize.PartnerPolicy{}, "", fmt.Errorf("the privacy card does not name the settings of the release")
	}
	p := anonymize.PartnerPolicy{Unit: of.Unit, KShare: of.KShare, KClass: of.KClass, LinkK: max(of.LinkK, 1), DropOwn: of.DropOwn, PerOctave: of.PerOctave, Quantum: time.Duration(of.QuantumNS)}
	if of.SuppressedShare > 0.05 {
		p.Suppressed = min(of.SuppressedShare*1.0001, 0.9999)
	}
	return p, text, nil
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
			if f, g := x.Field(i), y.Field(i); !reflect.DeepEqual(f.Interface(), g.Interface()) && !(f.Kind() == reflect.Slice && f.Len()+g.Len() == 0) {
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
