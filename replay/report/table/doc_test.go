package table

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func columnNames() (names []string) {
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// docs/data.md has a row for every column, in their order, and none for another.
func TestDocNamesTheColumns(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Columns\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			named = append(named, strings.Trim(name, "`"))
		}
	}
	if want := columnNames(); !slices.Equal(named, want) {
		t.Errorf("docs/data.md names\n%v, the columns are\n%v", named, want)
	}
}

// The notebook uses no column that the table does not have.
func TestNotebookColumns(t *testing.T) {
	file, err := os.ReadFile("../../../examples/notebook.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	var notebook struct {
		Cells []struct {
			Type   string   `json:"cell_type"`
			Source []string `json:"source"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(file, &notebook); err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, cell := range notebook.Cells {
		if cell.Type == "code" {
			code.WriteString(strings.Join(cell.Source, "") + "\n")
		}
	}
	used := columnsIn(code.String())
	if len(used) < 8 {
		t.Fatalf("the notebook uses %v only", used)
	}
	for _, name := range used {
		if !slices.Contains(columnNames(), name) {
			t.Errorf("the notebook uses %s, which is no column", name)
		}
	}
}

var (
	inBrackets = regexp.MustCompile(`[\w\])(]\[(\[?"[^\]]*"\]?)\]`)
	grouped    = regexp.MustCompile(`(?:groupby|sort_values|set_index|nlargest|\b[xy]=)\(?(?:\d+, )?("\w+")`)
	attribute  = regexp.MustCompile(`\b(?:df|ok)\.(\w+_(?:ms|s|tokens)(?:_\w+)?)\b`)
	assigned   = regexp.MustCompile(`\w\["(\w+)"\] = `)
	quoted     = regexp.MustCompile(`"(\w+)"`)
)

// columnsIn finds the names by which Python code takes columns of a frame: df["a"],
// ok[["a", "b"]], groupby("a"), x="a" and df.a; but not those that it makes.
func columnsIn(code string) (names []string) {
	made := map[string]bool{}
	for _, m := range assigned.FindAllStringSubmatch(code, -1) {
		made[m[1]] = true
	}
	take := func(name string) {
		if !made[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, find := range []*regexp.Regexp{inBrackets, grouped} {
		for _, m := range find.FindAllStringSubmatch(code, -1) {
			for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
				take(q[1])
			}
		}
	}
	for _, m := range attribute.FindAllStringSubmatch(code, -1) {
		take(m[1])
	}
	return names
}

func TestColumnsIn(t *testing.T) {
	code := `df["second"] = df["due_s"].round()
ok = df[df["phase"] == "measured"][["ttft_ms", "nonsense"]]
ok.groupby("second")["e2e_ms"].mean()
ok.sort_values("tpot_ms"); ok.plot(x="done_s", y="itl_max_ms"); df.input_tokens.sum()`
	if got, want := strings.Join(columnsIn(code), " "), "due_s phase ttft_ms nonsense e2e_ms tpot_ms done_s itl_max_ms input_tokens"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}
