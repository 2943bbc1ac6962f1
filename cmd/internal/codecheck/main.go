// Command codecheck holds the structure of the code to its rules, and measures it.
//
//	codecheck            prints what breaks a rule, as file:line: what; exit code 1 if anything does
//	codecheck -measure   prints figures of the structure: files a package, functions used once, …
//	codecheck DIR        the same for the module in another folder, such as an older checkout
//
// The rules are those of `make lint` that a compiler or a linter does not know; each
// is a function in rules.go or budget.go with the reason above it. Figures leave out
// tests and generated files.
//
// # Files
//
//   - main.go: the command and -measure
//   - rules.go: each rule: conflict markers, numbered lists, listed commands, dead code
//   - budget.go: the lines that each top-level folder may have, and what stands in the root
//   - measure.go: figures: files a package, functions with one caller, references between
//     files
//   - exports.go: exported names that no other package needs
//   - module.go: loading and type-checking the module, and who uses what
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	measure := flag.Bool("measure", false, "print figures of the structure instead of checking rules")
	flag.Parse()
	dir := "."
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	m, err := loadModule(dir)
	if err == nil && *measure {
		m.measure().write(os.Stdout)
		return
	}
	var faults []fault
	if err == nil {
		faults, err = m.check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "codecheck:", err)
		os.Exit(2)
	}
	for _, f := range faults {
		fmt.Println(f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
}
