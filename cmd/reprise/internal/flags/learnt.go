package flags

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reprise/trace"
)

// remembered is how long commands rely on what an earlier one learnt of a server, so that a second run starts at once.
const remembered = 10 * time.Minute

// learnt are the numbers of the words that [PromptMaker.OfServer] found, by server: those of this command, and in a
// folder of the user, unless that is "", those of earlier ones.
type learnt struct {
	words  map[string][]int
	folder string
}

// file is where the words of a server are kept, under a name that does not tell which server it is.
func (l *learnt) file(server string) string {
	hash := sha256.Sum256([]byte(server))
	return filepath.Join(l.folder, "server-"+hex.EncodeToString(hash[:8])+".json")
}

// expired tells whether a file is missing, or so old that the server may have changed.
func expired(file string) bool {
	info, err := os.Stat(file)
	return err != nil || time.Since(info.ModTime()) > remembered
}

// recall returns the numbers of a server's words, each below words; nil where none are remembered.
func (l *learnt) recall(server string, words int) (numbers []int) {
	if numbers = l.words[server]; numbers != nil || l.folder == "" || expired(l.file(server)) {
		return numbers
	}
	data, err := os.ReadFile(l.file(server))
	if err != nil || json.Unmarshal(data, &numbers) != nil || len(numbers) < leastWords ||
		slices.Min(numbers) < 0 || slices.Max(numbers) >= words {
		return nil
	}
	return numbers
}

// keep remembers the words of a server. Where they cannot be written, the next command looks for them again.
func (l *learnt) keep(server string, numbers []int) {
	l.words[server] = numbers
	if l.folder == "" || os.MkdirAll(l.folder, 0o700) != nil {
		return
	}
	files, _ := filepath.Glob(filepath.Join(l.folder, "server-*.json"))
	for _, file := range files {
		if expired(file) {
			_ = os.Remove(file)
		}
	}
	_ = trace.WriteFile(l.file(server), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(numbers) })
}

// forget drops the words of a server, and says whether an earlier command had found them.
func (l *learnt) forget(server string) (earlier bool) {
	_, now := l.words[server]
	delete(l.words, server)
	return l.folder != "" && os.Remove(l.file(server)) == nil && !now
}
