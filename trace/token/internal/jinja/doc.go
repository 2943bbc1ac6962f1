// Package jinja renders the chat templates of language models, which are written in Jinja
// (https://jinja.palletsprojects.com), as Hugging Face's transformers renders them: with trim_blocks and lstrip_blocks, loop
// controls, and JSON in the manner of Python's json.dumps.
//
// It holds the part of the language that published templates use, and nothing that reaches outside: no includes, no imports,
// no attribute of a host object. [Compile] takes the text apart into tags, and the tags into a tree; [Template.Render] walks
// the tree. What a template may cost is bounded ([Limits]): steps, the bytes that it makes, and how deep it calls itself.
//
// The values of a template are nil (none), bool, int64, [Number] (an integer that is larger), float64, string, *[List], *[Dict]
// and [Func]. They are not changed once made, but for namespaces.
//
// Errors name the line of the template and never quote a value.
package jinja
