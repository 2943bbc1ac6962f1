package main

import (
	"strings"
	"testing"

	"reprise/replay"
	"reprise/replay/bench"
	"reprise/replay/compare"
	"reprise/replay/contract"
	"reprise/replay/figure"
	"reprise/replay/report"
)

// figureReaders are all that read the name of a figure. Each returns the name that it prints for it, where it
// takes one.
var figureReaders = map[string]func(name string, f figure.Figure) (printed string, err error){
	"compare --primary": func(name string, _ figure.Figure) (string, error) { return compare.ParsePrimary(name) },
	"a clause of a contract": func(name string, f figure.Figure) (string, error) {
		limit := map[figure.Unit]string{figure.Milliseconds: "5s", figure.Share: "5%"}[f.Unit]
		if limit == "" {
			limit = "5"
		}
		for _, operator := range []string{"<=", ">="} {
			c, err := contract.Parse("c", []byte("gpus: 1\nprice_per_gpu_hour: 1\nclauses:\n  - clause: "+name+" "+operator+" "+limit+"\n"))
			if err == nil {
				printed, _, _ := strings.Cut(c.Clauses[0].String(), " "+operator)
				return strings.ReplaceAll(printed, " ", "_"), nil
			} else if operator == ">=" || !strings.Contains(err.Error(), "want >= after") {
				return "", err
			}
		}
		return "", nil
	},
	"the primary metric of a row of a suite": func(name string, _ figure.Figure) (string, error) {
		s, err := bench.ParseSuite("s", []byte("name: s\nrows:\n  - name: a\n    workload: chat\n    load: concurrency:1\n    primary: "+name+"\n"))
		if err != nil {
			return "", err
		}
		return s.Rows[0].Primary.String(), nil
	},
	"sweep --clause": func(name string, f figure.Figure) (string, error) {
		operator := map[bool]string{true: " >= ", false: " <= "}[f.Better == figure.Higher]
		c, err := spelled(name + operator + f.Example())
		if err != nil || strings.HasPrefix(f.Name, "cost_") {
			return f.String(), err // a cost has no price there
		}
		printed, _, _ := strings.Cut(c.Clauses[0].String(), operator)
		return strings.ReplaceAll(printed, " ", "_"), nil
	},
	"replay --abort-on": func(name string, f figure.Figure) (string, error) {
		limit := map[figure.Unit]string{figure.Milliseconds: "5s", figure.Share: "5%"}[f.Unit]
		if limit == "" {
			limit = "5"
		}
		c, err := replay.ParseConditions(name + ">" + limit)
		if err != nil {
			return "", err
		}
		return c[0].Of.String(), nil
	},
}

// Whatever reads a figure reads it by every spelling or by none, and prints one name. Every figure is defined.
func TestEveryFigureByEverySpelling(t *testing.T) {
	accepted, explained := map[string]int{}, map[string]string{}
	for _, s := range figure.All() {
		for _, statistic := range []figure.Statistic{0, figure.P99, figure.Mean} {
			f := figure.Figure{Subject: s, Statistic: statistic}
			if s.Spread != (statistic != 0) {
				continue
			}
			for reader, read := range figureReaders {
				printed, refused := read(f.String(), f)
				if refused == nil {
					accepted[reader]++
					accepted[s.Name]++
					explained[s.Name] = spellingsOf(statistic, s.Name)[1]
				}
				if refused == nil && printed != f.String() {
					t.Errorf("%s prints %s as %s", reader, f, printed)
				}
				for _, spelling := range s.Spellings() {
					for _, name := range spellingsOf(statistic, spelling) {
						printed, err := read(name, f)
						if (err == nil) != (refused == nil) || err == nil && printed != f.String() {
							t.Errorf("%s reads %q as %q, %v; and %s with %v", reader, name, printed, err, f, refused)
						}
					}
				}
			}
		}
		if e, err := report.Explain(explained[s.Name]); err != nil || len(e.Definitions) == 0 {
			t.Errorf("report --explain does not know %s: %v", explained[s.Name], err)
		}
		if accepted[s.Name] == 0 {
			t.Errorf("nothing reads %s", s.Name)
		}
	}
	for reader := range figureReaders {
		if accepted[reader] < 5 {
			t.Errorf("%s reads %d figures", reader, accepted[reader])
		}
	}
}

// Objectives are read by every spelling, and what a shell offers is read where it is offered.
func TestObjectivesAndCompletion(t *testing.T) {
	long(t)
	for _, of := range []*figure.Subject{figure.TTFT, figure.TPOT, figure.ITL, figure.E2E} {
		for _, spelling := range of.Spellings() {
			for _, name := range spellingsOf(0, spelling) {
				if slo, err := report.ParseSLO(name + ":1s"); err != nil || slo.String() != of.Name+":1s" {
					t.Errorf("--slo reads %s as %s, %v", name, slo, err)
				}
			}
		}
	}
	offered := completedValues()
	for flag, reader := range map[string]string{"primary": "compare --primary", "abort-on": "replay --abort-on"} {
		for _, name := range offered[flag] {
			f, err := figure.Parse(name, func(figure.Figure) bool { return true })
			if err == nil {
				_, err = figureReaders[reader](name, f)
			}
			if err != nil {
				t.Errorf("a shell offers --%s %s: %v", flag, name, err)
			}
		}
	}
	for _, name := range offered["explain"] {
		if e, err := report.Explain(name); err != nil || len(e.Paths) == 0 {
			t.Errorf("a shell offers --explain %s: %v", name, err)
		}
	}
}

// spellingsOf are ways to write a statistic of a subject.
func spellingsOf(statistic figure.Statistic, subject string) []string {
	if statistic == 0 {
		return []string{subject, strings.ToUpper(subject), strings.ReplaceAll(subject, "_", "-")}
	}
	of := statistic.String()
	return []string{of + " " + subject, subject + "-" + of, subject + "_" + of + "_ms", strings.ToUpper(of + "_" + subject)}
}
