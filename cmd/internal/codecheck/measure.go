package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"slices"
	"strings"
)

// Figures of a module's structure, without tests and generated files.
type figures struct {
	lines, packages       int
	filesPerPackage       []int // sorted
	largestFolder         string
	functions             int
	oneCaller             int // functions and methods, exported ones too, that one place names
	usedOnce              int // unexported functions and methods whose name stands once in their package beside its declaration
	exported, exportUnuse int // package-level names, and how many of them no other package needs
	longestFunc           int
	longestFuncAt         string
	longestFile           int
	longestFileName       string
	packagesBack          []backReferences
}

// backReferences count how files of one package name each other.
type backReferences struct {
	folder      string
	files       int
	lines       int
	pairs, back int // pairs of files, the first naming something in the second; those against the best order found
}

// measure computes the figures.
func (m *module) measure() *figures {
	f := &figures{packages: len(m.packages)}
	perPackage := map[string]*backReferences{}
	for _, s := range m.files {
		f.lines += s.lines
		if s.lines > f.longestFile {
			f.longestFile, f.longestFileName = s.lines, s.name
		}
		folder := m.folder(s.pkg)
		if perPackage[folder] == nil {
			perPackage[folder] = &backReferences{folder: folder}
		}
		perPackage[folder].lines += s.lines
	}
	count, err := m.sourceFiles()
	if err == nil {
		for folder, n := range count {
			f.filesPerPackage = append(f.filesPerPackage, n)
			if n > count[f.largestFolder] {
				f.largestFolder = folder
			}
			if b := perPackage[folder]; b != nil {
				b.files = n
			}
		}
		slices.Sort(f.filesPerPackage)
	}
	uses := m.uses()
	m.measureFunctions(f, uses)
	needed := m.neededExports()
	for _, e := range m.exports() {
		f.exported++
		if !needed[e.key] {
			f.exportUnuse++
		}
	}
	m.measureOrder(perPackage, uses)
	for _, b := range perPackage {
		f.packagesBack = append(f.packagesBack, *b)
	}
	slices.SortFunc(f.packagesBack, func(a, b backReferences) int { return cmp.Compare(a.folder, b.folder) })
	return f
}

// measureFunctions counts functions, how many have one caller, and the longest.
func (m *module) measureFunctions(f *figures, uses []use) {
	named := map[string]int{}
	for _, u := range uses {
		named[u.key]++
	}
	words := map[string]map[string]int{} // by package: how often each identifier stands in it
	for _, s := range m.files {
		if words[s.pkg.PkgPath] == nil {
			words[s.pkg.PkgPath] = map[string]int{}
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				words[s.pkg.PkgPath][id.Name]++
			}
			return true
		})
	}
	for _, s := range m.files {
		for _, d := range s.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			f.functions++
			if n := m.fset.Position(fn.End()).Line - m.fset.Position(fn.Pos()).Line + 1; n > f.longestFunc {
				f.longestFunc, f.longestFuncAt = n, m.position(fn.Pos())
			}
			if named[m.key(s.pkg.TypesInfo.Defs[fn.Name])] == 1 {
				f.oneCaller++
			}
			if !fn.Name.IsExported() && words[s.pkg.PkgPath][fn.Name.Name] == 2 {
				f.usedOnce++
			}
		}
	}
}

// measureOrder counts, in each package, the pairs of files where one names
// something in the other, and how many of them run against the order of the files.
// The order is chosen to keep these few (Eades, Lin and Smyth, "A fast and effective
// heuristic for the feedback arc set problem", 1993).
func (m *module) measureOrder(perPackage map[string]*backReferences, uses []use) {
	home := map[string]*file{}
	for _, s := range m.files {
		for _, o := range s.pkg.TypesInfo.Defs {
			if k := m.key(o); k != "" && m.fset.Position(o.Pos()).Filename == m.fset.Position(s.ast.FileStart).Filename {
				home[k] = s
			}
		}
	}
	graphs := map[string]map[string]map[string]bool{}
	for _, u := range uses {
		to := home[u.key]
		if to == nil || to == u.file || to.pkg != u.file.pkg {
			continue
		}
		folder := m.folder(to.pkg)
		if graphs[folder] == nil {
			graphs[folder] = map[string]map[string]bool{}
		}
		g := graphs[folder]
		if g[u.file.name] == nil {
			g[u.file.name] = map[string]bool{}
		}
		g[u.file.name][to.name] = true
	}
	for folder, g := range graphs {
		perPackage[folder].pairs, perPackage[folder].back = feedback(g)
	}
}

// feedback counts the arcs of a graph, and those that run back in the order that
// the greedy heuristic finds.
func feedback(g map[string]map[string]bool) (arcs, back int) {
	nodes := map[string]bool{}
	for from, tos := range g {
		nodes[from] = true
		for to := range tos {
			nodes[to] = true
			arcs++
		}
	}
	var first, last []string
	for len(nodes) > 0 {
		out, in := map[string]int{}, map[string]int{}
		for from, tos := range g {
			for to := range tos {
				if nodes[from] && nodes[to] {
					out[from]++
					in[to]++
				}
			}
		}
		left := make([]string, 0, len(nodes))
		for n := range nodes {
			left = append(left, n)
		}
		slices.Sort(left)
		best := slices.MaxFunc(left, func(a, b string) int { return cmp.Compare(rankOf(out[a], in[a]), rankOf(out[b], in[b])) })
		if out[best] == 0 {
			last = append(last, best)
		} else {
			first = append(first, best)
		}
		delete(nodes, best)
	}
	slices.Reverse(last)
	place := map[string]int{}
	for i, n := range append(first, last...) {
		place[n] = i
	}
	for from, tos := range g {
		for to := range tos {
			if place[from] > place[to] {
				back++
			}
		}
	}
	return arcs, back
}

// rankOf says how soon a node is taken: sinks and sources first, then by how many
// more arcs leave it than reach it.
func rankOf(out, in int) int {
	if out == 0 || in == 0 {
		return 1 << 20
	}
	return out - in
}

// write prints the figures for people and for scripts that compare two of them.
func (f *figures) write(w io.Writer) {
	thousand := float64(f.lines) / 1000
	fmt.Fprintf(w, "lines %d, packages %d\n", f.lines, f.packages)
	if n := len(f.filesPerPackage); n > 0 {
		fmt.Fprintf(w, "files a package: median %d, most %d (%s)\n", f.filesPerPackage[n/2], f.filesPerPackage[n-1], f.largestFolder)
	}
	fmt.Fprintf(w, "functions %d (%.1f per 1,000 lines), with one caller %d\n", f.functions, float64(f.functions)/thousand, f.oneCaller)
	fmt.Fprintf(w, "unexported functions used once (by name, in their package): %d, %.1f per 1,000 lines\n", f.usedOnce, float64(f.usedOnce)/thousand)
	fmt.Fprintf(w, "exported names %d, that no other package needs %d\n", f.exported, f.exportUnuse)
	fmt.Fprintf(w, "longest function %d lines (%s), longest file %d lines (%s)\n", f.longestFunc, f.longestFuncAt, f.longestFile, f.longestFileName)
	fmt.Fprintf(w, "references between files of a package that run back up:\n")
	var replay backReferences
	for _, b := range f.packagesBack {
		fmt.Fprintf(w, "  %-28s files %3d  lines %6d  pairs %4d  back %4d  per 1,000 lines %5.1f\n",
			b.folder, b.files, b.lines, b.pairs, b.back, float64(b.back)/float64(b.lines)*1000)
		if strings.HasPrefix(b.folder, "replay") {
			replay.lines, replay.pairs, replay.back = replay.lines+b.lines, replay.pairs+b.pairs, replay.back+b.back
		}
	}
	fmt.Fprintf(w, "  %-28s            lines %6d  pairs %4d  back %4d  per 1,000 lines %5.1f\n", "replay and all below",
		replay.lines, replay.pairs, replay.back, float64(replay.back)/float64(max(replay.lines, 1))*1000)
}
