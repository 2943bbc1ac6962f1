package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// An entry is a file or a folder of an archive. A folder has no data.
type entry struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// tarball is a tar file of the entries, all of one time and of the same owner.
func tarball(entries []entry, owner int, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.data)),
			Uid: owner, Gid: owner, ModTime: when}
		if e.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// gzipped has no name and no time in its header.
func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// archive packs a binary with its documents: one folder, which has the name of the
// archive. Windows gets a zip file.
func (r *release) archive(p platform, folder string, b *binary,
	documents []entry) (name string, data []byte, err error) {
	program := b.program
	if p.os == "windows" {
		program += ".exe"
	}
	entries := append([]entry{{program, 0o755, b.data}}, documents...)
	slices.SortFunc(entries, byName)
	for i := range entries {
		entries[i].name = folder + "/" + entries[i].name
	}
	if p.os != "windows" {
		if data, err = tarball(entries, 0, r.when); err == nil {
			data, err = gzipped(data)
		}
		return folder + ".tar.gz", data, err
	}
	data, err = zipped(entries, r.when)
	return folder + ".zip", data, err
}

// zipped is a zip file of the entries, all of one time.
func zipped(entries []entry, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func byName(a, b entry) int { return strings.Compare(a.name, b.name) }
