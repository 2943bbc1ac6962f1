package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A module is the source of all packages of one Go module, parsed and type-checked
// for the platform of the machine. Tests are left out.
type module struct {
	dir      string
	path     string // the module's path, such as reprise
	fset     *token.FileSet
	packages []*packages.Package
	files    []*file
}

// A file is one Go file and what it holds.
type file struct {
	name string // relative to the module's folder
	pkg  *packages.Package
	ast  *ast.File
}

// loadModule reads the module in dir. An error of the type checker is an error.
func loadModule(dir string) (*module, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	list, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedModule,
		Dir: abs, Fset: fset,
	}, "./...")
	if err != nil {
		return nil, err
	}
	m := &module{dir: abs, fset: fset}
	for _, p := range list {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s does not compile: %v", p.PkgPath, p.Errors[0])
		}
		if p.Module != nil {
			m.path = p.Module.Path
		}
		m.packages = append(m.packages, p)
		for i, f := range p.Syntax {
			name, err := filepath.Rel(abs, p.CompiledGoFiles[i])
			if err != nil || strings.HasPrefix(name, "..") || ast.IsGenerated(f) {
				continue
			}
			m.files = append(m.files, &file{name: filepath.ToSlash(name), pkg: p, ast: f})
		}
	}
	slices.SortFunc(m.packages, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	slices.SortFunc(m.files, func(a, b *file) int { return strings.Compare(a.name, b.name) })
	return m, nil
}

// folder is where a package is, relative to the module.
func (m *module) folder(p *packages.Package) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, m.path), "/")
	if rel == "" {
		return "."
	}
	return rel
}

// sourceFilesIn lists the Go files of a folder, those of other platforms included and tests left out.
func sourceFilesIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".go") && !strings.HasSuffix(n, "_test.go") {
			names = append(names, n)
		}
	}
	return names, err
}

// position of a node in words, relative to the module.
func (m *module) position(p token.Pos) string { return m.place(m.fset.Position(p)) }

// place is a position in words, relative to the module.
func (m *module) place(at token.Position) string {
	name, err := filepath.Rel(m.dir, at.Filename)
	if err != nil {
		name = at.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(name), at.Line)
}

// key names an object of the module alike wherever it was loaded from: from source
// in its own package, from export data in others. It is empty for what is not of
// the module, and for what is local to a function.
func (m *module) key(o types.Object) string {
	if o == nil || o.Pkg() == nil || o.Pkg().Path() != m.path && !strings.HasPrefix(o.Pkg().Path(), m.path+"/") {
		return ""
	}
	switch o := o.(type) {
	case *types.Func:
		return o.Origin().FullName()
	case *types.Var, *types.Const, *types.TypeName:
		if v, ok := o.(*types.Var); ok && v.IsField() || o.Parent() != o.Pkg().Scope() {
			return ""
		}
		return o.Pkg().Path() + "." + o.Name()
	}
	return ""
}

// A use is one place that names an object of the module.
type use struct {
	file *file
	key  string
	at   token.Pos
}

// uses of all objects of the module that have a key, in the order of the files.
// A name within its own declaration, such as a recursive call, does not count.
func (m *module) uses() []use {
	var list []use
	for _, f := range m.files {
		for _, d := range f.ast.Decls {
			own := ""
			if fn, ok := d.(*ast.FuncDecl); ok {
				own = m.key(f.pkg.TypesInfo.Defs[fn.Name])
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if k := m.key(f.pkg.TypesInfo.Uses[id]); k != "" && k != own {
						list = append(list, use{f, k, id.Pos()})
					}
				}
				return true
			})
		}
	}
	return list
}
