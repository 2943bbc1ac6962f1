package report

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"reprise/replay/figure"
	"reprise/trace"
	"reprise/trace/textpage"
)

// WritePrometheus writes the summary in Prometheus' text format, for the textfile
// collector of node_exporter or a Pushgateway. Every metric is a gauge named reprise_…
// with the labels model and run, which is when the run started or else the workload's
// digest; durations are in seconds and shares are ratios. What was not measured is left
// out, and so are percentiles of too few values.
func WritePrometheus(w io.Writer, s Summary) error {
	e := exposition{common: []label{{"model", s.Run.Model},
		{"run", cmp.Or(s.Run.Started, strings.TrimSuffix(ShortDigest(s.Run.Workload), "…"))}}}
	e.about(&s)
	e.contract(&s)
	e.latencies(&s)
	e.load(&s)
	e.figures(&s)
	e.sessions(s.Sessions)
	for _, f := range e.families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return err
		}
	}
	return nil
}

// A label is a name and its value.
type label struct{ name, value string }

// An exposition collects metrics into families, in the order in which they first come.
type exposition struct {
	common   []label
	families []*dto.MetricFamily
}

// add takes a value, unless it was not measured.
func (e *exposition) add(name, help string, v *float64, labels ...label) {
	if v == nil {
		return
	}
	name = "reprise_" + name
	i := slices.IndexFunc(e.families, func(f *dto.MetricFamily) bool { return f.GetName() == name })
	if i < 0 {
		i = len(e.families)
		e.families = append(e.families, &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()})
	}
	m := &dto.Metric{Gauge: &dto.Gauge{Value: v}}
	for _, l := range append(slices.Clone(e.common), labels...) {
		m.Label = append(m.Label, &dto.LabelPair{Name: &l.name, Value: trace.Ptr(textpage.Plain(l.value))})
	}
	e.families[i].Metric = append(e.families[i].Metric, m)
}

// meaning is the definition of a metric, as the help of its family.
func meaning(name string) string { return metricNamed(name).Definition }

// oneOrZero is 1 or 0.
func oneOrZero(holds bool) *float64 {
	if holds {
		return trace.Ptr(1.0)
	}
	return trace.Ptr(0.0)
}

func whole(n int64) *float64 { return trace.Ptr(float64(n)) }

// about says what the run was and whether it can be trusted.
func (e *exposition) about(s *Summary) {
	r := &s.Run
	engine, gpu := r.ServerVersion, ""
	if env := r.Environment; env != nil {
		if parts := engineParts(r); len(parts) > 0 {
			engine = parts[0]
		}
		gpu = joined(gpuParts(env)...)
	}
	e.add("info", "What the run was; the value is 1.", trace.Ptr(1.0), label{"version", r.Version},
		label{"workload", r.Workload}, label{"tier", r.Tier},
		label{"timing", r.Timing}, label{"simulated", map[bool]string{true: "yes", false: "no"}[r.Simulated != ""]},
		label{"engine", engine}, label{"gpu", gpu})
	if t, err := time.Parse(time.RFC3339, r.Started); err == nil {
		e.add("started_timestamp_seconds", "When the run started.", whole(t.Unix()))
	}
	e.add("trustworthy", "Whether the figures describe the server: 1 or 0.", oneOrZero(s.Verdict.Trustworthy))
	e.add("loosened_limits", "Limits of that verdict that allow more than their defaults.",
		whole(int64(len(s.Verdict.Loosened))))
	for _, c := range s.Verdict.Checks {
		e.add("check_holds", "Whether a check of the verdict holds: 1 or 0.", oneOrZero(c.Holds),
			label{"check", c.Code})
	}
}

// contract says which clauses hold; one that cannot be judged has no value.
func (e *exposition) contract(s *Summary) {
	if s.Contract == nil {
		return
	}
	e.add("contract_holds", "Whether every clause of the contract holds: 1 or 0.", oneOrZero(s.Contract.Holds),
		label{"contract", s.Contract.Name})
	for i := range s.Contract.Clauses {
		c := &s.Contract.Clauses[i]
		about := []label{{"contract", s.Contract.Name}, {"clause", c.name()}}
		if c.Outcome != Unjudged {
			e.add("contract_clause_holds", "Whether a clause of the contract holds: 1 or 0.",
				oneOrZero(c.Outcome == Holds), about...)
		}
		e.add("contract_clause_margin_ratio",
			"How far the measurement is within what the clause allows, as a share of it.", c.Margin, about...)
	}
}

// latencies are all of [Latency].
func (e *exposition) latencies(s *Summary) {
	for _, m := range s.Latency.metrics() {
		name, origin := m.name, []label(nil)
		if from, metric, ok := strings.Cut(strings.TrimPrefix(m.name, "from_"), "."); ok {
			name, origin = metric, []label{{"origin", from}}
		}
		e.statistics(name, "_seconds", meaning(name), m.stat, origin...)
	}
}

// figures are all that a run can be judged by, but for its latencies and for what has labels of its own.
func (e *exposition) figures(s *Summary) {
	for _, of := range figure.All() {
		name, unit := familyOf(of)
		help := meaning(of.Definitions()[0])
		switch of {
		case figure.Goodput, figure.InFlight, figure.HitRatio:
			continue
		}
		if of.Sessions || of.Servers {
			e.statistics(name, unit, help, s.stat(of))
		}
		if single := singles[of]; single != nil {
			e.add(name+unit, help, single(s))
		}
	}
}

// familyOf is the name of a figure's family, and the unit at its end, as Prometheus' conventions have them.
func familyOf(of *figure.Subject) (name, unit string) {
	switch of.Unit {
	case figure.Milliseconds:
		return of.Name, "_seconds"
	case figure.PerSecond:
		return strings.TrimSuffix(of.Name, "_per_s"), "_per_second"
	case figure.Share, figure.Times:
		return strings.TrimSuffix(of.Name, "_rate"), "_ratio"
	}
	return of.Name, ""
}

// statistics writes the statistics of a figure that has many values, and how many they are; nil is a run without any.
func (e *exposition) statistics(name, unit, help string, of *Stat, labels ...label) {
	if of == nil {
		return
	}
	type statistic struct {
		name string // as in the JSON
		v    *float64
	}
	values := []statistic{{"mean", of.Mean}, {"sd", of.SD}, {"min", of.Min}}
	for _, p := range percentiles {
		values = append(values, statistic{strings.ReplaceAll(p.name, ".", "_"), *p.of(of)})
	}
	for _, v := range append(values, statistic{"max", of.Max}) {
		if v.v != nil && unit == "_seconds" {
			v.v = Rounded(*v.v/1000, 1e9)
		}
		e.add(name+unit, help, v.v, append(slices.Clone(labels), label{"statistic", v.name})...)
	}
	e.add(name+"_values", "How many values the statistics of "+name+unit+" are of.", whole(of.Count), labels...)
}

// sessions are what sessions had, and what their time went to.
func (e *exposition) sessions(o *Sessions) {
	if o == nil {
		return
	}
	for _, of := range []struct {
		outcome SessionOutcome
		n       int64
	}{{SessionSucceeded, o.Succeeded}, {SessionFailed, o.Failed}, {SessionCensored, o.Censored}} {
		e.add("sessions", meaning("sessions"), whole(of.n), label{"outcome", of.outcome.String()})
	}
	for _, had := range []struct {
		name string
		of   *Spread
	}{{"requests", &o.Requests}, {"input_tokens", &o.Input}, {"cached_tokens", &o.Cached},
		{"output_tokens", &o.Output}} {
		e.statistics("session_"+had.name, "", meaning("sessions.requests_per_session"), had.of.stat())
	}
	if p := o.Path; p != nil {
		for _, part := range []struct {
			name string
			of   *PathPart
		}{{"until_first_token", &p.Prefill}, {"decode", &p.Decode}, {"think", &p.Think}, {"tool", &p.Tool},
			{"wait", &p.Wait}, {"client", &p.Client}} {
			e.add("session_path_seconds", meaning("sessions.critical_path"), part.of.MeanS,
				label{"part", part.name})
		}
	}
}

// load is what was sent, what came of it, and what the cache gave.
func (e *exposition) load(s *Summary) {
	r := &s.Requests
	for _, o := range []struct {
		outcome string
		n       int64
	}{{"succeeded", r.Succeeded}, {"failed", r.Failed}, {"cancelled", r.Cancelled}, {"not_sent", r.NotSent}} {
		e.add("requests", meaning("rows"), whole(o.n), label{"outcome", o.outcome})
	}
	for _, c := range s.Errors {
		e.add("errors", meaning("errors"), whole(c.Count), label{"class", c.Class})
	}
	e.add("duration_seconds", meaning("duration"), s.DurationS)
	e.add("offered_requests_per_second", meaning("offered_requests"), s.Throughput.OfferedPerS)
	if g := s.Goodput; g != nil {
		for _, o := range []struct {
			origin string
			good   Good
		}{{"sent", g.FromSent}, {"due", g.FromDue}} {
			labels := []label{{"origin", o.origin}, {"slo", g.SLO.String()}}
			e.add("goodput_requests_per_second", meaning("goodput"), o.good.PerS, labels...)
			e.add("goodput_ratio", meaning("goodput"), o.good.Share, labels...)
		}
	}
	e.add("in_flight_requests", meaning("in_flight"), s.InFlight.Mean, label{"statistic", "mean"})
	e.add("in_flight_requests", meaning("in_flight"), whole(int64(s.InFlight.Max)), label{"statistic", "max"})
	e.add("prefix_cache_hit_ratio", meaning("measured_ratio"), s.Cache.Measured, label{"kind", "measured"})
	e.add("prefix_cache_hit_ratio", meaning("expected_ratio"), s.Cache.Expected, label{"kind", "expected"})
}
