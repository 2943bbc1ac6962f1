// Command codecheck holds the structure of the code to its rules: it prints what breaks a rule, as
// file:line: what, and exits with 1 if anything does.
//
// They are the rules of `make lint` that a compiler or a linter does not know; each
// is a function in rules.go, budget.go or words.go with the reason above it. They leave out
// tests and generated files.
//
// # Files
//
//   - main.go: the command
//   - rules.go: each rule: conflict markers, numbered lists, listed commands, dead code, panics
//   - budget.go: the lines that each top-level folder may have, and what stands in the root
//   - words.go: strings for people that do not name the thing they are about
//   - exports.go: exported names that no other package needs
//   - tagged.go: what vet says of files that only reprise-cloud is built of
//   - module.go: loading and type-checking the module, and who uses what
package main

import (
	"fmt"
	"os"
)

func main() {
	m, err := loadModule(".")
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
