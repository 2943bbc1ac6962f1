package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/anonymize"
	"reprise/trace"
)

// confineLog is a log with text.
const confineLog = `{"timestamp":"2026-01-02T03:04:05Z","messages":[{"role":"user","content":"Hello"}]}` + "\n"

// The program itself confines itself when it imports and when it anonymises, and
// says so in the card. What other tests run in this process must not be.
func TestCommandsConfine(t *testing.T) {
	long(t)
	dir := t.TempDir()
	house, partner, chats := filepath.Join(dir, "t.parquet"), filepath.Join(dir, "p.parquet"), filepath.Join(dir, "c.parquet")
	chatsTrace(t, chats, 8000)
	folder, ofFolder := filepath.Join(dir, "folder"), filepath.Join(dir, "f.parquet")
	must(t, "slice", chats, "--partitions", "3", "-o", folder)
	for _, args := range [][]string{
		{"import", "-", "-o", house, "--tz", "UTC"},
		// At this ε no noise decides whether it is released; at the default it refuses one in fifty.
		{"anonymize", chats, "--epsilon", "50", "--i-understand", "-o", partner},
		{"anonymize", folder, "--epsilon", "50", "--i-understand", "-o", ofFolder},
	} {
		cmd := child(t, args...)
		cmd.Stdin = strings.NewReader(confineLog)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		f, err := trace.Open(args[slices.Index(args, "-o")+1])
		if err != nil {
			t.Fatal(err)
		}
		card, err := anonymize.ParseCard(f.Meta.Card, f.Meta.CardHash)
		if f.Close(); err != nil {
			t.Fatal(err)
		}
		switch c := card.Confined; {
		case c == nil:
			t.Errorf("%s: nothing is said of it", args[0])
		case c.CoreDumps != "off" || c.Network != "seccomp" || c.Files == "":
			t.Errorf("%s: %+v", args[0], *c)
		}
	}
}

// confineSpy fails a test in which something is confined.
func confineSpy(t *testing.T) context.Context {
	return withConfine(context.Background(), func(read, write []string) anonymize.Confinement {
		t.Errorf("confined to %v and %v", read, write)
		return anonymize.Confinement{}
	})
}

// The demo sends to an endpoint after its import.
func TestDemoIsNotConfined(t *testing.T) {
	cmd := demoCommand()
	cmd.SetContext(confineSpy(t))
	cmd.SetErr(new(strings.Builder))
	d := demo{cmd: cmd, dir: t.TempDir()}
	if _, err := d.importLog(); err != nil {
		t.Fatal(err)
	}
}

// What a command needs is left to it: the configuration beside a template.
func TestConfineLeavesInputs(t *testing.T) {
	dir := t.TempDir()
	template := filepath.Join(dir, "chat_template.jinja")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(template, `{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}`)
	write(filepath.Join(dir, "tokenizer_config.json"), `{"bos_token":"one two three four "}`)
	write(filepath.Join(dir, "log.jsonl"), confineLog)
	out, err := child(t, "import", filepath.Join(dir, "log.jsonl"), "--template", template, "-o", filepath.Join(t.TempDir(), "t.parquet")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "5 input") {
		t.Errorf("%v\n%s", err, out)
	}
}
