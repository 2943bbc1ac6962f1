package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayImport is the whole table of imports among our own packages: what is not
// here is not allowed, and a new package needs a line.
var mayImport = map[string]string{
	"trace":             "trace/ending trace/objectstore",
	"trace/ending":      "",
	"trace/objectstore": "",
	"trace/arrowipc":    "",
	"trace/crash":       "", // and everybody may import it
	"trace/token":       "trace/token/internal/jinja trace/objectstore",
	"trace/block":       "",
	"trace/quantity":    "",
	"trace/nonfinite":   "",
	"trace/usage":       "",
	"trace/arrival":     "trace/quantity",
	"trace/textpage":    "",
	"trace/doc":         "trace/textpage",
	"trace/strictyaml":  "trace/quantity trace/objectstore",
	"trace/profile":     "trace trace/block trace/doc trace/sample trace/breaker trace/fleet trace/textpage",
	"trace/sample":      "",
	"trace/recording":   "trace trace/block trace/objectstore trace/usage",
	"trace/shard":       "trace trace/recording trace/objectstore",
	"trace/fleet":       "trace trace/block trace/sample",
	"trace/breaker":     "trace trace/block trace/doc",
	"datasets": "datasets/internal/fault datasets/internal/record datasets/internal/stamp datasets/internal/row " +
		"datasets/internal/sniff datasets/internal/input datasets/internal/talk trace trace/arrowipc trace/strictyaml " +
		"trace/crash trace/ending trace/nonfinite trace/token trace/arrival trace/objectstore trace/usage",
	"datasets/demolog":   "",
	"datasets/record":    "trace trace/ending trace/recording replay/openai trace/usage",
	"datasets/export":    "trace datasets datasets/internal/fault",
	"datasets/catalogue": "",
	"anonymize":          "trace trace/recording trace/shard trace/token trace/block trace/breaker trace/profile anonymize/dp anonymize/internal/confine",
	"anonymize/dp":       "",
	"anonymize/publish":  "trace trace/doc anonymize",
	"anonymize/audit":    "synth synth/release trace trace/token trace/block trace/profile datasets anonymize anonymize/dp trace/doc trace/sample trace/textpage trace/objectstore trace/usage",
	"synth":              "trace trace/block trace/arrival trace/fleet trace/profile anonymize/dp trace/doc trace/sample",
	"synth/prompt":       "trace trace/token trace/block trace/sample",
	"synth/fidelity":     "trace trace/block trace/fleet trace/profile trace/doc trace/sample synth trace/textpage",
	"synth/release":      "trace trace/profile trace/sample anonymize/dp synth",
	"synth/spec":         "trace trace/arrival trace/block trace/profile trace/quantity trace/strictyaml",
	"replay":             "trace trace/arrival trace/quantity replay/result replay/pace replay/scrape replay/host replay/figure",
	"replay/figure":      "trace/quantity",
	"replay/client":      "trace trace/sample trace/usage replay/result replay/openai replay/scrape replay/host replay/client/internal/h1 replay/client/internal/picture",
	"replay/check":       "replay/client replay/openai replay/result trace/doc trace/textpage trace/token",
	"replay/result":      "trace trace/arrowipc replay/host replay/scrape trace/objectstore trace/usage",
	"replay/pace":        "",
	"replay/shard":       "replay/result trace trace/sample trace/objectstore",
	"replay/job":         "",
	"replay/openai":      "trace/ending trace/usage",
	"replay/scrape":      "",
	"replay/host":        "",
	"replay/engine":      "trace trace/quantity trace/token trace/block replay/hardware replay/openai replay/pace trace/ending trace/sample replay/result trace/fleet",
	"replay/hardware":    "trace/doc trace/nonfinite",
	"replay/report":      "trace trace/ending trace/usage trace/profile trace/quantity replay/result replay/scrape replay/host trace/doc trace/sample trace/textpage replay/figure",
	"replay/contract":    "trace trace/quantity trace/doc trace/sample trace/strictyaml replay/result replay/report replay/figure",
	"replay/scenario":    "trace trace/doc trace/quantity trace/strictyaml replay/result replay/report",
	"replay/peer":        "trace trace/sample replay/result replay/report",
	"replay/peerfile":    "trace trace/nonfinite trace/doc replay/openai replay/result replay/report trace/objectstore",
	"replay/compare":     "trace trace/doc trace/sample replay/result replay/report trace/textpage replay/figure",
	"replay/bench":       "replay replay/result replay/openai replay/report replay/contract replay/engine trace trace/arrival trace/doc trace/quantity trace/sample trace/strictyaml trace/textpage trace/objectstore trace/fleet replay/figure",
	"replay/calibrate":   "replay/figure replay/engine replay/report replay/result trace trace/doc trace/sample trace/strictyaml trace/textpage trace/fleet",
	"replay/monitor":     "replay replay/host replay/result",
	"cmd/reprise":        "*",

	"cmd/reprise/internal/cli":         "replay/peerfile replay/result trace trace/doc trace/recording trace/shard trace/textpage trace/objectstore",
	"cmd/reprise/internal/flags":       "cmd/reprise/internal/cli anonymize anonymize/dp datasets synth replay replay/client replay/contract replay/engine replay/result replay/bench replay/openai replay/pace replay/peer replay/report replay/scenario replay/scrape synth/prompt synth/spec trace trace/arrival trace/doc trace/quantity trace/strictyaml trace/textpage trace/token replay/calibrate replay/hardware trace/objectstore trace/fleet",
	"cmd/reprise/internal/importshard": "cmd/reprise/internal/cli cmd/reprise/internal/flags anonymize datasets trace trace/doc trace/shard trace/token trace/objectstore",
	"cmd/reprise/internal/publication": "cmd/reprise/internal/cli cmd/reprise/internal/flags anonymize anonymize/publish trace trace/doc trace/objectstore",
	"cmd/reprise/internal/sets":        "cmd/reprise/internal/cli cmd/reprise/internal/flags datasets/catalogue trace/doc trace/textpage",
	"cmd/reprise/internal/machines":    "cmd/reprise/internal/cli cmd/reprise/internal/flags cmd/reprise/internal/runs replay/client replay/host replay/job replay/result replay/shard trace/doc trace/textpage",
	"cmd/reprise/internal/runs":        "cmd/reprise/internal/cli cmd/reprise/internal/flags anonymize replay replay/bench replay/check replay/client replay/engine replay/hardware replay/host replay/monitor replay/openai replay/report replay/result replay/shard synth synth/fidelity synth/prompt trace trace/doc trace/profile trace/quantity trace/sample trace/textpage trace/token trace/usage trace/objectstore",

	"cmd/internal/codecheck": "",
	"cmd/internal/release":   "",

	"examples/readtrace":       "trace",
	"examples/writepartitions": "trace",
	"examples/slowest":         "trace replay/result",
	"examples/replayload":      "trace trace/token synth/prompt replay replay/client replay/engine replay/result",
	"examples/race/truth":      "",

	"datasets/internal/row":   "datasets/internal/fault datasets/internal/record datasets/internal/stamp trace trace/nonfinite",
	"datasets/internal/sniff": "datasets/internal/record datasets/internal/row",
	"datasets/internal/input": "datasets/internal/fault datasets/internal/record datasets/internal/stamp datasets/internal/row " +
		"datasets/internal/sniff trace/arrowipc trace/nonfinite trace/objectstore",
	"datasets/internal/talk":   "datasets/internal/row trace",
	"datasets/internal/record": "datasets/internal/fault trace/nonfinite",
	"datasets/internal/stamp":  "datasets/internal/fault trace",
	"datasets/internal/fault":  "trace",

	"trace/token/internal/jinja":     "",
	"anonymize/internal/confine":     "",
	"replay/client/internal/h1":      "replay/openai",
	"replay/client/internal/picture": "trace/sample",
	"replay/report/table":            "trace trace/sample replay/result replay/report",
	"replay/result/resulttest":       "trace trace/usage replay/result", // for tests
	"trace/bombtest":                 "",                                // for tests
	"trace/ending/endingtest":        "trace/ending",                    // for tests
	"trace/longtest":                 "",                                // for tests
	"trace/doc/pagetest":             "trace/longtest",                  // for tests
	"trace/usage/usagetest":          "",                                // for tests
}

func TestImportTable(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "reprise/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); packages++ {
		words := strings.Fields(lines.Text())
		pkg := strings.TrimPrefix(words[0], "reprise/")
		allowed, ok := mayImport[pkg]
		if !ok {
			t.Errorf("package %s is not in the table", pkg)
		}
		for _, w := range words[1:] {
			imp, own := strings.CutPrefix(w, "reprise/")
			if own && allowed != "*" && imp != "trace/crash" && !slices.Contains(strings.Fields(allowed), imp) {
				t.Errorf("%s imports %s", pkg, imp)
			}
		}
	}
	if packages < 10 {
		t.Fatalf("go list named %d packages only", packages)
	}
}

// ofTheMachine are the files of code that open files of the machine by package os, and why no
// object of a store comes there. All others use package objectstore.
var ofTheMachine = map[string]string{
	"anonymize/dp/ledger.go":                          "a ledger is added to under a lock",
	"anonymize/internal/confine":                      "descriptors of the process",
	"anonymize/keyfile.go":                            "a key stays on the machine",
	"anonymize/rawread.go":                            "text goes into no store",
	"anonymize/publish/publish.go":                    "a folder that cli.Stage keeps on the machine",
	"cmd/reprise/internal/cli":                        "what decides between the two",
	"cmd/reprise/internal/flags/learnt.go":            "in the folder of what is remembered of a user",
	"cmd/reprise/internal/flags/vllmresult.go":        "a file that is added to",
	"cmd/reprise/internal/importshard/importshard.go": "after a look at the name",
	"cmd/reprise/internal/publication/publication.go": "a folder that cli.Stage keeps on the machine",
	"cmd/reprise/internal/runs/journal.go":            "a journal, which cli.Stage keeps on the machine",
	"cmd/reprise/internal/sets/sets.go":               "a folder that cli.Stage keeps on the machine",
	"cmd/reprise/main.go":                             "which words of a command that broke down are files",
	"cmd/reprise/record.go":                           "a folder that cli.Stage keeps on the machine",
	"cmd/reprise/synthsessions.go":                    "after a look at the name",
	"datasets/catalogue":                              "downloads, which are added to",
	"datasets/demolog":                                "a program for this repository",
	"replay/bench":                                    "folders of runs, which cli.Stage keeps on the machine",
	"replay/host":                                     "/proc",
	"trace/bombtest":                                  "for tests: the table of bounds",
	"trace/file.go":                                   "after a look at the name",
	"trace/file_linux.go":                             "/proc",
	"trace/objectstore":                               "what decides between the two",
}

// A path that a user gives may be one of a store, so that whoever opens it asks objectstore.
func TestPathsOfStores(t *testing.T) {
	opens := regexp.MustCompile(`\bos\.(Open|Stat|ReadDir|ReadFile|Create)\(|\bfilepath\.(Glob|Walk|WalkDir)\(`)
	used := map[string]bool{}
	for _, dir := range []string{"anonymize", "cmd/reprise", "datasets", "replay", "synth", "trace"} {
		err := filepath.WalkDir("../../"+dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/pagetest/") {
				return nil
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			at := opens.Find(code)
			for folder := name; at != nil && folder != "."; folder = filepath.ToSlash(filepath.Dir(folder)) {
				if ofTheMachine[folder] != "" {
					used[folder], at = true, nil
				}
			}
			if at != nil {
				t.Errorf("%s calls %s: the path may be of a store, so call it in package objectstore; where it never is, ofTheMachine says why", name, at)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range ofTheMachine {
		if !used[name] {
			t.Errorf("%s opens nothing by package os: take it out of ofTheMachine", name)
		}
	}
}

// Every package narrates its step of the flow.
func TestPackageComments(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{"\t"}}{{.Doc}}`, "reprise/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(bytes.TrimSpace(out)), "\n") {
		pkg, doc, _ := strings.Cut(line, "\t")
		if len(doc) < 30 {
			t.Errorf("%s has no package comment", pkg)
		}
	}
}

// An idea that many packages need has one home.
func TestOneHome(t *testing.T) {
	for what, idea := range map[string]struct {
		home string
		code *regexp.Regexp
	}{
		"the finaliser of SplitMix64":   {"trace/sample/mix.go", regexp.MustCompile(`(?i)0xbf58476d1ce4e5b9`)},
		"commas between thousands":      {"trace/doc/number.go", regexp.MustCompile(`\[:i\] \+ ","`)},
		"a share in percent, as digits": {"trace/doc/number.go", regexp.MustCompile(`func (percent|Percent)\(\w+ float64\) string \{\n?[^}]*(FormatFloat|hundredths)`)},
	} {
		var homes []string
		err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if idea.code.Match(text) {
				homes = append(homes, strings.TrimPrefix(filepath.ToSlash(path), "../../"))
			}
			return err
		})
		if err != nil || !slices.Equal(homes, []string{idea.home}) {
			t.Errorf("%s: %v, %v; want %s alone", what, homes, err, idea.home)
		}
	}
}

// TestMap holds the map of docs/architecture.md to the tree: it names every package,
// and every path in it exists.
func TestMap(t *testing.T) {
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(doc), "\n## Map\n")
	text, _, _ := strings.Cut(after, "\n## ")
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z0-9_/.]+)`").FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
		if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
			t.Errorf("the map names %s: %v", m[1], err)
		}
	}
	for pkg := range mayImport {
		if !strings.Contains(pkg, "/internal/") && pkg != "datasets/demolog" && !named[pkg] {
			t.Errorf("the map does not name %s", pkg)
		}
	}
}
