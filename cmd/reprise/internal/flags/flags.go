// Package flags holds the groups of flags that several commands of reprise share, one
// file a group, and the spellings of other tools that they are translated from.
//
// A group is a struct: Register adds its flags to a command, Check refuses what cannot
// be meant, and its other methods turn it into options of the libraries.
package flags

import "github.com/spf13/cobra"

// A Group is flags that belong together.
type Group interface {
	// Register adds the flags to a command, and sets them to their defaults.
	Register(cmd *cobra.Command)
	// Check refuses values that mean nothing, alone or with other flags of the group.
	Check() error
}
