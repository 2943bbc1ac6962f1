package publish

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"reprise/anonymize"
	"reprise/trace/doc"
)

// tags are words by which the data set is found.
func (f *facts) tags() []string {
	tags := []string{"llm-serving", "inference", "benchmark", "workload", "trace"}
	if f.Trace.Meta.BlockSize > 0 {
		tags = append(tags, "prefix-caching")
	}
	if f.Card != nil {
		tags = append(tags, "differential-privacy")
	}
	return append(tags, "synthetic")
}

// sizeCategory is how Hugging Face says how many rows there are.
func sizeCategory(rows int64) string {
	names := []string{"1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"}
	limit := int64(1000)
	for i, name := range names {
		switch {
		case rows < limit && i == 0:
			return "n<1K"
		case rows < limit:
			return names[i-1] + "<n<" + name
		}
		limit *= 10
	}
	return "n>1T"
}

// abstract says in sentences what the data set is: what the operator says, then what it is.
func (f *facts) abstract(s Statement) string {
	made := "made of a description, without anybody's traffic"
	if f.Card != nil {
		made = "drawn from noisy counts of production traffic: no row is a real request"
	}
	return strings.TrimSpace(
		fmt.Sprintf("%s %s to language models: arrival times, lengths in tokens%s, without text; %s.", s.About,
			doc.Many(f.rows, "request"), f.reuse(), made))
}

func (f *facts) reuse() string {
	if f.Trace.Meta.BlockSize == 0 {
		return ""
	}
	return fmt.Sprintf(" and ids of shared prefix blocks of %d tokens", f.Trace.Meta.BlockSize)
}

// personal says what of persons is in it.
func (f *facts) personal() string {
	if f.Card == nil {
		return "None: it was made of a description, without anybody's traffic."
	}
	return fmt.Sprintf("No text, and no row of a real request. Tier %s; unit of privacy: %s; %s. See %s.", f.Card.Tier,
		f.Card.Unit, f.budget(), cardFile)
}

func (f *facts) budget() string {
	b := f.Card.Sessions.Budget
	return fmt.Sprintf("ε = %g, δ = %g", b.Epsilon, b.Delta)
}

func bytesText(n int64) string { return strconv.FormatInt(n, 10) + " B" }

// bibtex is an entry for LaTeX. Braces and backslashes of names are left out.
func (f *facts) bibtex(s Statement) string {
	clean := strings.NewReplacer("{", "", "}", "", "\\", "", "&", "\\&", "%", "\\%", "#", "\\#", "_", "\\_", "$", "\\$")
	var names []string
	for _, a := range s.Authors {
		if a.Name != "" {
			names = append(names, "{"+clean.Replace(a.Name)+"}")
		} else {
			names = append(names, clean.Replace(a.Family)+", "+clean.Replace(a.Given))
		}
	}
	version := ""
	if s.Edition != "" {
		version = ", version = {" + s.Edition + "}"
	}
	return fmt.Sprintf("@misc{%s, title = {%s}, author = {%s}, year = {%d}%s, url = {%s}}", path.Base(s.Repo),
		clean.Replace(s.Title), strings.Join(names, " and "), s.Date.Year(), version, s.URL())
}

// frontMatter is the metadata that Hugging Face reads (huggingface.co/docs/hub/datasets-cards).
type frontMatter struct {
	Title       freeText    `yaml:"pretty_name"`
	License     string      `yaml:"license"`
	LicenseName string      `yaml:"license_name,omitempty"`
	LicenseLink string      `yaml:"license_link,omitempty"`
	Tasks       []string    `yaml:"task_categories"`
	Sizes       []string    `yaml:"size_categories"`
	Tags        []string    `yaml:"tags"`
	Configs     []hubConfig `yaml:"configs"`
}

type hubConfig struct {
	Name  string     `yaml:"config_name"`
	Files []hubSplit `yaml:"data_files"`
}

type hubSplit struct {
	Split string `yaml:"split"`
	Path  string `yaml:"path"`
}

// readme is the dataset card.
func (f *facts) readme(s Statement) (string, error) {
	front := frontMatter{Title: freeText(s.Title), License: s.License.hub, Tasks: []string{"other"},
		Sizes: []string{sizeCategory(f.rows)}, Tags: f.tags(),
		Configs: []hubConfig{{"default", []hubSplit{{"train", dataFile}}}}}
	if front.License == "" {
		front.License, front.LicenseName, front.LicenseLink = "other", "other", s.License.URL
	}
	head, err := yaml.Marshal(front)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("---\n%s---\n", head)
	line("# %s\n", oneLine(s.Title))
	if f.Trace.Meta.Tier == anonymize.Partner {
		line("**For a partner under contract, not for publication** (tier partner). Keep it in a private repository.\n")
	}
	line("%s\n", f.abstract(s))
	line("| | |\n|---|---|")
	line("| requests | %s |", doc.Count(f.rows))
	line("| time from first to last | %s |", (time.Duration(f.spanNS)).Round(time.Second))
	line("| input tokens | %s, %s for each request |", doc.Count(f.input),
		doc.Number(float64(f.input)/float64(f.rows)))
	line("| output tokens | %s, %s for each request |", doc.Count(f.output),
		doc.Number(float64(f.output)/float64(f.rows)))
	if n := f.Trace.Meta.BlockSize; n > 0 {
		line("| prefix blocks | %d tokens each; the last of a row may be partial |", n)
	}
	line("| tokenizer | %s |", cmp.Or(f.Trace.Meta.Tokenizer, "as counted by the source"))
	line("| digest of the rows | `%s` |", f.Trace.Meta.Digest)
	line("| written by | %s |\n", f.Tool)

	line("## Use\n\n```python\nfrom datasets import load_dataset\n\nrequests = load_dataset(%q, "+
		"split=\"train\")\n```\n", s.Repo)
	line("```python\nimport pandas as pd\n\nrequests = pd.read_parquet(%q)\n```\n", dataFile)
	line("```\nreprise profile %[1]s\nreprise replay %[1]s --url http://localhost:8000 -o run.parquet\n```\n", dataFile)

	f.columnTable(line)
	f.privacy(line)
	line("## Licence and citation\n\nPublished under [%s](%s) by %s.\n", s.License.Name(), s.License.URL,
		oneLine(authors(s)))
	line("```bibtex\n%s\n```\n", f.bibtex(s))
	line("`%s` has the same for tools, `%s` describes the columns for loaders, and `sha256sum -c %s` checks the files.",
		citationFile, croissantFile, sumsFile)
	return b.String(), nil
}

// columnTable writes the columns that have values, and names the others.
func (f *facts) columnTable(line func(string, ...any)) {
	head, rule := "| column | type | meaning |", "|---|---|---|"
	if f.Card != nil {
		head, rule = head+" in this release |", rule+"---|"
	}
	line("## Columns\n\n%s\n%s", head, rule)
	var dropped []string
	for _, c := range f.columns {
		if c.dropped {
			dropped = append(dropped, "`"+c.name+"`")
			continue
		}
		null := ""
		if c.optional {
			null = ", may be null"
		}
		if f.Card != nil {
			line("| `%s` | %s%s | %s | %s |", c.name, c.kind, null, c.about, c.rule)
		} else {
			line("| `%s` | %s%s | %s |", c.name, c.kind, null, c.about)
		}
	}
	if len(dropped) > 0 {
		line("\nNull in this release: %s.", strings.Join(dropped, ", "))
	}
	line("\nRows are in order of arrival; the number of a row is its id in `parents`.\n")
}

// privacy writes what the privacy card says.
func (f *facts) privacy(line func(string, ...any)) {
	line("## Privacy\n")
	c := f.Card
	if c == nil {
		line("The rows were made of a description, without anybody's traffic.\n")
		return
	}
	line("No word of a prompt or an answer is in the rows, and no row is a real request: sessions were")
	line("counted in noisy tables, and these rows drawn from them. [%s](%s) has all of it.\n", cardFile, cardFile)
	line("| | |\n|---|---|")
	line("| tier | %s |", c.Tier)
	line("| unit of privacy | %s |", c.Unit)
	line("| budget | %s |", f.budget())
	line("| mechanism | %s |", c.Sessions.Mechanism)
	line("| protects | %s |", c.Sessions.Protects)
	line("| times | %s |", c.Time)
	line("| lengths | %s |\n", c.Lengths)
	line("Remaining risks:\n")
	for _, r := range c.Risks {
		line("- %s", r)
	}
	line("")
}

func authors(s Statement) string {
	var names []string
	for _, a := range s.Authors {
		names = append(names, a.text())
	}
	return strings.Join(names, ", ")
}

// oneLine keeps what an operator typed from being Markdown of its own.
func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "<", "&lt;", "[", "\\[", "*", "\\*", "`", "\\`",
		"_", "\\_").Replace(s)
}
