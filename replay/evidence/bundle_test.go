package evidence_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"reprise/replay/evidence"
)

// read unpacks a bundle.
func read(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

func TestBundle(t *testing.T) {
	var b evidence.Bundle
	b.Version, b.Begun, b.By = "v1", time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC), "a laboratory at gpu7.example.org"
	b.Hide("gpu7", "HOST")
	b.Hide("http://gpu7.example.org:8000", "http://SERVER") // the longer one goes first, in whatever order they come
	b.Hide("gpu7.example.org", "HOST")
	b.Hide("", "nothing")
	b.Forbid("sk-0123456789")
	b.Forbid("tiny") // too short to be told from other words
	b.Add("check.json", []byte(`{"url":"http://gpu7.example.org:8000/v1","model":"tiny"}`))
	b.Steps = append(b.Steps, evidence.Step{Name: "check", Commands: []string{"reprise check --url http://gpu7.example.org:8000"}, Exit: 0, Finding: "gpu7 answers"})
	var out bytes.Buffer
	if err := b.Write(&out); err != nil {
		t.Fatal(err)
	}
	files := read(t, out.Bytes())
	if got, want := files["evidence/check.json"], `{"url":"http://SERVER/v1","model":"tiny"}`; got != want || len(files) != 2 {
		t.Errorf("%d files, check.json %s, want %s", len(files), got, want)
	}
	var m evidence.Manifest
	if err := json.Unmarshal([]byte(files["evidence/manifest.json"]), &m); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(files["evidence/check.json"]))
	if m.Schema != "evidence/1" || m.By != "a laboratory at HOST" || m.Steps[0].Commands[0] != "reprise check --url http://SERVER" ||
		m.Files[0].SHA256 != hex.EncodeToString(sum[:]) || m.Files[0].Bytes != len(files["evidence/check.json"]) {
		t.Errorf("manifest %+v", m)
	}
	var again bytes.Buffer
	if err := b.Write(&again); err != nil || !bytes.Equal(again.Bytes(), out.Bytes()) {
		t.Errorf("written again, it differs (%v)", err)
	}
}

// A key in any file is an error that does not quote it, and nothing is written.
func TestForbidden(t *testing.T) {
	var b evidence.Bundle
	b.Forbid("sk-0123456789")
	b.Add("sweep.json", []byte(`{"command":"--header Authorization=sk-0123456789"}`))
	var out bytes.Buffer
	if err := b.Write(&out); err == nil || out.Len() > 0 || strings.Contains(err.Error(), "sk-") || !strings.HasPrefix(err.Error(), "sweep.json holds a key") {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}
