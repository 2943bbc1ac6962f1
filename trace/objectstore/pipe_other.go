//go:build !unix

package objectstore

import "os"

// openFile opens a file. There are no named pipes in the file system here.
func openFile(name string) (*os.File, error) { return os.Open(name) }
