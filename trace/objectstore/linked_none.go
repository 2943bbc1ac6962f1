//go:build !clouds

package objectstore

import (
	"fmt"
	"os"
)

const linked = false

// Main says that the program was built without stores, and returns the exit code.
func Main() int {
	fmt.Fprintln(os.Stderr, "reprise: this program was built without object stores")
	return 2
}
