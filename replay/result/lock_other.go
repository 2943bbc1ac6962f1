//go:build !unix

package result

import "os"

// lock lets everyone in, where there are no locks.
func lock(*os.File) bool { return true }
