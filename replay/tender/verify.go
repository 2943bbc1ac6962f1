package tender

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reprise/replay/contract"
	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/scenario"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/page"
	"reprise/trace/textpage"
)

// submissionSchema names the layout of a [Submission] as JSON.
const submissionSchema = "submission/1"

// A Submission is what is claimed of a run: the digest of its results, so that they cannot be
// changed later, and every figure.
type Submission struct {
	Schema  string          `json:"schema"`
	Pack    string          `json:"pack_sha256"`
	Results string          `json:"results_sha256"` // of the rows, see [ResultsDigest]
	Summary json.RawMessage `json:"summary"`        // a report.Summary
}

// ReadSubmission reads a submission from its file.
func ReadSubmission(path string) (*Submission, error) {
	text, err := objectstore.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Submission{}
	switch {
	case json.Unmarshal(text, s) != nil:
		return nil, fmt.Errorf("%s is not a submission: reprise verify -o writes one", path)
	case s.Schema != submissionSchema:
		return nil, fmt.Errorf("%s has the schema %q, want %s", path, s.Schema, submissionSchema)
	}
	return s, nil
}

// Parts of a finding.
const (
	partSeed     = "seed"
	partFile     = "file"
	partWorkload = "workload"
	partResults  = "results"
	partRules    = "rules"
	partSystem   = "system"
	partFigure   = "figure"
	partPack     = "pack"
)

// A Finding is something that does not match.
type Finding struct {
	Part string `json:"part"` // seed, file, workload, results, rules, system, figure or pack
	Text string `json:"text"`
}

// A Verification is what came of holding a run, or a submission, to a pack.
type Verification struct {
	Schema   string    `json:"schema"` // verification/1
	Pack     string    `json:"pack"`
	Matches  bool      `json:"matches"`
	Findings []Finding `json:"findings"`
	Figures  int       `json:"figures"` // of the submission that were compared; 0 without one
	Rows     int64     `json:"rows"`    // of the results

	Results  string                 `json:"results_sha256"`
	Contract *report.ContractResult `json:"contract"` // computed again; null where it cannot be read

	Summary report.Summary `json:"-"` // computed again
}

func (v *Verification) find(part, format string, args ...any) {
	v.Findings = append(v.Findings, Finding{part, fmt.Sprintf(format, args...)})
}

// A Case is what is to be verified.
type Case struct {
	Pack *Pack
	Dir  string // where the files of the pack are
	Seed Seed

	// Workload makes the rows that the seed makes of a specification, whose text it gives as well.
	Workload func(seed uint64) (rows trace.Reader[trace.Request], text []byte, err error)

	Run     result.Run
	Results report.Reread
	// Summarise computes the summary of the results under the options, with what was measured
	// at the servers.
	Summarise func(report.Options) (report.Summary, error)

	Submission *Submission // nil verifies the run alone
}

// Verify holds a run to a pack, and with a submission its figures to the results. An error says
// that something cannot be read; what does not match is a finding.
func Verify(c Case) (*Verification, error) {
	v := &Verification{Schema: "verification/1", Pack: c.Pack.Name, Findings: []Finding{}}
	if c.Seed.Commitment() != c.Pack.Commits {
		v.find(partSeed, "the seed is not the one that the pack commits to")
	}
	rows, err := v.workload(&c)
	if err != nil {
		return nil, err
	}
	if err := v.rows(&c, rows); err != nil {
		return nil, err
	}
	terms, err := v.contract(&c)
	if err != nil {
		return nil, err
	}
	if err := v.rules(&c); err != nil {
		return nil, err
	}
	for _, name := range c.Pack.lacking(&c.Run) {
		v.find(partSystem, "the run does not say %s of the system", name)
	}
	o := report.Options{}
	if terms != nil {
		o.Contract = terms
	}
	if v.Summary, err = c.Summarise(o); err != nil {
		return nil, err
	}
	v.Contract = v.Summary.Contract
	if c.Submission != nil {
		if err := v.figures(&c); err != nil {
			return nil, err
		}
	}
	v.Matches = len(v.Findings) == 0
	return v, nil
}

// bound reads a file that the pack binds; text is nil where it does not match.
func (v *Verification) bound(c *Case, what string, b Bound) (text []byte, err error) {
	text, err = objectstore.ReadFile(objectstore.Join(c.Dir, filepath.FromSlash(b.File)))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the pack names %s as its %s, which is not beside it", b.File, what)
	case err != nil:
		return nil, err
	case digest(text) != b.SHA256:
		v.find(partFile, "%s, the %s, is not the file that the pack binds: its SHA-256 is %s", b.File, what, digest(text))
	}
	return text, nil
}

// A workloadRow is what of a row of the workload results have.
type workloadRow struct {
	input, output int32
	arrival       int64
	session       int64 // −1 for none
	sent          bool
	failed        bool // in the source
}

// workload makes the workload again.
func (v *Verification) workload(c *Case) (rows []workloadRow, err error) {
	if !c.Pack.BuiltIn {
		if _, err := v.bound(c, "specification of the workload", c.Pack.Workload); err != nil {
			return nil, err
		}
	}
	reader, text, err := c.Workload(c.Seed.Seed)
	if err != nil {
		return nil, fmt.Errorf("the workload cannot be made again: %w", err)
	}
	if c.Pack.BuiltIn && digest(text) != c.Pack.Workload.SHA256 {
		v.find(partFile, "the built-in workload %s of this version of Reprise is not the one that the pack binds", c.Pack.Workload.File)
	}
	sum := trace.NewDigest()
	err = trace.Each(reader, func(_ int64, r *trace.Request) error {
		sum.Add([]trace.Request{*r})
		rows = append(rows, workloadRow{r.InputTokens, r.OutputTokens, r.ArrivalNS, orNone(r.Session), false, r.Status == trace.StatusFailed})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if got := sum.Sum(); got != c.Pack.Digest {
		v.find(partWorkload, "the seed makes the workload %s, and the pack binds %s", got, c.Pack.Digest)
	}
	if c.Run.Workload != c.Pack.Digest {
		v.find(partWorkload, "the run was made with the workload %s, and the pack binds %s", c.Run.Workload, c.Pack.Digest)
	}
	return rows, nil
}

func orNone(id *int64) int64 {
	if id == nil {
		return -1
	}
	return *id
}

// mostRowFindings is how many rows that do not match are named.
const mostRowFindings = 5

// rows holds the results to the workload, row by row, and computes their digest.
func (v *Verification) rows(c *Case, rows []workloadRow) error {
	sum := sha256.New()
	bad := 0
	fault := func(r *result.Result, format string, args ...any) {
		if bad++; bad <= mostRowFindings {
			v.find(partResults, "row %d: %s", r.RowID, fmt.Sprintf(format, args...))
		}
	}
	lines := json.NewEncoder(sum)
	err := trace.Each(c.Results(), func(_ int64, r *result.Result) error {
		v.Rows++
		if err := lines.Encode(r); err != nil {
			return err
		}
		if err := report.CheckResult(r); err != nil {
			return err
		}
		if r.RowID < 0 || r.RowID >= int64(len(rows)) {
			fault(r, "the workload has %s", page.Many(int64(len(rows)), "row"))
			return nil
		}
		row := &rows[r.RowID]
		row.sent = true
		switch {
		case r.WantInput != row.input || r.WantOutput != row.output:
			fault(r, "it asks for %d and %d tokens, the workload for %d and %d", r.WantInput, r.WantOutput, row.input, row.output)
		case orNone(r.Session) != row.session:
			fault(r, "it is of another session than in the workload")
		case r.ArrivalNS != nil && *r.ArrivalNS != row.arrival:
			fault(r, "it arrives at %d ns, in the workload at %d ns", *r.ArrivalNS, row.arrival)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if bad > mostRowFindings {
		v.find(partResults, "%s more do not match the workload", page.Many(int64(bad-mostRowFindings), "row"))
	}
	left := int64(0)
	for i := range rows {
		if !rows[i].sent && !rows[i].failed {
			left++
		}
	}
	if left > 0 {
		v.find(partResults, "%s of the workload %s not in the results", page.Many(left, "row"), map[bool]string{true: "is", false: "are"}[left == 1])
	}
	v.Results = hex.EncodeToString(sum.Sum(nil))
	if c.Submission != nil && c.Submission.Results != v.Results {
		v.find(partResults, "they are not those that were submitted: the digest of their rows is %s, and the submission has %s", v.Results, textpage.Plain(c.Submission.Results))
	}
	return nil
}

func (v *Verification) contract(c *Case) (*contract.Contract, error) {
	text, err := v.bound(c, "contract", c.Pack.Contract)
	if err != nil {
		return nil, err
	}
	terms, err := contract.Parse(c.Pack.Contract.File, text)
	if err != nil {
		return nil, err
	}
	return &terms, nil
}

// rules looks whether the run was held to the rules of the pack, and stamps it again.
func (v *Verification) rules(c *Case) error {
	if c.Pack.Rules.File == "" {
		return nil
	}
	if _, err := v.bound(c, "rules", c.Pack.Rules); err != nil {
		return err
	}
	stamp := c.Run.Scenario
	if stamp == nil {
		v.find(partRules, "the run was held to no rules: replay --scenario %s", c.Pack.Rules.File)
		return nil
	}
	if stamp.Rules != c.Pack.Rules.SHA256 {
		v.find(partRules, "the run was held to other rules, whose SHA-256 is %s", textpage.Plain(stamp.Rules))
		return nil
	}
	rules, err := scenario.Find(objectstore.Join(c.Dir, filepath.FromSlash(c.Pack.Rules.File)))
	if err != nil {
		return err
	}
	again, err := rules.Restamp(c.Run, c.Results())
	if err != nil {
		return err
	}
	was, _ := json.Marshal(stamp)
	is, _ := json.Marshal(again)
	if !bytes.Equal(was, is) {
		v.find(partRules, "the stamp of the run is not what its results give")
	}
	for _, b := range again.Broken {
		v.find(partRules, "broken: %s", textpage.Plain(b.String()))
	}
	return nil
}

// figures compares the summary of the submission with the one that was computed again.
func (v *Verification) figures(c *Case) error {
	if c.Submission.Pack != c.Pack.SHA256 {
		v.find(partPack, "the submission is to another pack")
	}
	var again bytes.Buffer
	if err := report.WriteJSON(&again, v.Summary); err != nil {
		return err
	}
	found, n, err := differences(c.Submission.Summary, again.Bytes())
	if err != nil {
		return fmt.Errorf("the summary of the submission: %w", err)
	}
	v.Figures = n
	for _, d := range found {
		switch {
		case d.got == "":
			v.find(partFigure, "%s is missing in the submission; the results give %s", d.path, cut(d.was))
		case d.was == "":
			v.find(partFigure, "%s is %s in the submission, and the results have no such figure", textpage.Plain(d.path), cut(d.got))
		default:
			v.find(partFigure, "%s is %s in the submission, and %s by the results", d.path, cut(d.got), cut(d.was))
		}
	}
	return nil
}

// cut is a value for a line.
func cut(s string) string {
	if s = textpage.Plain(s); len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// Submit is the submission of a run that was verified.
func (v *Verification) Submit(p *Pack) (*Submission, error) {
	var summary bytes.Buffer
	if err := report.WriteJSON(&summary, v.Summary); err != nil {
		return nil, err
	}
	return &Submission{submissionSchema, p.SHA256, v.Results, summary.Bytes()}, nil
}

// answerFindings are how many findings an answer shows.
const answerFindings = 8

// Write prints what was found: the answer first, all findings with details.
func (v *Verification) Write(p *textpage.Page, o textpage.Options) {
	what := fmt.Sprintf("%s of results", page.Many(v.Rows, "row"))
	if v.Figures > 0 {
		what += fmt.Sprintf(" and %s of the submission", page.Many(int64(v.Figures), "value"))
	}
	if v.Matches {
		p.Line("", "Everything matches the pack: seed, files, workload, "+what+".")
	} else {
		p.Line("", fmt.Sprintf("NOT as the pack and the results say, at %s (%s checked):", page.Many(int64(len(v.Findings)), "place"), what))
	}
	for i, f := range v.Findings {
		if i == answerFindings && !o.Details {
			p.Line("", fmt.Sprintf("and %s more: --details", page.Brief(int64(len(v.Findings)-i))))
			break
		}
		p.LineAtMost(o.AtMost(2), "- "+f.Part+": ", f.Text+".")
	}
	if v.Contract != nil {
		says := v.Contract.String()
		p.LineAtMost(o.AtMost(3), "", strings.ToUpper(says[:1])+says[1:]+".")
	}
	p.Line("", "Digest of the rows of the results: "+v.Results)
}
