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
	beside := path + ".part"
	if err := os.WriteFile(beside, append(doc, '\n'), 0o600); err != nil {
		return "", err
	}
	return path, errors.Join(os.Rename(beside, path))
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
