package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is who runs in the container: a number without a name on the host.
const imageUser = 65532

// Media types of the OCI image format.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type (
	descriptor struct {
		Type        string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *imagePlatform    `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	imagePlatform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	imageIndex struct {
		Schema    int               `json:"schemaVersion"`
		Type      string            `json:"mediaType"`
		Manifests []descriptor      `json:"manifests"`
		About     map[string]string `json:"annotations,omitempty"`
	}
	imageManifest struct {
		Schema int               `json:"schemaVersion"`
		Type   string            `json:"mediaType"`
		Config descriptor        `json:"config"`
		Layers []descriptor      `json:"layers"`
		About  map[string]string `json:"annotations"`
	}
	imageConfig struct {
		Created string `json:"created"`
		imagePlatform
		Config struct {
			User       string            `json:"User"`
			Env        []string          `json:"Env"`
			Entrypoint []string          `json:"Entrypoint"`
			Cmd        []string          `json:"Cmd"`
			WorkingDir string            `json:"WorkingDir"`
			Labels     map[string]string `json:"Labels"`
		} `json:"config"`
		RootFS struct {
			Type  string   `json:"type"`
			Diffs []string `json:"diff_ids"`
		} `json:"rootfs"`
		History []imageStep `json:"history"`
	}
	imageStep struct {
		Created string `json:"created"`
		By      string `json:"created_by"`
	}
	// A loadable image is how docker load finds one that is no OCI layout to it.
	loadable struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
)

// A layout is an OCI image layout: files by what is in them.
type layout struct{ blobs map[string][]byte }

// keep puts a blob into the layout.
func (l *layout) keep(mediaType string, data []byte) descriptor {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	l.blobs["blobs/sha256/"+digest] = data
	return descriptor{Type: mediaType, Digest: "sha256:" + digest, Size: len(data)}
}

func (l *layout) keepJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.keep(mediaType, data), err
}

// rootCertificates are the roots that Mozilla trusts without a condition, as PEM.
// They come with a Go module, so that go.sum pins them: those of the machine that
// builds would make the image depend on it.
func rootCertificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// image is the OCI image for the binaries, by processor: a tar file of its layout.
func (r *release) image(binaries map[string][]byte, notices []byte) ([]byte, error) {
	when := r.when.Format("2006-01-02T15:04:05Z")
	about := map[string]string{"org.opencontainers.image.title": "reprise",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.created": when,
		"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.description": summary}
	l := layout{map[string][]byte{}}
	index := imageIndex{Schema: 2, Type: typeIndex, About: about}
	var load []loadable
	user := fmt.Sprintf("%d:%d", imageUser, imageUser)
	for _, arch := range slices.Sorted(maps.Keys(binaries)) {
		m := imageManifest{Schema: 2, Type: typeManifest, About: about}
		c := imageConfig{Created: when, imagePlatform: imagePlatform{arch, "linux"}}
		c.Config.User, c.Config.Entrypoint, c.Config.Cmd, c.Config.WorkingDir, c.Config.Labels = user,
			[]string{"/reprise"}, []string{"--help"}, "/work", about
		c.Config.Env = []string{"PATH=/"}
		c.RootFS.Type = "layers"
		one := loadable{RepoTags: []string{"reprise:" + r.version + "-" + arch}}
		for _, layer := range []struct {
			by      string
			owner   int
			entries []entry
		}{
			{"root certificates and folders", 0, []entry{
				{"etc", 0o755 | fs.ModeDir, nil},
				{"etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/:/\nreprise:x:%s:reprise:/work:/\n", user)},
				{"etc/ssl", 0o755 | fs.ModeDir, nil}, {"etc/ssl/certs", 0o755 | fs.ModeDir, nil},
				{"etc/ssl/certs/ca-certificates.crt", 0o644, rootCertificates()},
				{"tmp", 0o777 | fs.ModeDir | fs.ModeSticky, nil}}},
			{"the folder to work in", imageUser, []entry{{"work", 0o755 | fs.ModeDir, nil}}},
			{"reprise " + r.version, 0,
				[]entry{{"reprise", 0o755, binaries[arch]}, {"THIRD-PARTY-LICENSES.txt", 0o644, notices}}},
		} {
			files, err := tarball(layer.entries, layer.owner, r.when)
			if err != nil {
				return nil, err
			}
			packed, err := gzipped(files)
			if err != nil {
				return nil, err
			}
			d := l.keep(typeLayer, packed)
			m.Layers = append(m.Layers, d)
			one.Layers = append(one.Layers, "blobs/sha256/"+d.Digest[len("sha256:"):])
			c.RootFS.Diffs = append(c.RootFS.Diffs, fmt.Sprintf("sha256:%x", sha256.Sum256(files)))
			c.History = append(c.History, imageStep{when, layer.by})
		}
		var err error
		if m.Config, err = l.keepJSON(typeConfig, c); err != nil {
			return nil, err
		}
		d, err := l.keepJSON(typeManifest, m)
		if err != nil {
			return nil, err
		}
		d.Platform = &c.imagePlatform
		index.Manifests = append(index.Manifests, d)
		one.Config = "blobs/sha256/" + m.Config.Digest[len("sha256:"):]
		load = append(load, one)
	}
	whole, err := l.keepJSON(typeIndex, index)
	if err != nil {
		return nil, err
	}
	whole.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	for name, v := range map[string]any{"index.json": imageIndex{Schema: 2, Type: typeIndex,
		Manifests: []descriptor{whole}},
		"manifest.json": load, "oci-layout": map[string]string{"imageLayoutVersion": "1.0.0"}} {
		if l.blobs[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	entries := []entry{{"blobs", 0o755 | fs.ModeDir, nil}, {"blobs/sha256", 0o755 | fs.ModeDir, nil}}
	for _, name := range slices.Sorted(maps.Keys(l.blobs)) {
		entries = append(entries, entry{name, 0o644, l.blobs[name]})
	}
	return tarball(entries, 0, r.when)
}
