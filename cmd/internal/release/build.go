package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The programs of a release: reprise, and the same with the clients of object stores.
const (
	plain  = "reprise"
	clouds = "reprise-cloud"
)

// A binary is a program for one platform.
type binary struct {
	platform
	program string
	data    []byte
	info    *buildinfo.BuildInfo
}

// build compiles a program. What a person's environment may say about a build is set
// here, so that it says nothing.
func (r *release) build(p platform, program string) (*binary, error) {
	dir, err := os.MkdirTemp("", "reprise-release")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cli := r.module + "/cmd/reprise/internal/cli"
	set := []string{"-s", "-w"}
	for _, v := range [][2]string{{"Version", r.version}, {"Commit", r.commit},
		{"CommitDate", r.when.Format("2006-01-02T15:04:05Z")}} {
		set = append(set, "-X", cli+"."+v[0]+"="+v[1])
	}
	path := filepath.Join(dir, "reprise")
	tags := ""
	if program == clouds {
		tags = "clouds"
	}
	cmd := exec.Command("go", "build", "-tags", tags, "-trimpath", "-buildvcs=false", "-ldflags",
		strings.Join(set, " "), "-o", path, "./cmd/reprise")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=-mod=readonly",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}
	b := &binary{platform: p, program: program}
	if b.data, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	b.info, err = buildinfo.Read(bytes.NewReader(b.data))
	return b, err
}

// documents are the files of every archive but the binary: the licence, README, and
// what reprise writes itself, asked of the build for this machine.
func (r *release) documents(here *binary) ([]entry, error) {
	dir, err := os.MkdirTemp("", "reprise-release")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "reprise.exe") // Windows asks for the ending, and others do not mind
	if err := os.WriteFile(program, here.data, 0o755); err != nil {
		return nil, err
	}
	files := map[string]string{"LICENSE": filepath.Join(r.source, "LICENSE"),
		"README.md": filepath.Join(r.source, "README.md"), "CHANGELOG.md": filepath.Join(r.source, "CHANGELOG.md")}
	var out []entry
	for name, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{name, 0o644, data})
	}
	for shell, name := range map[string]string{"bash": "reprise.bash", "zsh": "_reprise", "fish": "reprise.fish",
		"powershell": "reprise.ps1"} {
		script, err := output(program, "completion", shell)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{"completions/" + name, 0o644, []byte(script + "\n")})
	}
	return out, nil
}
