package datasets

import "io"

// A File is one file of a source. Open may be called more than once.
type File struct {
	Name string // for errors and for formats that are told by names
	Open func() (io.ReadCloser, error)
}
