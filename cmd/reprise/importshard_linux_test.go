package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A shard that is killed half-way leaves nothing, so that the merge names it; imported again
// it completes the others, and the trace is that of one process.
func TestShardKilledHalfWay(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	shardLogs(t, "log", 3)
	big := strings.Repeat(mustRead(t, "log/log-01.jsonl"), 60)
	if err := os.WriteFile("log/log-01.jsonl", []byte(big), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "log", "-o", "whole.parquet")
	importShards(t, "s", 3)
	killed := "s/import-1-of-3.shard.parquet"
	if err := os.Remove(killed); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "import", "log", "--shard", "1/3", "--key-file", "key", "-o", "s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until half of its file is read
		var read, none int
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid))
		if _, scan := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", &read, &none); err != nil || scan != nil {
			t.Skip("the system does not say what a process has read:", err, scan)
		}
		if read > len(big)/2+len(mustRead(t, "log/log-00.jsonl")) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Skip("it was done before it was killed")
	}
	if left := matches(t, "s/*"); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	if _, errs, _ := reprise(t, "merge", "--finish", "s", "-o", "t.parquet"); !strings.Contains(errs, "number 1 is missing") {
		t.Errorf("the merge says %s", errs)
	}
	must(t, "import", "log", "--shard", "1/3", "--key-file", "key", "-o", "s")
	must(t, "merge", "--finish", "s", "-o", "t.parquet")
	if digestOf(t, "t.parquet") != digestOf(t, "whole.parquet") {
		t.Error("another digest")
	}
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The key of an import in shards is in no argument, environment or log of a process, and in no
// file but its own.
func TestShardKeyIsNotWritten(t *testing.T) {
	long(t)
	dir := t.TempDir()
	t.Chdir(dir)
	shardLogs(t, "log", 2)
	key, err := hex.DecodeString(strings.TrimSpace(shardKey))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("s", 0o700); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	seen := 0
	for _, args := range [][]string{
		{"import", "log", "--shard", "0/2", "--key-file", "key", "-o", "s", "--keep-templates", "--set", "k-template=2"},
		{"import", "log", "--shard", "1/2", "--key-file", "key", "-o", "s", "--keep-templates", "--set", "k-template=2", "--json"},
		{"merge", "--finish", "s", "--key-file", "key", "-o", "t.parquet"},
		{"merge", "--finish", "s", "--key-file", "key", "-o", "t.parquet", "--json", "--overwrite"},
		{"import", "log", "--shard", "0/2", "--key-file", "key", "-o", "s", "--time-unit", "none"}, // a mistake
	} {
		cmd := child(t, args...)
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			cmd.Wait()
			close(done)
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			for _, name := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, name))
				if seen += len(text); err == nil && holdsKey(text, key) {
					t.Errorf("%s: the key is in its %s", args[0], name)
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
	if seen == 0 {
		t.Error("no process was looked at")
	}
	if !strings.Contains(said.String(), "key check") || !strings.Contains(said.String(), "time unit") || holdsKey(said.Bytes(), key) {
		t.Errorf("printed: %s", said.String())
	}
	for _, name := range append(matches(t, "s/*"), matches(t, "t.*")...) {
		if text := mustRead(t, name); holdsKey([]byte(text), key) {
			t.Errorf("%s holds the key", name)
		}
	}
	must(t, "profile", "t.parquet")
	if found := matches(t, filepath.Join(dir, "*")); len(found) < 5 {
		t.Errorf("written: %v", found)
	}
}
