// Package strictyaml reads YAML files written by hand into structs. It refuses
// everything that does not fit, and names the line and the column.
//
// [Parse] reads one document within bounds. A [Node] hands its keys to the readers
// of a list of [Key] and its elements to one reader; [Node.Text], [Node.Number],
// [Whole] and [Parsed] read a scalar; [Node.Decode] fills a tagged struct. Errors
// carry their place, and [Named] adds the name of the file.
//
// # Files
//
//   - strictyaml.go: reading and parsing a document within bounds of bytes, depth and
//     aliases; faults with file, line and column
//   - node.go: the values of a document: keys, lists, texts and numbers, each read by its
//     reader; unknown keys and wrong kinds refused
//
// Exported names may change in any release.
package strictyaml
