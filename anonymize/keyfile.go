package anonymize

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"reprise/trace"
	"reprise/trace/block"
)

// A SharedKey is a key in a file, under which recordings make the same ids of the same
// users, sessions and prefixes: those of a recorder that is started again, and of several
// that run side by side. It prints as a redaction, like the [block.Key] in it.
type SharedKey struct{ key block.Key }

// keyDigits are those of a key in its file.
const keyDigits = 2 * len(block.Key{})

// OpenKeyFile reads a key from a file of 64 hexadecimal digits that only its owner can
// read. A file that is missing is created, with a key that is drawn. Of several processes
// that create it at once, all get the key of one. Errors name the file and quote nothing
// of it.
func OpenKeyFile(path string) (key *SharedKey, created bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := createKeyFile(path); err != nil {
			return nil, false, err
		}
		created = true
	}
	key, err = readKeyFile(path, 0o077)
	return key, created, err
}

// readKeyFile reads a key from a file to which others have none of these rights.
func readKeyFile(path string, others fs.FileMode) (*SharedKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is not a regular file, which a key that outlives the process has to be in", path)
	case info.Mode().Perm()&others != 0 && runtime.GOOS != "windows":
		return nil, fmt.Errorf("%s: others than its owner have access to it (mode %04o): run chmod 600 on it, or "+
			"name a new file if they may have read it", path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*int64(keyDigits)))
	if err != nil {
		return nil, err
	}
	key := new(SharedKey)
	if text = bytes.TrimSpace(text); len(text) == keyDigits {
		_, err = hex.Decode(key.key[:], text)
	}
	switch {
	case len(text) != keyDigits || err != nil:
		return nil, fmt.Errorf("%s: it holds no key: want %d hexadecimal digits, such as openssl rand -hex %d prints",
			path, keyDigits, len(key.key))
	case bytes.Count(key.key[:], key.key[:1]) == len(key.key):
		return nil, fmt.Errorf("%s: its key is not random: all bytes are the same", path)
	}
	return key, nil
}

// createKeyFile draws a key into a file that appears whole, unless there is one by then.
func createKeyFile(path string) error {
	key, err := block.NewKey()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".part-*") // of mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintf(f, "%s\n", hex.EncodeToString(key[:]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		// a rename would replace the key of another
		return err
	}
	return nil
}

// ID tells the key from others, in what is recorded under it. The key cannot be had from
// it.
func (k *SharedKey) ID() string {
	sum := hmac.New(sha256.New, k.key[:])
	io.WriteString(sum, "reprise: id of a recording key")
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// ephemeral stands for a key that ended with its recording, in [trace.Meta.Keys].
const ephemeral = "ephemeral"

// SharedKeys are the ids of the shared keys under which a trace was recorded, and the
// number of all its keys; 0 where it does not say, as with what was not recorded, or with
// one key alone, which ended with the recording.
func SharedKeys(m trace.Meta) (ids []string, all int) {
	for id := range strings.SplitSeq(m.Keys, ",") {
		if id == "" {
			continue
		}
		if all++; id != ephemeral {
			ids = append(ids, id)
		}
	}
	return ids, all
}

// keyRisks are what shared keys, and several keys, leave to be said on a card.
func keyRisks(m trace.Meta, released bool) (risks []string) {
	ids, all := SharedKeys(m)
	switch {
	case len(ids) > 0 && released:
		risks = append(risks, "Other captures may have the same key, and so the same users: releases of two of them "+
			"add up, like two releases of one source.")
	case len(ids) > 0:
		risks = append(risks, "Recorded under a key in a file: whoever has the parts of several captures can link "+
			"their users, sessions and prefixes for as long as the key exists.")
	}
	if all > 1 {
		risks = append(risks, fmt.Sprintf(
			"Its recordings had %d keys: a user whom several of them saw counts as several.", all))
	}
	return risks
}

const (
	keyEphemeral = "ephemeral: held in memory and dropped at the end; the ids were renumbered and do not depend on it"
	keyShared    = "shared: kept in a file, so that the ids of its captures are linkable for as long as the key " +
		"exists; the ids here were renumbered and do not depend on it"
)

// keyOf is what a card says of the key.
func keyOf(m trace.Meta) string {
	if ids, _ := SharedKeys(m); len(ids) > 0 {
		return keyShared
	}
	return keyEphemeral
}
