// Package longtest is the switch of the tests that take long: more than a second or two, or many seeds. They run where
// the variable REPRISE_TEST_LONG is set, as it is before a change lands.
//
// Exported names may change in any release.
package longtest

import (
	"os"
	"testing"
)

// On tells whether tests take as long as they need.
func On() bool { return os.Getenv("REPRISE_TEST_LONG") != "" }

// Skip skips a test that takes long, unless such tests are on.
func Skip(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
}
