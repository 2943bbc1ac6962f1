package main

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// python is what a wheel has beside the binary: the module, and the page of the package.
//
//go:embed python/README.md python/reprise/__init__.py
var python embed.FS

// described is a version of git describe: of a tag, or of so many commits behind one.
var described = regexp.MustCompile(`^v?(\d+\.\d+\.)(\d+)(?:-(alpha|beta|rc)\.?(\d+))?(?:-(\d+)-(g[0-9a-f]+))?(-dirty)?$`)

// pep440 is a version as Python writes it. pip takes nothing else, and sorts by it: a commit behind a
// tag is one on the way to the next version, so that an upgrade goes from v0.3.0 to it and not back.
func pep440(version, commit string) string {
	var local []string
	m := described.FindStringSubmatch(version)
	if m == nil { // no tag, or one that is no version
		commit, dirty, changed := strings.Cut(commit, "-")
		if changed {
			dirty = "." + dirty
		}
		return "0.0.0.dev0+g" + commit[:min(12, len(commit))] + dirty
	}
	before, last, behind := m[1], m[2], m[5]
	if m[3] != "" {
		before, last = before+last+map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[3]], m[4]
	}
	if behind != "" {
		n, _ := strconv.Atoi(last) // digits, by the expression
		last = strconv.Itoa(n+1) + ".dev" + behind
		local = append(local, m[6])
	}
	if m[7] != "" {
		local = append(local, "dirty")
	}
	if len(local) > 0 {
		last += "+" + strings.Join(local, ".")
	}
	return before + last
}

// wheelTags are the platforms, as pip names them, on which the binary of p runs: none where pip has
// no name. Binaries for Linux are static, so that one runs on glibc and on musl; those for macOS are
// for the oldest one that this version of Go builds for.
func wheelTags(p platform) []string {
	return map[platform][]string{
		{"linux", "amd64"}:   {"manylinux_2_17_x86_64", "musllinux_1_2_x86_64"},
		{"linux", "arm64"}:   {"manylinux_2_17_aarch64", "musllinux_1_2_aarch64"},
		{"darwin", "amd64"}:  {"macosx_12_0_x86_64"},
		{"darwin", "arm64"}:  {"macosx_12_0_arm64"},
		{"windows", "amd64"}: {"win_amd64"},
		{"windows", "arm64"}: {"win_arm64"},
	}[p]
}

// wheel packs a binary as a package of Python: pip puts the binary beside python, and the module
// among the modules. The documents that it has are the licences.
func (r *release) wheel(b *binary, documents []entry) (name string, data []byte, err error) {
	version, tags := pep440(r.version, r.commit), wheelTags(b.platform)
	stem := "reprise_llm-" + version
	program := stem + ".data/scripts/" + b.program
	if b.os == "windows" {
		program += ".exe"
	}
	module, err := python.ReadFile("python/reprise/__init__.py")
	if err != nil {
		return "", nil, err
	}
	about, err := r.wheelMetadata(version)
	if err != nil {
		return "", nil, err
	}
	format := "Wheel-Version: 1.0\nGenerator: reprise release\nRoot-Is-Purelib: false\n"
	for _, tag := range tags {
		format += "Tag: py3-none-" + tag + "\n"
	}
	info := stem + ".dist-info/"
	entries := []entry{{"reprise/__init__.py", 0o644, module}, {"reprise/py.typed", 0o644, nil},
		{program, 0o755, b.data}, {info + "METADATA", 0o644, about}, {info + "WHEEL", 0o644, []byte(format)}}
	for _, e := range documents {
		if strings.Contains(e.name, "LICENSE") {
			entries = append(entries, entry{info + "licenses/" + e.name, 0o644, e.data})
		}
	}
	var record strings.Builder
	slices.SortFunc(entries, byName)
	for _, e := range entries {
		sum := sha256.Sum256(e.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.data))
	}
	record.WriteString(info + "RECORD,,\n")
	data, err = zipped(append(entries, entry{info + "RECORD", 0o644, []byte(record.String())}), r.when)
	return stem + "-py3-none-" + strings.Join(tags, ".") + ".whl", data, err
}

// wheelMetadata is what a package index shows of the package, and what pip asks of it.
func (r *release) wheelMetadata(version string) ([]byte, error) {
	page, err := python.ReadFile("python/README.md")
	source := ""
	if r.home != "" {
		source = "Project-URL: Source, https://" + r.home + "\n"
	}
	return fmt.Appendf(nil, `Metadata-Version: 2.4
Name: reprise-llm
Version: %s
Summary: %s
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD-PARTY-LICENSES.txt
Requires-Python: >=3.9
Provides-Extra: pandas
Requires-Dist: pandas>=2; extra == "pandas"
Requires-Dist: pyarrow>=14; extra == "pandas"
Provides-Extra: polars
Requires-Dist: polars>=1; extra == "polars"
%sDescription-Content-Type: text/markdown

%s`, version, summary, source, page), err
}
