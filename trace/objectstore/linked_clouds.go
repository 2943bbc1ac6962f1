//go:build clouds

package objectstore

const linked = true
