package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestHomePath(t *testing.T) {
	for home, want := range map[string]bool{"example.com/owner/reprise": true, "git.example.com/reprise": true,
		"https://example.com/owner/reprise": false, "example.com": false, "example.com/owner/": false, "owner/reprise": false,
		"example.com/a b/reprise": false, "": false, "example.com/owner/reprise.git?x": false} {
		if homePath.MatchString(home) != want {
			t.Errorf("%q is a module path: %v", home, !want)
		}
	}
}

// The formula and the manifest name every archive of their systems where it is published, with its digest.
func TestPublished(t *testing.T) {
	r := someRelease
	r.home = "example.com/owner/reprise"
	sums := map[string]string{}
	for _, p := range []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}} {
		for _, ending := range []string{".tar.gz", ".zip"} {
			sums[r.stem(plain, p)+ending] = "sum of " + p.String() + ending
		}
	}
	formula := string(r.formula(sums))
	for _, want := range []struct{ system, processor, p string }{{"macos", "arm", "darwin_arm64"}, {"macos", "intel", "darwin_amd64"}, {"linux", "arm", "linux_arm64"}, {"linux", "intel", "linux_amd64"}} {
		_, block, _ := strings.Cut(formula, "\n  on_"+want.system+" do\n")
		block, _, _ = strings.Cut(block, "\n  end\n")
		if !strings.Contains(block, fmt.Sprintf(`    on_%s do
      url "https://example.com/owner/reprise/releases/download/v1.2.3/reprise_v1.2.3_%s.tar.gz"
      sha256 "sum of %s.tar.gz"
    end`, want.processor, want.p, strings.Replace(want.p, "_", "/", 1))) {
			t.Errorf("no %s on %s in\n%s", want.processor, want.system, formula)
		}
	}
	if !strings.Contains(formula, "\n  version \"1.2.3\"\n") || strings.Contains(formula, "windows") {
		t.Error(formula)
	}
	if ruby, err := exec.LookPath("ruby"); err == nil {
		cmd := exec.Command(ruby, "-c")
		cmd.Stdin = strings.NewReader(formula)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("no Ruby: %v\n%s", err, out)
		}
	}
	data, err := r.manifest(sums)
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Version, Bin string
		Architecture map[string]struct {
			URL, Hash string
			Folder    string `json:"extract_dir"`
		}
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	for scoop, arch := range map[string]string{"64bit": "amd64", "arm64": "arm64"} {
		stem := "reprise_v1.2.3_windows_" + arch
		got := manifest.Architecture[scoop]
		if got.URL != "https://example.com/owner/reprise/releases/download/v1.2.3/"+stem+".zip" || got.Hash != "sum of windows/"+arch+".zip" || got.Folder != stem {
			t.Errorf("%s: %+v", scoop, got)
		}
	}
	if manifest.Version != "1.2.3" || manifest.Bin != "reprise.exe" || len(manifest.Architecture) != 2 {
		t.Errorf("%s", data)
	}
	delete(sums, r.stem(plain, platform{"linux", "arm64"})+".tar.gz")
	if formula := string(r.formula(sums)); strings.Contains(formula, "linux_arm64") {
		t.Errorf("the formula names an archive that there is not:\n%s", formula)
	}
}

// Without a place of publication nothing is written that would name one.
func TestNothingPublished(t *testing.T) {
	out := &folder{t.TempDir(), map[string]string{}}
	r := someRelease
	if err := r.keepPublished(out); err != nil || len(out.sums) > 0 {
		t.Error(out.sums, err)
	}
}

// Packages get the path that they are published at, and paths of files stay.
func TestAtHome(t *testing.T) {
	r := release{module: "reprise", home: "example.com/owner/reprise"}
	for _, c := range []struct{ name, text, want string }{
		{"a.go", "package a\n\nimport (\n\t\"flag\"\n\n\t\"golang.org/x/text\"\n\tx \"reprise/cmd/reprise/internal/cli\"\n)\n", "package a\n\nimport (\n\t\"flag\"\n\n\tx \"example.com/owner/reprise/cmd/reprise/internal/cli\"\n\t\"golang.org/x/text\"\n)\n"},
		{"a.go", "var _ = exec.Command(\"go\", \"list\", \"reprise/...\", \"./cmd/reprise/...\")\n", "var _ = exec.Command(\"go\", \"list\", \"example.com/owner/reprise/...\", \"./cmd/reprise/...\")\n"},
		{"a.go", "// [reprise/trace.Writer] of reprise in cmd/reprise/main.go\npackage a\n", "// [example.com/owner/reprise/trace.Writer] of reprise in cmd/reprise/main.go\npackage a\n"},
		{"a.go", `join(home, ".local/state/reprise/stores", "/run/reprise/key")`, `join(home, ".local/state/reprise/stores", "/run/reprise/key")`},
		{"Makefile", "-X reprise/cmd/reprise/internal/cli.Version=v1", "-X example.com/owner/reprise/cmd/reprise/internal/cli.Version=v1"},
		{"docs/schema.md", "`go doc reprise/trace` of 1 reprise/2", "`go doc example.com/owner/reprise/trace` of 1 reprise/2"},
		{"go.mod", "module reprise\n\nrequire (\n\treprise v0.0.0\n\treprised v1.0.0\n)\n", "module example.com/owner/reprise\n\nrequire (\n\texample.com/owner/reprise v0.0.0\n\treprised v1.0.0\n)\n"},
		{"b/go.mod", "module reprise/b\nreplace reprise => ../..\n", "module example.com/owner/reprise/b\nreplace example.com/owner/reprise => ../..\n"},
	} {
		if got, err := r.atHome(c.name, []byte(c.text)); err != nil || string(got) != c.want {
			t.Errorf("%s: %q becomes %q, want %q (%v)", c.name, c.text, got, c.want, err)
		}
	}
}

// TestSource publishes the rewritten source to a module proxy of files, as a tag of a repository would be, and
// installs the command from there; the linker's version works in it too.
func TestSource(t *testing.T) {
	if os.Getenv("REPRISE_TEST_RELEASE") == "" {
		t.Skip("builds reprise twice, in minutes: make release-test sets REPRISE_TEST_RELEASE")
	}
	r := release{home: "example.com/owner/reprise"}
	if err := r.describe(); err != nil {
		t.Skip("not in a checkout: ", err)
	}
	data, err := r.rewritten()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.rewritten(); err != nil || !bytes.Equal(data, again) {
		t.Error("two trees of one source differ", err)
	}
	const version = "v1.2.3"
	files, _ := unpacked(t, data)
	tree, proxy := t.TempDir(), t.TempDir()
	nested := map[string]bool{} // folders that are modules of their own, which Go leaves out
	for _, e := range files {
		if path.Base(e.name) == "go.mod" {
			nested[path.Dir(e.name)] = true
		}
	}
	var module []entry
	for _, e := range files {
		_, name, _ := strings.Cut(e.name, "/")
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, e.data, e.mode); err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(e.name)
		for !nested[dir] {
			dir = path.Dir(dir)
		}
		if !strings.Contains(dir, "/") {
			module = append(module, entry{r.home + "@" + version + "/" + name, 0o644, e.data})
		}
	}
	zipped, err := zipped(module, r.when)
	if err != nil {
		t.Fatal(err)
	}
	served := filepath.Join(proxy, r.home, "@v")
	if err := os.MkdirAll(served, 0o755); err != nil {
		t.Fatal(err)
	}
	goMod, err := fs.ReadFile(os.DirFS(tree), "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": []byte(`{"Version":"` + version + `"}`), version + ".mod": goMod, version + ".zip": zipped} {
		if err := os.WriteFile(filepath.Join(served, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := output("go", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	install := exec.Command("go", "install", r.home+"/cmd/reprise@"+version)
	install.Dir = bin
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+filepath.Join(bin, "mod"), "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0",
		"GONOSUMDB=*", "GOPROXY=file://"+proxy+",file://"+cache+"/cache/download")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stamped := exec.Command("go", "build", "-ldflags", "-X "+r.home+"/cmd/reprise/internal/cli.Version=v9.9.9", "-o", filepath.Join(bin, "stamped"), "./cmd/reprise")
	stamped.Dir, stamped.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := stamped.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for program, want := range map[string]string{"reprise": version, "stamped": "v9.9.9"} {
		if out, err := output(filepath.Join(bin, program), "version"); err != nil || !strings.HasPrefix(out, "reprise "+want+"\n") {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
	if left, err := output("gofmt", "-l", tree); err != nil || left != "" {
		t.Errorf("gofmt would change these files of the tree: %v\n%s", err, left)
	}
}
