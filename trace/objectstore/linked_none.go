//go:build !clouds

package objectstore

const linked = false
