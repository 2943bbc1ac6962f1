package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// extract writes the entries of an archive below a folder, with their owners where
// the archive has them and this process may.
func extract(t *testing.T, dir string, entries []entry, heads []*tar.Header) {
	t.Helper()
	for i, e := range entries {
		path := filepath.Join(dir, e.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if e.mode.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, e.data, 0o600)
		}
		if err == nil {
			err = os.Chmod(path, e.mode)
		}
		if err == nil && heads != nil && os.Geteuid() == 0 {
			err = os.Chown(path, heads[i].Uid, heads[i].Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDist runs what of a release this machine can run, and looks into the rest.
func TestDist(t *testing.T) {
	dist := testDist(t)
	sums, err := os.ReadFile(filepath.Join(dist, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		if files[name], err = os.ReadFile(filepath.Join(dist, name)); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(files[name])) != sum {
			t.Errorf("%s is not what %s says", name, sumsName)
		}
	}
	if list, err := os.ReadDir(dist); err != nil || len(list) != len(files)+1 {
		t.Errorf("%d files in %s, and %d in %s: %v", len(list), dist, len(files), sumsName, err)
	}
	for name, data := range files {
		base, isTar := strings.CutSuffix(name, ".tar.gz")
		isZip := strings.HasSuffix(name, ".zip")
		switch {
		case strings.HasSuffix(name, "_image.tar"):
			t.Run("image", func(t *testing.T) { runImage(t, data) })
			t.Run("docker", func(t *testing.T) {
				if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
					t.Skipf("no daemon of Docker here: %v\n%s", err, out)
				}
				if out, err := exec.Command("docker", "load", "-i", filepath.Join(dist, name)).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				version := strings.TrimSuffix(strings.TrimPrefix(name, "reprise_"), "_image.tar")
				out, err := exec.Command("docker", "run", "--rm", "reprise:"+version+"-"+runtime.GOARCH, "version").CombinedOutput()
				if err != nil || !strings.HasPrefix(string(out), "reprise "+version+"\n") {
					t.Errorf("%v\n%s", err, out)
				}
			})
			continue
		case strings.HasSuffix(name, ".whl"):
			t.Run(name[strings.Index(name, "-py3"):], func(t *testing.T) { runDistWheel(t, filepath.Join(dist, name), data) })
			continue
		case name == "reprise.rb" || name == "reprise.json": // TestPublished
			continue
		case strings.HasSuffix(name, "_source.tar.gz"): // TestSource
			continue
		case strings.HasSuffix(name, ".cdx.json"):
			var doc bom
			if err := json.Unmarshal(data, &doc); err != nil || len(doc.Components) < 20 {
				t.Errorf("%s: %d components, %v", name, len(doc.Components), err)
			}
			continue
		case isZip:
			base = strings.TrimSuffix(name, ".zip")
		case !isTar:
			t.Errorf("%s: an unknown file", name)
			continue
		}
		parts := strings.Split(base, "_")
		p := platform{parts[len(parts)-2], parts[len(parts)-1]}
		t.Run(parts[0]+" "+p.String(), func(t *testing.T) {
			dir := t.TempDir()
			if isZip {
				r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
				if err != nil {
					t.Fatal(err)
				}
				var entries []entry
				for _, f := range r.File {
					content, err := fs.ReadFile(r, f.Name)
					if err != nil {
						t.Fatal(err)
					}
					entries = append(entries, entry{f.Name, f.Mode(), content})
				}
				extract(t, dir, entries, nil)
			} else {
				entries, heads := unpacked(t, data)
				extract(t, dir, entries, heads)
			}
			dir = filepath.Join(dir, base)
			for _, want := range []string{"LICENSE", "README.md", "CHANGELOG.md", "THIRD-PARTY-LICENSES.txt",
				"completions/reprise.bash", "completions/_reprise", "completions/reprise.fish", "completions/reprise.ps1"} {
				if data, err := os.ReadFile(filepath.Join(dir, want)); err != nil || len(data) < 200 {
					t.Errorf("%s: %d bytes, %v", want, len(data), err)
				}
			}
			program := filepath.Join(dir, parts[0])
			if isZip {
				program += ".exe"
			}
			if got := kind(t, program); got != p {
				t.Errorf("the binary is for %s", got)
			}
			if p != (platform{runtime.GOOS, runtime.GOARCH}) {
				return
			}
			cmd := exec.Command(program, "demo")
			cmd.Dir, cmd.Env = t.TempDir(), []string{}
			if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("Open demo/report.html in a browser.")) {
				t.Errorf("demo: %v\n%s", err, out)
			}
			if page, err := os.ReadFile(filepath.Join(cmd.Dir, "demo", "report.html")); err != nil || len(page) < 10_000 {
				t.Errorf("a page of %d bytes: %v", len(page), err)
			}
		})
	}
}

// runDistWheel holds the tags of a wheel to the binary in it, and installs and runs one for this machine.
func runDistWheel(t *testing.T, path string, data []byte) {
	files, names := wheelFiles(t, data, time.Time{})
	i := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, ".data/scripts/") })
	program := filepath.Join(t.TempDir(), "reprise")
	if err := os.WriteFile(program, files[names[i]].data, 0o755); err != nil {
		t.Fatal(err)
	}
	p := kind(t, program)
	if want := "-" + strings.Join(wheelTags(p), ".") + ".whl"; !strings.HasSuffix(path, want) {
		t.Errorf("the binary is for %s, and its tags are %s", p, want)
	}
	if p == (platform{runtime.GOOS, runtime.GOARCH}) {
		runWheel(t, path)
	}
	if p.os != "darwin" {
		return
	}
	f, err := macho.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const buildVersion, twelve = 0x32, 12 << 16 // LC_BUILD_VERSION: command, size, platform, oldest system
	if !slices.ContainsFunc(f.Loads, func(l macho.Load) bool {
		raw := l.Raw()
		return f.ByteOrder.Uint32(raw) == buildVersion && f.ByteOrder.Uint32(raw[12:]) == twelve
	}) {
		t.Error("the binary is not for macOS 12 and later, as the tag says")
	}
}

// kind is what a binary runs on, by its headers. One for Linux must be static.
func kind(t *testing.T, path string) platform {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
	if f, err := elf.NewFile(r); err == nil {
		if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
			t.Error("the binary is not static")
		}
		return platform{"linux", map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine]}
	}
	if f, err := macho.NewFile(r); err == nil {
		return platform{"darwin", map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu]}
	}
	f, err := pe.NewFile(r)
	if err != nil {
		t.Fatal("the binary is of no known kind")
	}
	return platform{"windows", map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[f.Machine]}
}

// runImage starts the binary from the layers of the image, with nothing else in its
// root, as the user and in the folder that the image names.
func runImage(t *testing.T, image []byte) {
	c, files, heads := imageFiles(t, image, runtime.GOARCH)
	if os.Geteuid() != 0 {
		t.Skip("needs root, for chroot")
	}
	root, err := os.MkdirTemp("/tmp", "reprise-image") // others may pass through, as not through a test's own folder
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	extract(t, root, files, heads)
	for _, args := range [][]string{{"version"}, {"demo"}} {
		cmd := exec.Command(c.Config.Entrypoint[0], args...)
		cmd.Path, cmd.Dir, cmd.Env = c.Config.Entrypoint[0], c.Config.WorkingDir, c.Config.Env
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		t.Logf("%.200s", out)
	}
	page, err := os.Stat(filepath.Join(root, "work", "demo", "report.html"))
	if err != nil || page.Sys().(*syscall.Stat_t).Uid != imageUser {
		t.Errorf("the page: %v", err)
	}
}
