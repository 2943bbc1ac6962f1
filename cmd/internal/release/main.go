// Command release builds what a version of reprise is handed out as:
//
//   - an archive for each system and processor, of reprise and of reprise-cloud: the static binary, the licence, the
//     licences of its modules, README and shell completions
//   - an SBOM beside each archive: CycloneDX, from what the binary says of itself
//   - an OCI image for Linux on amd64 and arm64, as an OCI layout in a tar file that
//     docker load reads too
//   - a wheel for each system and processor: reprise and a module of Python, for pip and uvx
//   - where the place is named that it is published at: a formula for Homebrew, a manifest for
//     Scoop, and the source as a module of that path, for go install
//   - SHA256SUMS over all of them
//
// Two builds of one commit by one version of Go are the same byte for byte: their times are
// the commit's (or SOURCE_DATE_EPOCH), names are sorted, and neither the
// folder nor the user is in a file. Nothing but Go and git is run, and nothing is sent
// anywhere. An image layout is two tar files and four JSON files, so it is written
// here, without a library for registries and its dependencies.
//
//	release [-o dist] [-platforms linux/amd64,…] [-module host/owner/reprise]
//
// # Files
//
//   - main.go: the order of work, and the folder that all of it goes to
//   - build.go: the binaries, and the pages and scripts that a binary writes itself
//   - archive.go: tar, gzip and zip with nothing in them that changes between builds
//   - wheel.go: the wheels, their tags and versions; python has their module
//   - publish.go: the formula and the manifest, with the digests of the archives
//   - source.go: the source under the path that it is published at
//   - sbom.go: the SBOM, the licences of modules and which ones they are
//   - image.go: the OCI image: layers, root certificates, configuration and index
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sumsName is the list of digests, as sha256sum writes and checks it.
const sumsName = "SHA256SUMS"

// summary is what reprise does, in the words of an image, a package or a formula.
const summary = "Turn LLM traffic into a benchmark that you can share, and replay it on time"

// A release is one version, and how it is built.
type release struct {
	version, commit string
	when            time.Time // of the commit
	goVersion       string
	source, module  string // folder of the module, and its path
	home            string // module path that it is published at, where that is known
	platforms       []platform
}

// A platform is a system and a processor, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

func main() {
	out := flag.String("o", "dist", "folder that the release is written to; one of an earlier release is replaced")
	list := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64",
		"what to build for")
	home := flag.String("module", "", "module path that the release is published at, such as host/owner/reprise")
	flag.Parse()
	if *home != "" && !homePath.MatchString(*home) {
		fmt.Fprintf(os.Stderr, "release: %q is no module path: want host/owner/reprise, without https://\n", *home)
		os.Exit(2)
	}
	r := release{home: *home}
	for name := range strings.SplitSeq(*list, ",") {
		system, arch, _ := strings.Cut(name, "/")
		r.platforms = append(r.platforms, platform{system, arch})
	}
	err := r.describe()
	if err == nil {
		err = r.replace(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// output is what a program prints, without the newline at its end.
func output(program string, args ...string) (string, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// describe asks git and Go which version is built, by what.
func (r *release) describe() error {
	var seconds string
	for _, ask := range []struct {
		into *string
		args []string
	}{
		// A fixed length: git's own depends on how much of the history is there.
		{&r.version, []string{"git", "describe", "--tags", "--always", "--dirty", "--abbrev=12"}},
		{&r.commit, []string{"git", "rev-parse", "HEAD"}},
		{&seconds, []string{"git", "log", "-1", "--format=%ct"}},
		{&r.goVersion, []string{"go", "env", "GOVERSION"}},
		{&r.source, []string{"go", "list", "-m", "-f", "{{.Dir}}"}},
		{&r.module, []string{"go", "list", "-m"}},
	} {
		var err error
		if *ask.into, err = output(ask.args[0], ask.args[1:]...); err != nil {
			return err
		}
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: want seconds since 1970: %w", err)
	}
	r.when = time.Unix(n, 0).UTC()
	if strings.HasSuffix(r.version, "-dirty") {
		r.commit += "-dirty"
		fmt.Fprintln(os.Stderr, "release: files are changed and not committed: no one can build this version again")
	}
	return nil
}

// replace writes the release beside its folder, and puts it in its place when it is
// whole.
func (r *release) replace(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, sumsName)); err != nil {
		if list, _ := os.ReadDir(dir); len(list) > 0 {
			return fmt.Errorf("%s holds no release: name another folder, or remove it", dir)
		}
	}
	part := filepath.Clean(dir) + ".part-" + strconv.Itoa(os.Getpid())
	if err := os.MkdirAll(part, 0o755); err != nil {
		return err
	}
	err := r.write(part)
	if err == nil {
		err = errors.Join(os.RemoveAll(dir), os.Rename(part, dir))
	}
	return errors.Join(err, os.RemoveAll(part))
}

// A folder is where a release is written: the digest of each of its files, by name.
type folder struct {
	dir  string
	sums map[string]string
}

func (f *folder) keep(name string, data []byte) error {
	f.sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	fmt.Printf("%9.1f MB  %s\n", float64(len(data))/1e6, name)
	return os.WriteFile(filepath.Join(f.dir, name), data, 0o644)
}

// keepSums writes the list of digests.
func (f *folder) keepSums() error {
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.sums)) {
		fmt.Fprintf(&lines, "%s  %s\n", f.sums[name], name)
	}
	return os.WriteFile(filepath.Join(f.dir, sumsName), []byte(lines.String()), 0o644)
}

// stem is the name of an archive without its ending, and of the folder in it.
func (r *release) stem(program string, p platform) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.version, p.os, p.arch)
}

// write builds everything into an empty folder.
func (r *release) write(dir string) error {
	here, err := r.build(platform{runtime.GOOS, runtime.GOARCH}, plain)
	if err != nil {
		return err
	}
	shared, err := r.documents(here)
	if err != nil {
		return err
	}
	out := &folder{dir, map[string]string{}}
	linux := map[string][]byte{} // binaries by processor
	var linuxNotices []byte
	for _, p := range r.platforms {
		for _, program := range []string{plain, clouds} {
			b := here
			if p != here.platform || program != plain {
				if b, err = r.build(p, program); err != nil {
					return err
				}
			}
			notices, err := r.keepBinary(out, b, shared)
			if err != nil {
				return err
			}
			if p.os == "linux" && program == plain {
				linux[p.arch], linuxNotices = b.data, notices
			}
		}
	}
	if len(linux) > 0 {
		data, err := r.image(linux, linuxNotices)
		if err != nil {
			return err
		}
		if err := out.keep(fmt.Sprintf("reprise_%s_image.tar", r.version), data); err != nil {
			return err
		}
	}
	if err := r.keepPublished(out); err != nil {
		return err
	}
	return out.keepSums()
}

// keepBinary writes what a binary is handed out in: an archive with its SBOM, and a wheel where pip
// knows the platform. It returns the licences of the binary's modules.
func (r *release) keepBinary(out *folder, b *binary, shared []entry) ([]byte, error) {
	notices, bom, err := r.modules(b)
	if err != nil {
		return nil, err
	}
	files := append([]entry{{"THIRD-PARTY-LICENSES.txt", 0o644, notices}}, shared...)
	stem := r.stem(b.program, b.platform)
	name, data, err := r.archive(b.platform, stem, b, files)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(out.keep(name, data), out.keep(stem+".cdx.json", bom)); err != nil {
		return nil, err
	}
	if b.program != plain || wheelTags(b.platform) == nil {
		return notices, nil
	}
	if name, data, err = r.wheel(b, files); err != nil {
		return nil, err
	}
	return notices, out.keep(name, data)
}
