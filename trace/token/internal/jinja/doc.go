// Package jinja renders the chat templates of language models.
//
// They are written in Jinja (https://jinja.palletsprojects.com), and are rendered as Hugging Face's transformers
// renders them: with trim_blocks and lstrip_blocks, loop controls, and JSON as Python's json.dumps writes it.
//
// The package has the part of the language that published templates use, and nothing that reaches outside: no includes,
// no imports, no attributes of host objects. [Compile] cuts the text into lexemes and parses them into a tree;
// [Template.Render] walks the tree. [Limits] bound what a template may cost: steps, the bytes that it writes, and the
// depth of its calls.
//
// The values of a template are nil (none), bool, int64, [bigNumber] (a larger integer), float64, string, *[List],
// *[Dict] and [Func]. They do not change once made, except for namespaces.
//
// Errors name the line of the template and never quote a value.
//
// # Files
//
//   - render.go: Compile, Render and the limits; statements: if, for, set, macro, and the variable loop
//   - lex.go: the source cut into lexemes: tags, strings, numbers, white space control, raw
//   - parse.go: statements, and the bounds of nesting
//   - expr.go: expressions: precedence, calls, subscripts, filters and tests after a value
//   - eval.go: the value of an expression: names, attributes, slices, arithmetic, comparisons, in
//   - value.go: lists, dicts, namespaces and the other values; their truth, equality, text and length; the arguments of
//     a call
//   - text.go: strings and floats as Python reads and prints them
//   - json.go: JSON as Python reads and writes it
//   - filters.go: filters such as tojson, default, sort, map and selectattr, and tests such as defined, mapping and
//     divisibleby
//   - builtins.go: functions such as range, namespace and dict, and methods such as strip, split, replace, title and
//     items
package jinja
