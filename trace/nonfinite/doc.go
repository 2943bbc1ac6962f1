// Package nonfinite makes JSON of what Python's json module writes by default: NaN, Infinity
// and -Infinity, which JSON does not have, become null.
package nonfinite
