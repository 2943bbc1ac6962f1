package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Commands that read a key or text may not dump their core by then: each is stopped at the
// file that it opens, a pipe that nobody writes to.
func TestSecretsAreNotDumped(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	log := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(log, []byte(confineLog), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, list := range map[bool][][]string{
		true: {
			{"record", "--listen", "127.0.0.1:0", "-o", t.TempDir(), "--upstream", "http://127.0.0.1:1", "--key-file", pipe},
			{"import", log, "--shard", "0/1", "--key-file", pipe, "-o", t.TempDir()},
			{"audit", pipe, "--source", "log.jsonl"},
			{"replay", pipe, "--verbatim", "t.raw.parquet", "--url", "http://127.0.0.1:1"},
		},
		false: {{"audit", pipe}}, // a limit that everything has would show nothing
	} {
		for _, args := range list {
			cmd := child(t, args...)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
				t.Skip(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			off := false
			for range map[bool]int{true: 2000, false: 40}[want] {
				limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid))
				if off = strings.Contains(string(limits), "Max core file size        0 "); off || err != nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if off != want {
				t.Errorf("%s: core dumps are off: %v, want %v\n%s", args[0], off, want, said.String())
			}
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
		}
	}
}

// holdsKey reports whether a key is in what was written, in a form that somebody would
// notice.
func holdsKey(b, key []byte) bool {
	lower := bytes.ToLower(b)
	if bytes.Contains(b, key) || bytes.Contains(lower, []byte(hex.EncodeToString(key))) || bytes.Contains(b, []byte(fmt.Sprint(key)[1:20])) {
		return true
	}
	for shift := range 3 { // without the ends, which depend on what is beside them
		part := key[shift : shift+(len(key)-shift)/3*3]
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if bytes.Contains(b, []byte(e.EncodeToString(part))) {
				return true
			}
		}
	}
	return false
}

// A key of recordings is in nothing that is printed or written but its own file.
func TestKeyIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i*37 + 11)
	}
	for name, form := range map[string]string{"hex": hex.EncodeToString(key), "HEX": strings.ToUpper(hex.EncodeToString(key)), "bytes": string(key),
		"base64": base64.StdEncoding.EncodeToString(append([]byte("x"), key...)), "list": fmt.Sprint(key)} {
		if !holdsKey([]byte("key "+form+"."), key) {
			t.Errorf("a key as %s is not seen", name)
		}
	}
	if err := os.WriteFile("key", []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 -o traces --block-size 16 --key-file key --upstream "+simulate(t)), func(url, _ string) {
		send(t, url+"/v1/completions", `{"prompt":"one two three four five six seven eight nine ten","max_tokens":1,"user":"u"}`)
	})
	said := []string{fmt.Sprint(stdout), fmt.Sprint(stderr), must(t, "merge", "--finish", "traces", "-o", "t.parquet"), must(t, "anonymize", "--card", "t.parquet"), must(t, "anonymize", "--card", "--json", "t.parquet"),
		must(t, "profile", "t.parquet", "--json")}
	if err := os.WriteFile("key", []byte(hex.EncodeToString(key)[:63]+"?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs, code := reprise(t, "record", "--listen", "127.0.0.1:0", "-o", "other", "--key-file", "key", "--upstream", "http://127.0.0.1:1")
	if code == 0 || strings.Contains(errs, hex.EncodeToString(key)[:16]) {
		t.Errorf("a damaged key: %s", errs)
	}
	for _, text := range said {
		if holdsKey([]byte(text), key) {
			t.Errorf("the key is printed: %s", text)
		}
	}
	os.Remove("key")
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if files++; holdsKey(b, key) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files < 3 {
		t.Errorf("%d files, %v", files, err)
	}
}
