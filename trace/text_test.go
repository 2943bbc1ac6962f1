package trace_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

const secret = "the quick brown secret jumps"

func secretEntry() trace.Entry {
	reply := trace.NewText(secret)
	return trace.Entry{User: reply, Session: reply, Model: reply, Reply: &reply, ReplyCalls: reply, Tools: reply,
		Messages: []trace.Message{{Role: trace.User, Content: reply, Calls: reply, CallID: reply, Name: reply}}}
}

// hidden has a Text and an Entry in fields that fmt cannot call methods on.
type hidden struct {
	t trace.Text
	e *trace.Entry
	m map[string]trace.Text
}

func TestTextReachesNoFormatter(t *testing.T) {
	e := secretEntry()
	text := trace.NewText(secret)
	values := map[string]any{
		"text": text, "*text": &text, "entry": e, "*entry": &e,
		"message": e.Messages[0], "messages": e.Messages,
		"hidden": hidden{text, &e, map[string]trace.Text{"k": text}},
		"slice":  []any{text, e}, "map": map[string]any{"t": text, "e": e},
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
			check(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		check(t, name+" error", fmt.Errorf("bad: %v", v).Error())
	}
}

func TestTextReachesNoEncoder(t *testing.T) {
	e := secretEntry()
	for name, v := range map[string]any{"text": trace.NewText(secret), "entry": e, "message": e.Messages[0]} {
		var out bytes.Buffer
		b, err := json.Marshal(v)
		check(t, name+" json", fmt.Sprint(string(b), err))
		b, err = xml.Marshal(v)
		check(t, name+" xml", fmt.Sprint(string(b), err))
		err = gob.NewEncoder(&out).Encode(v)
		check(t, name+" gob", fmt.Sprint(out.String(), err))
	}
}

func TestTextReachesNoLog(t *testing.T) {
	e := secretEntry()
	var out bytes.Buffer
	log.New(&out, "", 0).Println(e, e.Messages[0].Content, &e)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "entry", e, "text", e.Messages[0].Content, "messages", e.Messages)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "entry", e, "text", e.Messages[0].Content, "messages", e.Messages)
	check(t, "log", out.String())
}

// A row type that embeds a Text by mistake would still write none of it.
func TestTextReachesNoParquet(t *testing.T) {
	type row struct {
		N int64
		T trace.Text
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, parquet.Compression(&parquet.Uncompressed))
	if _, err := w.Write([]row{{1, trace.NewText(secret)}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	check(t, "parquet", out.String())
}

func check(t *testing.T, where, got string) {
	t.Helper()
	hex := fmt.Sprintf("%x", secret)
	for _, s := range []string{secret, secret[4:9], hex, strings.ToUpper(hex)} {
		if strings.Contains(got, s) {
			t.Errorf("%s: the text came out", where)
		}
	}
}

// Only anonymize may look at text; readers may measure it while they build it.
func TestOnlyAnonymizeReveals(t *testing.T) {
	fset := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Reveal" {
				dir := filepath.ToSlash(filepath.Dir(path))
				if dir != "../anonymize" && dir != "../trace" {
					t.Errorf("%s reveals text", fset.Position(sel.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
