package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A fault is a place that breaks a rule.
type fault struct{ where, what string }

func (f fault) String() string { return f.where + ": " + f.what }

// check applies all rules. An error means that a rule could not be applied.
func (m *module) check() ([]fault, error) {
	var all []fault
	for _, rule := range []func() ([]fault, error){m.conflictMarkers, m.listedCommands, m.lineBudgets,
		m.deadCode, m.unusedExports, m.listedFiles, m.caughtPanics, m.longFunctions,
		m.namedThings, m.taggedFiles} {
		faults, err := rule()
		if err != nil {
			return nil, err
		}
		all = append(all, faults...)
	}
	return all, nil
}

// conflictMarkers finds what a merge left behind, in every file that git tracks. A
// line of equals signs is none: it underlines headings in Markdown.
func (m *module) conflictMarkers() ([]fault, error) {
	names, err := m.tracked()
	if err != nil {
		return nil, err
	}
	var faults []fault
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil || bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			continue // deleted in the working tree, a folder, or not text
		}
		for _, n := range markerLines(data) {
			faults = append(faults, fault{fmt.Sprintf("%s:%d", name, n), "a merge left a conflict marker"})
		}
	}
	return faults, nil
}

// markerLines returns the numbers of the lines that are conflict markers.
func markerLines(data []byte) []int {
	var at []int
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		for _, marker := range []string{"<<<<<<<", "|||||||", ">>>>>>>"} {
			if rest, ok := strings.CutPrefix(lines.Text(), marker); ok && (rest == "" || rest[0] == ' ') {
				at = append(at, n)
			}
		}
	}
	return at
}

// listedCommands finds subcommands of a program that its package comment does not
// list, as lines of a name and what it does.
func (m *module) listedCommands() ([]fault, error) {
	var faults []fault
	for _, p := range m.packages {
		if p.Name != "main" {
			continue
		}
		var files []*ast.File
		docs := ""
		for _, f := range m.files {
			if f.pkg == p {
				files = append(files, f.ast)
				docs += f.ast.Doc.Text()
			}
		}
		for name, at := range addedCommands(files) {
			if !slices.ContainsFunc(strings.Split(docs, "\n"), func(l string) bool {
				return slices.Contains(strings.Fields(l)[:min(1, len(strings.Fields(l)))], name)
			}) {
				faults = append(faults, fault{m.position(at), "the package comment does not list the command " + name})
			}
		}
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.where, b.where) })
	return faults, nil
}

// addedCommands returns the first word of Use of each cobra command that a function
// of the program makes and a variable named root takes in.
func addedCommands(files []*ast.File) map[string]token.Pos {
	made := map[string]string{} // function to the first word of Use in it
	var added []*ast.Ident
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					key, isName := n.Key.(*ast.Ident)
					value, isText := n.Value.(*ast.BasicLit)
					if isName && isText && key.Name == "Use" && made[fn.Name.Name] == "" {
						text, _ := strconv.Unquote(value.Value)
						made[fn.Name.Name], _, _ = strings.Cut(text, " ")
					}
				case *ast.CallExpr:
					sel, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || sel.Sel.Name != "AddCommand" {
						break
					}
					if on, ok := sel.X.(*ast.Ident); !ok || on.Name != "root" {
						break
					}
					for _, arg := range n.Args {
						if call, ok := arg.(*ast.CallExpr); ok {
							if id, ok := call.Fun.(*ast.Ident); ok {
								added = append(added, id)
							}
						}
					}
				}
				return true
			})
		}
	}
	commands := map[string]token.Pos{}
	for _, id := range added {
		if made[id.Name] != "" {
			commands[made[id.Name]] = id.Pos()
		}
	}
	return commands
}

// caughtPanics finds goroutines that do not defer crash.Caught, the last of the calls that they defer
// at their beginning, so that it runs first: a panic would end the program with the exit code of a
// user's mistake and the words of a prompt. What go or a method Go starts is a function literal, so
// that it can be seen. Programs of this repository's own may break down as they like.
func (m *module) caughtPanics() ([]fault, error) {
	var faults []fault
	for _, f := range m.files {
		if strings.HasPrefix(f.name, "cmd/internal/") || strings.HasPrefix(f.name, "examples/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			var started ast.Expr
			switch n := n.(type) {
			case *ast.GoStmt:
				started = n.Call.Fun
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "Go" && len(n.Args) == 1 {
					started = n.Args[0]
				}
			}
			if started != nil && !catchesPanics(started) {
				faults = append(faults, fault{m.position(n.Pos()),
					"a goroutine begins with defer crash.Caught(), after what else it defers"})
			}
			return true
		})
	}
	return faults, nil
}

// catchesPanics reports whether the calls that a function literal defers at its beginning end in
// crash.Caught, or in one that recovers.
func catchesPanics(started ast.Expr) bool {
	literal, ok := started.(*ast.FuncLit)
	if !ok {
		return false
	}
	caught := false
	for _, statement := range literal.Body.List {
		deferred, ok := statement.(*ast.DeferStmt)
		if !ok {
			break
		}
		caught = false
		ast.Inspect(deferred, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			caught = caught || ok && (id.Name == "Caught" || id.Name == "recover")
			return true
		})
	}
	return caught
}

// keptDead are functions that no program reaches and that stay all the same, each
// with the reason: the package's folder and the name that deadcode prints.
var keptDead = map[string]string{
	"trace/block Key.String":          "a key that is printed by mistake prints a redaction",
	"trace/block Key.GoString":        "as String, for %#v",
	"trace/block Key.Format":          "as String, for every verb",
	"trace/block Key.MarshalText":     "as String, for encoders",
	"trace/arrival LengthSpec.String": "it prints what ParseLength reads, as each String there does for its kind",
}

// deadCode finds functions that no program of the module reaches. What only tests
// call is deleted with its tests, or moved into them.
func (m *module) deadCode() ([]fault, error) {
	cmd := exec.Command("go", "tool", "deadcode", "-f", deadFormat, "./...")
	cmd.Dir = m.dir
	// deadcode holds the whole program in memory. With fewer collections of garbage it
	// takes 14 s of CPU time instead of 20, and 2.9 GB instead of 2.5.
	cmd.Env = append(os.Environ(), "GOGC=400")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool deadcode: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return deadFaults(string(out), m.path)
}

// deadFormat is the template by which deadcode prints a package: a line a function,
// of its place, its package and its name.
const deadFormat = `{{range .Funcs}}{{printf "%s\t%s\t%s\n" .Position $.Path .Name}}{{end}}`

// deadFaults reads what deadcode printed by deadFormat. A fault is a function that
// keptDead does not name.
func deadFaults(printed, modulePath string) ([]fault, error) {
	var faults []fault
	for line := range strings.Lines(printed) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("deadcode printed a line of %d fields, not of a place, a package and a name: %q",
				len(fields), line)
		}
		name := strings.TrimPrefix(fields[1], modulePath+"/") + " " + fields[2]
		if keptDead[name] == "" && !strings.HasSuffix(fields[1], "test") { // packages for tests
			faults = append(faults, fault{fields[0],
				"no program reaches " + fields[2] + ": delete it, or move it into the tests that call it"})
		}
	}
	return faults, nil
}

// openPackages promise their exported names to programs outside this module, see
// CONTRIBUTING.md. A name there needs no user here.
var openPackages = []string{"trace", "replay/result"}

// unusedExports finds exported names that no other package of the module needs: none
// names them, tests included, and nothing that another names has them in its
// declaration. Constants that are declared together stand or fall together: they are
// the values of one thing. Packages whose name ends in test are for tests only.
func (m *module) unusedExports() ([]fault, error) {
	needed := m.neededExports()
	if err := m.addTestUses(needed); err != nil {
		return nil, err
	}
	group := map[token.Pos]token.Pos{} // a constant's place to that of its declaration
	used := map[token.Pos]bool{}       // declarations with a constant that is needed
	for _, f := range m.files {
		for _, d := range f.ast.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.CONST {
				continue
			}
			for _, spec := range decl.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					group[name.Pos()] = decl.Pos()
					used[decl.Pos()] = used[decl.Pos()] || needed[m.key(f.pkg.TypesInfo.Defs[name])]
				}
			}
		}
	}
	var faults []fault
	for _, e := range m.exports() {
		exempt := slices.Contains(openPackages, m.folder(e.pkg)) || strings.HasSuffix(e.pkg.Name, "test")
		if !exempt && !needed[e.key] && !used[group[e.object.Pos()]] {
			faults = append(faults, fault{m.position(e.object.Pos()),
				e.object.Name() + " is exported, and no other package uses it: unexport it"})
		}
	}
	return faults, nil
}

// addTestUses adds to needed the names that tests of other packages use.
func (m *module) addTestUses(needed map[string]bool) error {
	for _, p := range m.packages {
		dir := filepath.Join(m.dir, m.folder(p))
		tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			return err
		}
		for _, name := range tests {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			imports := map[string]string{} // name in the file to path
			for _, spec := range f.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if path == p.PkgPath {
					continue
				}
				local := path[strings.LastIndexByte(path, '/')+1:]
				if spec.Name != nil {
					local = spec.Name.Name
				}
				imports[local] = path
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if id, ok := sel.X.(*ast.Ident); ok && imports[id.Name] != "" {
						needed[imports[id.Name]+"."+sel.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return nil
}

// fewFiles is how many files a package may have without saying what is in each.
const fewFiles = 3

// fileName matches a name of a Go file in a comment.
var fileName = regexp.MustCompile(`[a-z0-9_]+\.go\b`)

// listedFiles finds files that the comment of their package does not name, and names
// there without a file. go doc shows no file names, so that this list is how a reader
// gets from what a package does to where it does it. Variants for other systems
// (lock_unix.go) go by the name of any of them.
func (m *module) listedFiles() ([]fault, error) {
	var faults []fault
	for _, p := range m.packages {
		docs, where := "", m.folder(p)
		for _, f := range m.files {
			if f.pkg == p && f.ast.Doc != nil {
				docs, where = docs+f.ast.Doc.Text(), m.position(f.ast.Doc.Pos())
			}
		}
		named := map[string]bool{} // by stem
		for _, name := range fileName.FindAllString(docs, -1) {
			if _, err := os.Stat(filepath.Join(m.dir, m.folder(p), name)); err != nil {
				faults = append(faults, fault{where, "the package comment names " + name + ", which is not there"})
			}
			named[fileStem(name)] = true
		}
		files, err := sourceFilesIn(filepath.Join(m.dir, m.folder(p)))
		if err != nil {
			return nil, err
		}
		if len(files) <= fewFiles {
			continue
		}
		for _, name := range files {
			if name != "doc.go" && !named[fileStem(name)] {
				faults = append(faults, fault{where, "the package comment does not describe " + name})
			}
		}
	}
	return faults, nil
}

// fileStem is the name of a file without the system that it is for.
func fileStem(name string) string {
	stem := strings.TrimSuffix(name, ".go")
	for _, system := range []string{"_linux", "_unix", "_darwin", "_windows", "_other"} {
		stem = strings.TrimSuffix(stem, system)
	}
	return stem
}

// bodyLines are the lines that the body of a function may have.
const bodyLines = 80

// longFunctions finds functions whose body a reader cannot see on one screen.
func (m *module) longFunctions() (faults []fault, err error) {
	for _, f := range m.files {
		for _, decl := range f.ast.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || function.Body == nil {
				continue
			}
			body := function.Body
			if lines := m.fset.Position(body.Rbrace).Line - m.fset.Position(body.Lbrace).Line - 1; lines > bodyLines {
				faults = append(faults, fault{m.position(function.Pos()), fmt.Sprintf("%s has %d lines, and may "+
					"have %d: give a part of it a name", function.Name.Name, lines, bodyLines)})
			}
		}
	}
	return faults, nil
}
