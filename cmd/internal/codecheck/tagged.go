package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

// tag is the build tag of reprise-cloud.
const tag = "clouds"

// taggedFiles vets the files that are built only with the tag, and compiles their packages and
// tests in so far as types go. go vet -tags would compile the clients of three clouds for it, which
// takes many times as long: here they are read from source for their types, without the bodies of
// functions.
func (m *module) taggedFiles() ([]fault, error) {
	names, err := m.tagged()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	var folders []string
	for _, name := range names {
		folders = append(folders, "./"+path.Dir(name))
	}
	slices.Sort(folders)
	fset := token.NewFileSet()
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedModule,
		Dir: m.dir, Fset: fset, Tests: true, BuildFlags: []string{"-tags=" + tag},
	}, slices.Compact(folders)...)
	if err != nil {
		return nil, err
	}

	found := map[fault]bool{} // once, although a package and its variant for tests share files
	packages.Visit(list, nil, func(p *packages.Package) {
		for _, e := range append(p.Errors, m.typeCheck(fset, p)...) {
			found[fault{strings.TrimPrefix(e.Pos, m.dir+string(filepath.Separator)), e.Msg}] = true
		}
	})
	if len(found) == 0 {
		graph, err := checker.Analyze(vet.Suite, list, nil)
		if err != nil {
			return nil, err
		}
		for _, a := range graph.Roots {
			if a.Err != nil {
				return nil, a.Err
			}
			for _, d := range a.Diagnostics {
				at := m.place(fset.Position(d.Pos))
				if name, _, _ := strings.Cut(at, ":"); slices.Contains(names, name) {
					found[fault{at, d.Message + " (" + a.Analyzer.Name + ")"}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b fault) int { return strings.Compare(a.where, b.where) }), nil
}

// typeCheck reads a package whose imports it has read before, and returns what is wrong in it. Of a
// package outside the module only the types are of interest, and faults are not ours.
func (m *module) typeCheck(fset *token.FileSet, p *packages.Package) (faults []packages.Error) {
	p.Fset, p.TypesSizes = fset, types.SizesFor("gc", runtime.GOARCH)
	p.TypesInfo = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Instances: map[*ast.Ident]types.Instance{},
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Implicits: map[ast.Node]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes: map[ast.Node]*types.Scope{}, FileVersions: map[*ast.File]string{}}
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return nil
	}
	own := p.Module != nil && p.Module.Path == m.path
	mode := parser.SkipObjectResolution
	if own {
		mode |= parser.ParseComments
	}
	var files []*ast.File
	for _, name := range p.CompiledGoFiles {
		f, err := parser.ParseFile(fset, name, nil, mode)
		if err != nil && own {
			faults = append(faults, packages.Error{Pos: name, Msg: err.Error()})
		}
		if f != nil {
			files = append(files, f)
		}
	}
	if own {
		p.Syntax = files
	}

	check := types.Config{IgnoreFuncBodies: !own, Sizes: p.TypesSizes,
		Importer: importer(func(path string) *types.Package { return p.Imports[path].Types }),
		Error: func(err error) {
			if e, ok := err.(types.Error); ok && own {
				faults = append(faults, packages.Error{Pos: fset.Position(e.Pos).String(), Msg: e.Msg})
			}
		}}
	if p.Module != nil && p.Module.GoVersion != "" {
		check.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types, _ = check.Check(p.PkgPath, fset, files, p.TypesInfo) // its error was heard of above
	return faults
}

// An importer finds the types of a package by its path in the source of the package that imports it.
type importer func(path string) *types.Package

func (i importer) Import(path string) (*types.Package, error) { return i(path), nil }

// tagged lists the Go files that are built only with the tag.
func (m *module) tagged() (names []string, err error) {
	all, err := m.tracked()
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, filepath.FromSlash(name)))
		if err == nil && needsTag(string(text)) { // an error: it is deleted in the working tree
			names = append(names, name)
		}
	}
	return names, nil
}

// needsTag reports whether a Go file is built only with the tag.
func needsTag(text string) bool {
	head, _, _ := strings.Cut(text, "\npackage ")
	for line := range strings.Lines(head) {
		x, err := constraint.Parse(strings.TrimSpace(line))
		if err == nil && x.Eval(func(string) bool { return true }) &&
			!x.Eval(func(t string) bool { return t != tag }) {
			return true
		}
	}
	return false
}
