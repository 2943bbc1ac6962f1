package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"time"

	"reprise/trace/textpage"
)

// The JUnit XML that CI systems read, as far as a report needs it.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       float64         `xml:"time,attr"` // s
	Timestamp  string          `xml:"timestamp,attr,omitempty"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    float64       `xml:"time,attr"`
	Failure *junitOutcome `xml:"failure,omitempty"`
	Error   *junitOutcome `xml:"error,omitempty"`
	Skipped *junitOutcome `xml:"skipped,omitempty"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the checks of the verdict, and the clauses of a contract, as JUnit
// XML. What does not hold is a failure. A check without a limit or a measurement is
// skipped; a clause that cannot be judged is an error.
func WriteJUnit(w io.Writer, s Summary) error {
	out := junitSuites{Name: title(&s), Suites: []junitSuite{verdictSuite(&s)}}
	if s.Contract != nil {
		suite := junitSuite{Name: joined("the contract is kept", s.Contract.Name)}
		for i := range s.Contract.Clauses { // a case for each
			c := &s.Contract.Clauses[i]
			test := junitCase{Class: "reprise.contract", Name: c.name()}
			switch c.Outcome {
			case Fails:
				test.Failure = &junitOutcome{Type: "contract", Message: joined(c.name()+" is "+c.figure(), c.verdict())}
			case Unjudged:
				test.Error = &junitOutcome{Type: "unjudged", Message: textpage.Plain(c.Why)}
			}
			suite.Cases = append(suite.Cases, test)
		}
		out.Suites = append(out.Suites, suite)
	}
	for i := range out.Suites {
		suite := &out.Suites[i]
		suite.sum(&s)
		out.Tests, out.Failures, out.Errors = out.Tests+suite.Tests, out.Failures+suite.Failures,
			out.Errors+suite.Errors
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// verdictSuite holds a case for each check.
func verdictSuite(s *Summary) junitSuite {
	suite := junitSuite{Name: "the run can be trusted"}
	for _, c := range s.Verdict.Checks {
		test := junitCase{Class: "reprise.verdict", Name: c.Code}
		for _, n := range checkNames {
			if n.code == c.Code {
				test.Name = n.name
			}
		}
		switch {
		case !c.Holds:
			why := ""
			if i := slices.IndexFunc(s.Verdict.Reasons, func(r Reason) bool { return r.Code == c.Code }); i >= 0 {
				why = textpage.Plain(s.Verdict.Reasons[i].Text)
			}
			test.Failure = &junitOutcome{Type: c.Code, Message: fmt.Sprintf("%s, and %s is allowed",
				inUnit(c.Measured, c.Unit), inUnit(c.Allowed, c.Unit)), Text: why}
		case c.Allowed == nil:
			test.Skipped = &junitOutcome{Message: "no limit is set"}
		case c.Measured == nil:
			test.Skipped = &junitOutcome{Message: cmp.Or(c.Says, "not measured")}
		}
		suite.Cases = append(suite.Cases, test)
	}
	return suite
}

// sum completes a suite with its counts and with what the run was.
func (suite *junitSuite) sum(s *Summary) {
	for _, c := range suite.Cases {
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}
	if s.DurationS != nil {
		suite.Time = *s.DurationS
	}
	if t, err := time.Parse(time.RFC3339, s.Run.Started); err == nil {
		suite.Timestamp = t.UTC().Format("2006-01-02T15:04:05")
	}
	add := func(name, value string) {
		if value != "" {
			suite.Properties = append(suite.Properties, junitProperty{name, textpage.Plain(value)})
		}
	}
	add("Workload", s.Run.Workload)
	add("Seed", s.Run.Seed)
	add("Schedule", schedule(&s.Run))
	for _, f := range Made(*s) {
		add(f.Label, f.Value)
	}
	add("Limits", s.Verdict.Loosened.String())
	add("Tier", s.Run.Tier)
}

// title names the run.
func title(s *Summary) string {
	out := "Replay"
	if s.Run.Simulated != "" {
		out = "Simulation"
	}
	if s.Run.Read != nil {
		out = textpage.Plain(s.Run.Read.Tool) + "'s run"
	}
	if s.Run.Model != "" {
		out += " of " + s.Run.Model
	}
	return out
}
