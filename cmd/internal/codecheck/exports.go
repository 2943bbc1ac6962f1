package main

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// An export is a package-level name that a package offers to others.
type export struct {
	key    string
	pkg    *packages.Package
	object types.Object
}

// exports lists what the module's packages offer, but for commands, which offer
// nothing.
func (m *module) exports() []export {
	var list []export
	for _, p := range m.packages {
		if p.Name == "main" {
			continue
		}
		scope := p.Types.Scope()
		for _, name := range scope.Names() {
			if o := scope.Lookup(name); o.Exported() {
				list = append(list, export{m.key(o), p, o})
			}
		}
	}
	return list
}

// neededExports returns the keys of exported names that another package of the
// module names, of the types in their declarations, and of the constants of these
// types.
func (m *module) neededExports() map[string]bool {
	needed := map[string]bool{}
	named := map[string]bool{}
	for _, u := range m.uses() {
		if !strings.HasPrefix(u.key, u.file.pkg.PkgPath+".") || strings.Contains(u.key, ")") {
			named[u.file.pkg.PkgPath+" "+u.key] = true
		}
	}
	outside := map[string]bool{}
	for both := range named {
		pkg, key, _ := strings.Cut(both, " ")
		if !strings.HasPrefix(strings.TrimLeft(key, "(*"), pkg+".") {
			outside[key] = true
		}
	}

	r := reach{m, needed, map[types.Type]bool{}}
	exports := m.exports()
	for _, e := range exports {
		if outside[e.key] {
			needed[e.key] = true
			r.visit(e.object.Type())
		}
	}
	for _, e := range exports {
		if c, ok := e.object.(*types.Const); ok {
			if t, ok := c.Type().(*types.Named); ok && needed[m.key(t.Obj())] {
				needed[e.key] = true
			}
		}
	}
	return needed
}

// A reach marks as needed what the declarations of types name.
type reach struct {
	m      *module
	needed map[string]bool
	seen   map[types.Type]bool
}

func (r *reach) visit(t types.Type) {
	if t == nil || r.seen[t] {
		return
	}
	r.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		if key := r.m.key(t.Obj()); key != "" {
			r.needed[key] = true
		}
		for i := range t.TypeArgs().Len() {
			r.visit(t.TypeArgs().At(i))
		}
		if r.m.key(t.Obj()) != "" {
			r.visit(t.Underlying())
			for i := range t.NumMethods() {
				if t.Method(i).Exported() {
					r.visit(t.Method(i).Type())
				}
			}
		}
	case *types.Alias:
		if key := r.m.key(t.Obj()); key != "" {
			r.needed[key] = true
		}
		r.visit(types.Unalias(t))
	case *types.Map:
		r.visit(t.Key())
		r.visit(t.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		r.visit(t.Elem())
	case *types.Tuple:
		for i := range t.Len() {
			r.visit(t.At(i).Type())
		}
	case *types.Signature:
		r.visit(t.Params())
		r.visit(t.Results())
	case *types.Struct:
		for i := range t.NumFields() {
			if t.Field(i).Exported() {
				r.visit(t.Field(i).Type())
			}
		}
	case *types.Interface:
		for i := range t.NumMethods() {
			r.visit(t.Method(i).Type())
		}
	}
}
