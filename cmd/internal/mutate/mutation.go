package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A mutation is one change at one place: the bytes from begin to end of a file
// become text.
type mutation struct {
	pkg        string // as go test takes it
	file       string
	begin, end int
	text       string
	where      string // file:line
	what       string // the change, for people
}

// mutationsOf lists all mutations of the packages' code, tests and generated files
// left out.
func mutationsOf(patterns []string) ([]mutation, error) {
	out, err := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \",\"}}"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []mutation
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) < 3 {
			continue
		}
		for name := range strings.SplitSeq(f[2], ",") {
			list, err := mutationsIn(f[0], filepath.Join(f[1], name))
			if err != nil {
				return nil, err
			}
			all = append(all, list...)
		}
	}
	return all, nil
}

// mutationsIn lists the mutations of one file.
func mutationsIn(pkg, name string) ([]mutation, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return nil, err
	}
	v := &visitor{fset: fset, src: src, pkg: pkg, name: name}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			ast.Inspect(fn.Body, v.visit)
		}
	}
	return v.found, nil
}

// A visitor collects mutations from the functions of a file.
type visitor struct {
	fset      *token.FileSet
	src       []byte
	pkg, name string
	found     []mutation
}

// swapped is what an operator becomes.
var swapped = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
}

func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if to := swapped[n.Op]; to != "" {
			v.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to, n.Op.String()+" becomes "+to)
		}
	case *ast.AssignStmt:
		if to := swapped[n.Tok]; to != "" {
			v.replace(n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), to, n.Tok.String()+" becomes "+to)
		}
		if n.Tok == token.ASSIGN {
			v.leaveOut(n)
		}
	case *ast.BasicLit:
		if n.Kind == token.INT && !strings.ContainsAny(n.Value, "xXbBoO_") {
			v.replace(n.Pos(), n.End(), "("+n.Value+"+1)", n.Value+" becomes "+n.Value+"+1")
		}
	case *ast.IfStmt:
		v.replace(n.Cond.Pos(), n.Cond.End(), "!("+v.text(n.Cond)+")", "the condition is negated")
	case *ast.ExprStmt, *ast.IncDecStmt:
		v.leaveOut(n)
	case *ast.ReturnStmt:
		for _, r := range n.Results {
			if id, ok := r.(*ast.Ident); ok && id.Name == "err" {
				v.replace(r.Pos(), r.End(), "nil", "the error is dropped")
			}
		}
	}
	return true
}

func (v *visitor) text(n ast.Node) string {
	return string(v.src[v.fset.Position(n.Pos()).Offset:v.fset.Position(n.End()).Offset])
}

// leaveOut replaces a statement by nothing.
func (v *visitor) leaveOut(n ast.Node) {
	v.replace(n.Pos(), n.End(), "", "left out: "+strings.Join(strings.Fields(v.text(n)), " "))
}

func (v *visitor) replace(begin, end token.Pos, text, what string) {
	at := v.fset.Position(begin)
	if len(what) > 100 {
		what = what[:100] + "…"
	}
	where := at.Filename
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, where); err == nil {
			where = rel
		}
	}
	v.found = append(v.found, mutation{pkg: v.pkg, file: v.name, begin: at.Offset, end: v.fset.Position(end).Offset,
		text: text, where: fmt.Sprintf("%s:%d", where, at.Line), what: what})
}

// An outcome is what became of a mutant.
type outcome string

const (
	killed          outcome = "killed"
	hung            outcome = "killed(t)" // by the time limit
	killedElsewhere outcome = "killed(w)" // by the tests of another package, -with
	survived        outcome = "SURVIVED"
	notBuilt        outcome = "not built"
)

// line is how a mutant and its outcome are printed.
func (m *mutation) line(o outcome) string { return fmt.Sprintf("%-9s %s: %s\n", o, m.where, m.what) }

// test runs the tests of the mutant's package and, where they do not notice it, those
// of others.
func (m *mutation) test(limit time.Duration, others []string) (outcome, error) {
	src, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed := filepath.Join(dir, "mutant.go")
	mutant := append(append(append([]byte{}, src[:m.begin]...), m.text...), src[m.end:]...)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(changed, mutant, 0o600), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "mutant.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, m.pkg)
	if out, err := build.CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("mutant.go")) || bytes.Contains(out, []byte(filepath.Base(m.file))) {
			return notBuilt, nil
		}
		return "", fmt.Errorf("building the tests of %s: %s", m.pkg, out)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%s has no tests", m.pkg)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout", limit.String())
	run.Dir = filepath.Dir(m.file)
	switch err := run.Run(); {
	case err == nil && len(others) > 0:
		args := append([]string{"test", "-vet=off", "-failfast", "-count=1", "-timeout", limit.String(), "-overlay", filepath.Join(dir, "overlay.json")}, others...)
		if exec.Command("go", args...).Run() != nil {
			return killedElsewhere, nil
		}
		return survived, nil
	case err == nil:
		return survived, nil
	case ctx.Err() != nil:
		return hung, nil
	}
	return killed, nil
}
