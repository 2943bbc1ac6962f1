package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every version that git describes is one that pip takes, and a tag of a version stays what it is.
func TestPEP440(t *testing.T) {
	// The canonical form, by the appendix of PEP 440, with a local version behind it.
	canonical := regexp.MustCompile(`^(0|[1-9]\d*)(\.(0|[1-9]\d*))*((a|b|rc)(0|[1-9]\d*))?(\.dev(0|[1-9]\d*))?(\+[a-z0-9]+(\.[a-z0-9]+)*)?$`)
	const commit = "0123456789abcdef0123"
	for version, want := range map[string]string{
		"v0.3.0":                               "0.3.0",
		"1.20.3":                               "1.20.3",
		"v0.3.0-dirty":                         "0.3.0+dirty",
		"v0.3.0-12-gabcdef012345":              "0.3.1.dev12+gabcdef012345",
		"v0.3.9-1-gabcdef012345-dirty":         "0.3.10.dev1+gabcdef012345.dirty",
		"v1.0.0-rc.1":                          "1.0.0rc1",
		"v1.0.0-rc1":                           "1.0.0rc1",
		"v1.0.0-alpha.2":                       "1.0.0a2",
		"v1.0.0-beta.10":                       "1.0.0b10",
		"v1.0.0-beta.10-3-g0011223344aa":       "1.0.0b11.dev3+g0011223344aa",
		"0123456789ab":                         "0.0.0.dev0+g0123456789ab",
		"unversioned":                          "0.0.0.dev0+g0123456789ab",
		"nightly-3-gabcdef012345":              "0.0.0.dev0+g0123456789ab",
		"v1.0.0-preview.of.spring":             "0.0.0.dev0+g0123456789ab",
		"v1.0.0-preview.1-2-gabcdef012345":     "0.0.0.dev0+g0123456789ab",
		"v1.0":                                 "0.0.0.dev0+g0123456789ab",
		"release/v1.0.0-4-gabcdef012345-dirty": "0.0.0.dev0+g0123456789ab.dirty",
	} {
		of := commit
		if strings.HasSuffix(version, "-dirty") {
			of += "-dirty"
		}
		if got := pep440(version, of); got != want || !canonical.MatchString(got) {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// What pip reads of a wheel is right on every platform, and does not depend on the order of the
// documents.
func TestWheel(t *testing.T) {
	r := someRelease
	r.version, r.home = "v1.2.3-4-gabcdef012345", "example.com/owner/reprise"
	documents := []entry{{"THIRD-PARTY-LICENSES.txt", 0o644, []byte("theirs")}, {"LICENSE", 0o644, []byte("ours")}, {"completions/_reprise", 0o644, []byte("complete")}}
	const stem = "reprise_llm-1.2.4.dev4+gabcdef012345"
	for p, want := range map[platform]struct{ tags, program string }{
		{"linux", "amd64"}:   {"manylinux_2_17_x86_64.musllinux_1_2_x86_64", "reprise"},
		{"linux", "arm64"}:   {"manylinux_2_17_aarch64.musllinux_1_2_aarch64", "reprise"},
		{"darwin", "amd64"}:  {"macosx_12_0_x86_64", "reprise"},
		{"darwin", "arm64"}:  {"macosx_12_0_arm64", "reprise"},
		{"windows", "amd64"}: {"win_amd64", "reprise.exe"},
		{"windows", "arm64"}: {"win_arm64", "reprise.exe"},
	} {
		b := &binary{platform: p, program: plain, data: []byte("program of " + p.String())}
		name, data, err := r.wheel(b, documents)
		if err != nil || name != stem+"-py3-none-"+want.tags+".whl" {
			t.Fatal(name, err)
		}
		again := slices.Clone(documents)
		slices.Reverse(again)
		if _, second, err := r.wheel(b, again); err != nil || !bytes.Equal(data, second) {
			t.Errorf("%s: another order of documents makes another wheel (%v)", name, err)
		}
		files, names := wheelFiles(t, data, r.when)
		program, info := stem+".data/scripts/"+want.program, stem+".dist-info/"
		if !slices.Equal(names, []string{"reprise/__init__.py", "reprise/py.typed", program, info + "METADATA", info + "WHEEL",
			info + "licenses/LICENSE", info + "licenses/THIRD-PARTY-LICENSES.txt", info + "RECORD"}) {
			t.Errorf("%s holds %q", name, names)
		}
		if e := files[program]; e.mode != 0o755 || !bytes.Equal(e.data, b.data) {
			t.Errorf("%s: %s is %q, %v", name, program, e.data, e.mode)
		}
		for tag := range strings.SplitSeq(want.tags, ".") {
			if !strings.Contains(string(files[info+"WHEEL"].data), "\nTag: py3-none-"+tag+"\n") {
				t.Errorf("%s: no tag %s in\n%s", name, tag, files[info+"WHEEL"].data)
			}
		}
		for _, line := range []string{"Name: reprise-llm", "Version: 1.2.4.dev4+gabcdef012345", "License-File: LICENSE", "Project-URL: Source, https://example.com/owner/reprise"} {
			if !strings.Contains(string(files[info+"METADATA"].data), "\n"+line+"\n") {
				t.Errorf("%s: no line %q in\n%s", name, line, files[info+"METADATA"].data)
			}
		}
	}
	if tags := wheelTags(platform{"plan9", "amd64"}); tags != nil {
		t.Error("pip knows no Plan 9, and there are tags:", tags)
	}
}

// wheelFiles returns the files of a wheel, in their order. It checks that RECORD has the digest of each
// of them but its own, and that they are of one time, where that is known.
func wheelFiles(t *testing.T, data []byte, when time.Time) (map[string]entry, []string) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	files, want := map[string]entry{}, ""
	var names []string
	for _, f := range r.File {
		content, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name], names = entry{f.Name, f.Mode(), content}, append(names, f.Name)
		sum := sha256.Sum256(content)
		if want += f.Name; strings.HasSuffix(f.Name, "/RECORD") {
			want += ",,\n"
		} else {
			want += fmt.Sprintf(",sha256=%s,%d\n", base64.RawURLEncoding.EncodeToString(sum[:]), len(content))
		}
		if !when.IsZero() && !f.Modified.Equal(when) {
			t.Errorf("%s is of %s, want the commit's %s", f.Name, f.Modified, when)
		}
	}
	if got := string(files[names[len(names)-1]].data); got != want {
		t.Errorf("the record is\n%s, want\n%s", got, want)
	}
	return files, names
}

// The module tells what failed from what was only judged bad, by the words of the command.
func TestModuleErrors(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("needs python3, and a shell script as a command: ", err)
	}
	script, err := os.ReadFile("testdata/errors.py") // read here, so that go test knows when it changes
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-B", "-c", string(script), "python").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// runWheel installs a wheel with pip, as a user does, and runs the command and the module with the frames
// of pandas and of Polars.
func runWheel(t *testing.T, path string) {
	for _, frames := range []string{"pandas", "polars"} {
		t.Run(frames, func(t *testing.T) {
			python, err := exec.LookPath("python3")
			if err != nil {
				t.Skip("needs python3: ", err)
			}
			dir := t.TempDir()
			if out, err := exec.Command(python, "-m", "venv", filepath.Join(dir, "v")).CombinedOutput(); err != nil {
				t.Skipf("no venv can be made: %v\n%s", err, out)
			}
			python = filepath.Join(dir, "v", "bin", "python")
			if out, err := exec.Command(python, "-m", "pip", "install", "--no-index", path).CombinedOutput(); err != nil {
				t.Fatalf("pip does not take %s: %v\n%s", path, err, out)
			}
			if out, err := exec.Command(python, "-m", "pip", "install", path+"["+frames+"]").CombinedOutput(); err != nil {
				t.Skipf("%s cannot be installed here: %v\n%s", frames, err, out)
			}
			script, err := filepath.Abs("testdata/frames.py")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(python, script, frames)
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "PATH=/nowhere") // the command is found beside this Python
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
