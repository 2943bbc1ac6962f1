// Package flags holds the groups of flags that several commands of reprise share.
// A group is a struct: Register adds its flags to a command, and its methods give
// what they say in the terms of the library.
package flags
