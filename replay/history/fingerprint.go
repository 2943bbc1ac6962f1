package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/replay/compare"
	"reprise/replay/result"
	"reprise/trace/textpage"
)

// A part is one thing that the runs of a series have in common.
type part struct{ name, value string }

// fingerprint is what two runs must have in common to be of one series: what [compare]
// asks of the rounds of a comparison, and what serves. The seed and the client's build
// may differ, which over months they do; so may the version of the engine.
func fingerprint(r *result.Run) (out []part) {
	for _, c := range compare.Conditions() {
		if c.Name != compare.ConditionSeed && c.Name != compare.ConditionClient {
			out = append(out, part{c.Name, c.Of(r)})
		}
	}
	d, machine, gpus := result.Deployment{}, "", ""
	if e := r.Environment; e != nil {
		if e.Deployment != nil {
			d = *e.Deployment
		}
		machine = fmt.Sprint(e.Host.OS, " ", e.Host.Arch, " ", e.Host.CPU, " ", e.Host.Cores)
		for _, g := range e.GPUs {
			gpus += fmt.Sprintf("%d × %s ", g.Count, g.Name)
		}
	}
	flags := portFlag.ReplaceAllString(d.EngineFlags, "")
	d.Engine, d.EngineFlags = "", ""
	deployment, err := json.Marshal(d)
	if err != nil {
		deployment = nil // a NaN; no run is read with one
	}
	kind := "" // of client
	if r.Simulated != "" {
		kind = "simulated"
	}
	if r.Read != nil {
		kind = r.Read.Tool
	}
	name := strings.Fields(strings.ToLower(engineOf(r)))
	if i := slices.IndexFunc(name, versionWord.MatchString); i >= 0 {
		name = name[:i]
	}
	return append(out, part{"engine", strings.Join(name, " ")}, part{"engine flags", strings.TrimSpace(flags)},
		part{"deployment", string(deployment)}, part{"GPUs", strings.TrimSpace(gpus)}, part{"client machine", machine},
		part{"number of servers", fmt.Sprint(len(r.Endpoints), " ", r.Instances)}, part{"kind", kind})
}

// portFlag is where a server listens, which says nothing of what it does.
var portFlag = regexp.MustCompile(`--port[= ]\d+\s*`)

// engineOf is the engine and its version: what who started the run said, else what the
// servers said of themselves.
func engineOf(r *result.Run) string {
	if r.Simulated != "" {
		return "simulated"
	}
	name := ""
	if e := r.Environment; e != nil {
		if e.Deployment != nil && e.Deployment.Engine != "" {
			return textpage.Plain(e.Deployment.Engine)
		}
		var owners []string // engines name themselves as owners of their models
		for _, s := range e.Servers {
			for _, m := range s.Models {
				if name := cmp.Or(s.Engine, m.OwnedBy); name != "" && !slices.Contains(owners, name) {
					owners = append(owners, name)
				}
			}
		}
		name = strings.Join(owners, "+")
	}
	return textpage.Plain(strings.TrimSpace(name + " " + r.ServerVersion))
}

var versionWord = regexp.MustCompile(`^v?\d`)

var (
	namedCommit  = regexp.MustCompile(`(?i)\b(?:commit|sha|rev|revision)\s*[=: ]\s*([\w./-]+)`)
	described    = regexp.MustCompile(`-g([0-9a-f]{7,40})\b`) // by git describe
	bareCommit   = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	digitsOnly   = regexp.MustCompile(`^\d+$`)
	shownCommit  = 8 // characters
	commitLength = 40
)

// commitOf finds a commit in a note: commit=NAME, or a hash by its look. A date is none.
func commitOf(note string) string {
	if m := namedCommit.FindStringSubmatch(note); m != nil {
		return textpage.Plain(m[1])
	}
	if m := described.FindStringSubmatch(note); m != nil {
		return m[1]
	}
	for _, hash := range bareCommit.FindAllString(note, -1) {
		if !digitsOnly.MatchString(hash) || len(hash) == commitLength {
			return hash
		}
	}
	return ""
}

// isHash tells a commit that git shortens from the name of a tag or a version.
var isHash = regexp.MustCompile(`^[0-9a-f]{9,40}$`)

// Name is what a run is called: its commit, shortened, else its note, else its file.
func (r *Run) Name() string {
	switch {
	case isHash.MatchString(r.Commit):
		return r.Commit[:shownCommit]
	case r.Commit != "":
		return r.Commit
	case r.Note != "":
		return textpage.Plain(r.Note)
	}
	return textpage.Plain(strings.TrimSuffix(r.File, ".parquet"))
}

// is tells whether a name means the run: its commit or the begin of it, or its note.
func (r *Run) is(name string) bool {
	short := min(len(name), len(r.Commit))
	return name == r.Note || short >= 7 && r.Commit[:short] == name[:short] || name != "" && name == r.Commit
}
