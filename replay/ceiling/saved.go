package ceiling

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"reprise/replay/host"
)

// savedName is the file of a ceiling below the user's cache directory.
const savedName = "reprise/ceiling.json"

// Save keeps the ceiling for later runs, in the user's cache directory, and returns where.
func Save(c Ceiling) (path string, err error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.FromSlash(savedName))
	doc, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	beside, err := os.CreateTemp(filepath.Dir(path), "ceiling-*.part") // another process may save too
	if err != nil {
		return "", err
	}
	_, err = beside.Write(append(doc, '\n'))
	if err = errors.Join(err, beside.Close()); err == nil {
		err = os.Rename(beside.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(beside.Name()))
	}
	return path, nil
}

// Saved returns the ceiling that was saved, nil where none was, or where it is that of
// another machine. A file that cannot be read as one is an error.
func Saved() (*Ceiling, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, nil // a user without a home has saved nothing
	}
	doc, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(savedName)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var c Ceiling
	if err := json.Unmarshal(doc, &c); err != nil || !(c.Requests > 0) || !(c.Events > 0) {
		return nil, errors.New("ceiling: " + savedName + " in the cache directory is damaged: measure again with reprise check --self")
	}
	if c.Machine != machine(host.This()) {
		return nil, nil
	}
	return &c, nil
}
