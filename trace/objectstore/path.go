package objectstore

import (
	"path"
	"path/filepath"
	"strings"
)

// Schemes are those of the paths that name objects.
var schemes = []string{"s3", "gs", "az"}

// IsURL reports whether a path names an object, or a folder of objects. One slash after
// the colon is enough, since package path/filepath leaves no more.
func IsURL(name string) bool {
	_, _, _, ok := split(name)
	return ok
}

// split takes a path apart, which names an object if ok.
func split(name string) (scheme, bucket, key string, ok bool) {
	for _, s := range schemes {
		rest, found := strings.CutPrefix(name, s+":/")
		if !found {
			continue
		}
		bucket, key, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		return s, bucket, strings.TrimLeft(key, "/"), true
	}
	return "", "", "", false
}

// canonical writes a path with two slashes, and without what may be a secret: an address
// is sometimes pasted with a signature after a question mark.
func canonical(name string) string {
	scheme, bucket, key, ok := split(name)
	if !ok {
		return name
	}
	u := scheme + "://" + bucket
	if key != "" {
		u += "/" + key
	}
	if before, _, found := strings.Cut(u, "?"); found {
		return before + "?…"
	}
	return u
}

// Join is [filepath.Join], which keeps the two slashes of an object.
func Join(elem ...string) string {
	if len(elem) > 0 && IsURL(elem[0]) {
		scheme, rest, _ := strings.Cut(elem[0], ":")
		return scheme + ":/" + path.Join(append([]string{"/" + rest}, elem[1:]...)...)
	}
	return filepath.Join(elem...)
}

// Dir is [filepath.Dir], which keeps the two slashes of an object.
func Dir(name string) string {
	if IsURL(name) {
		return Join(name, "..")
	}
	return filepath.Dir(name)
}
