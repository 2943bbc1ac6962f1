package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

var someRelease = release{version: "v1.2.3", commit: "0123456789", when: time.Unix(1700000000, 0).UTC(), source: "../../.."}

// unpacked reads a tar file, gzipped or not.
func unpacked(t *testing.T, data []byte) (entries []entry, heads []*tar.Header) {
	t.Helper()
	if plain, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		if data, err = io.ReadAll(plain); err != nil {
			t.Fatal(err)
		}
	}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return entries, heads
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries, heads = append(entries, entry{h.Name, h.FileInfo().Mode(), content}), append(heads, h)
	}
}

// What an archive holds does not depend on the order of its documents, the machine or
// the time.
func TestArchive(t *testing.T) {
	b := &binary{program: plain, data: []byte("program")}
	documents := []entry{{"README.md", 0o644, []byte("read")}, {"LICENSE", 0o644, []byte("licence")}}
	for _, want := range []struct{ system, archive, program string }{{"linux", "x.tar.gz", "x/reprise"}, {"windows", "x.zip", "x/reprise.exe"}} {
		p := platform{want.system, "arm64"}
		name, first, err := someRelease.archive(p, "x", b, documents)
		if err != nil || name != want.archive {
			t.Fatal(name, err)
		}
		again := slices.Clone(documents)
		slices.Reverse(again)
		if _, second, err := someRelease.archive(p, "x", b, again); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: another order of documents makes another archive (%v)", name, err)
		}
		var got []string
		if want.system == "windows" {
			r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.File {
				got = append(got, fmt.Sprintf("%s %v %d", f.Name, f.Mode(), f.Modified.Unix()))
			}
		} else {
			_, heads := unpacked(t, first)
			for _, h := range heads {
				got = append(got, fmt.Sprintf("%s %v %d", h.Name, h.FileInfo().Mode(), h.ModTime.Unix()))
			}
		}
		if s := strings.Join(got, "\n"); s != "x/LICENSE -rw-r--r-- 1700000000\nx/README.md -rw-r--r-- 1700000000\n"+want.program+" -rwxr-xr-x 1700000000" {
			t.Errorf("%s holds\n%s", name, s)
		}
	}
}

// The SBOM names what is in a binary, here this test's own, and its licences.
func TestSBOM(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &binary{platform: platform{"linux", "amd64"}, program: plain, data: []byte("program")}
	if b.info, err = buildinfo.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	notices, data, err := someRelease.modules(b)
	if err != nil {
		t.Fatal(err)
	}
	var doc bom
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	m := doc.Metadata
	if m.Timestamp != "2023-11-14T22:13:20Z" || m.Component.Version != "v1.2.3" || m.Component.Licenses[0].License.ID != "Apache-2.0" || m.Component.Hashes[0].Content != fmt.Sprintf("%x", sha256.Sum256(b.data)) {
		t.Errorf("%+v", m)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(doc.Serial) {
		t.Error(doc.Serial)
	}
	for _, want := range []struct{ name, licence string }{{"std", "BSD-3-Clause"}, {"golang.org/x/crypto/x509roots/fallback", "BSD-3-Clause"}} {
		i := slices.IndexFunc(doc.Components, func(c component) bool { return c.Name == want.name })
		if i < 0 {
			t.Fatalf("no %s in %s", want.name, data)
		}
		c := doc.Components[i]
		if c.Version == "" || c.PURL != "pkg:golang/"+c.Name+"@"+c.Version || len(c.Licenses) != 1 || c.Licenses[0].License.ID != want.licence || (want.name != "std") != (len(c.Hashes) == 1 && len(c.Hashes[0].Content) == 64) {
			t.Errorf("%+v", c)
		}
		if !strings.Contains(string(notices), "\n======== "+c.Name+" "+c.Version+"\n") {
			t.Errorf("no licence of %s in the notices", c.Name)
		}
	}
}

func TestLicences(t *testing.T) {
	for text, want := range map[string]string{
		"MIT License\n\nPermission is hereby granted, free of\ncharge, to any person obtaining a copy": "MIT",
		"All rights reserved.": "",
		"Redistribution and use in source and binary forms, with or without\nmodification, are permitted": "BSD-2-Clause",
	} {
		if got := licenceOf([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// blob finds what a descriptor is of, and checks it.
func blob(t *testing.T, files map[string][]byte, d descriptor) []byte {
	t.Helper()
	data := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
	if len(data) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(data)) != d.Digest {
		t.Fatalf("%+v is of %d bytes", d, len(data))
	}
	return data
}

// imageFiles returns the files of an image for a processor. It checks every digest on the
// way from the index to the layers.
func imageFiles(t *testing.T, image []byte, arch string) (imageConfig, []entry, []*tar.Header) {
	t.Helper()
	files := map[string][]byte{}
	list, _ := unpacked(t, image)
	for _, e := range list {
		files[e.name] = e.data
	}
	decode := func(data []byte, into any) {
		t.Helper()
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
	}
	var top, index imageIndex
	decode(files["index.json"], &top)
	decode(blob(t, files, top.Manifests[0]), &index)
	i := slices.IndexFunc(index.Manifests, func(d descriptor) bool { return *d.Platform == imagePlatform{arch, "linux"} })
	if i < 0 {
		t.Fatalf("no manifest for %s: %+v", arch, index)
	}
	var m imageManifest
	var c imageConfig
	decode(blob(t, files, index.Manifests[i]), &m)
	decode(blob(t, files, m.Config), &c)
	if c.imagePlatform != *index.Manifests[i].Platform {
		t.Errorf("the configuration is for %+v", c.imagePlatform)
	}
	var all []entry
	var heads []*tar.Header
	for k, d := range m.Layers {
		r, err := gzip.NewReader(bytes.NewReader(blob(t, files, d)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(r)
		if err != nil || fmt.Sprintf("sha256:%x", sha256.Sum256(plain)) != c.RootFS.Diffs[k] {
			t.Errorf("layer %d is not %s: %v", k, c.RootFS.Diffs[k], err)
		}
		e, h := unpacked(t, plain)
		all, heads = append(all, e...), append(heads, h...)
	}
	var load []loadable // of docker load: the same
	decode(files["manifest.json"], &load)
	for _, l := range load {
		if strings.HasSuffix(l.RepoTags[0], "-"+arch) && (!bytes.Equal(files[l.Config], blob(t, files, m.Config)) || len(l.Layers) != len(m.Layers)) {
			t.Errorf("manifest.json has another image: %+v", l)
		}
	}
	return c, all, heads
}

// The image holds reprise for two processors, runs as no one in particular, and knows
// root certificates.
func TestImage(t *testing.T) {
	binaries := map[string][]byte{"amd64": []byte("for amd64"), "arm64": []byte("for arm64")}
	data, err := someRelease.image(binaries, []byte("notices"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := someRelease.image(binaries, []byte("notices")); err != nil || !bytes.Equal(data, again) {
		t.Error("two images of one release differ", err)
	}
	for arch := range binaries {
		c, files, heads := imageFiles(t, data, arch)
		if c.Config.User != "65532:65532" || !slices.Equal(c.Config.Entrypoint, []string{"/reprise"}) || c.Config.Labels["org.opencontainers.image.version"] != "v1.2.3" {
			t.Errorf("%+v", c.Config)
		}
		found := map[string]int{}
		for i, e := range files {
			found[e.name] = i
		}
		if e := files[found["reprise"]]; string(e.data) != "for "+arch || e.mode != 0o755 {
			t.Errorf("%s: reprise is %q, %v", arch, e.data, e.mode)
		}
		if h := heads[found["work/"]]; h.Uid != 65532 || h.Gid != 65532 {
			t.Errorf("the folder to work in belongs to %d", h.Uid)
		}
		pool := x509.NewCertPool()
		roots := files[found["etc/ssl/certs/ca-certificates.crt"]].data
		if !pool.AppendCertsFromPEM(roots) || bytes.Count(roots, []byte("BEGIN")) < 100 {
			t.Errorf("%d root certificates", bytes.Count(roots, []byte("BEGIN")))
		}
	}
}

// A folder of something else is not replaced.
func TestReplaceKeepsOtherFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := new(release).replace(dir)
	if err == nil || err.Error() != dir+" holds no release: name another folder, or remove it" {
		t.Error(err)
	}
}

// testDist is the folder of a release: the one that REPRISE_TEST_DIST names, or one
// that is built here for this machine alone.
func testDist(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("REPRISE_TEST_DIST"); dir != "" {
		return dir
	}
	if os.Getenv("REPRISE_TEST_RELEASE") == "" {
		t.Skip("builds a release twice, in minutes: make release-test sets REPRISE_TEST_RELEASE")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the image is for Linux")
	}
	r := release{platforms: []platform{{"linux", runtime.GOARCH}}}
	if err := r.describe(); err != nil {
		t.Skip("not in a checkout: ", err)
	}
	dirs := []string{filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "again")}
	var sums []string
	for _, dir := range dirs {
		if err := r.replace(dir); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, sumsName))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(data))
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds differ:\n%s\n%s", sums[0], sums[1])
	}
	return dirs[0]
}
