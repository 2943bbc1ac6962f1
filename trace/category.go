package trace

import "strings"

// Reuse categories, in their order of precedence; package profile assigns them, and
// [CategoryDefinitions] says what they mean.
const (
	Cold         = "cold"
	Duplicate    = "duplicate"
	Continuation = "continuation"
	Template     = "template"
	Branch       = "branch"
)

// CategoryRule is the version of the rule by which categories are given, and EarlierRule
// that of traces which do not say so: it looked at blocks alone, and not at
// sessions. Their categories stay what they were.
const (
	CategoryRule = "2"
	EarlierRule  = "1"
	// Global is a category of the earlier rule: what is now a template that nearly all share.
	Global = "global"
)

// A CategoryDefinition says in one sentence when a request has a reuse category.
type CategoryDefinition struct{ Name, Text string }

// CategoryDefinitions are those of [Meta].Categories, in their order of precedence. Of a
// file put together of several they are those of today, and global.
func CategoryDefinitions(rule string) []CategoryDefinition {
	const global = "The hit is no deeper than the prefix that more than half of the requests carry."
	if rule == "" || rule == EarlierRule {
		return []CategoryDefinition{
			{Cold, "No block of the prompt is known."},
			{Global, global},
			{Duplicate, "The whole prompt was seen before."},
			{Continuation, "The hit ends where the request that last touched its deepest block ended, of " +
				"whatever session."},
			{Branch, "The hit ends inside an earlier prompt: a template, a document, few-shot examples."},
		}
	}
	list := []CategoryDefinition{
		{Cold, "No block of the prompt is known."},
		{Duplicate, "Every block of the prompt is known: the whole prompt was seen before."},
		{Continuation, "The hit ends in what an earlier request of the same session had, so this is a next turn."},
		{Template, "The hit ends in what two other sessions or more had before: a system prompt, few-shot examples, " +
			"a document."},
		{Branch, "The hit ends in what one other session alone had before: its own part, or a template that comes " +
			"the second time."},
	}
	if rule != CategoryRule {
		list = append(list, CategoryDefinition{Global,
			"In traces of an earlier version: " + strings.ToLower(global[:1]) + global[1:]})
	}
	return list
}

// Categories lists the reuse categories in their order of precedence.
func Categories() []string { return CategoriesOf(CategoryRule) }

// CategoriesOf lists those of [Meta].Categories.
func CategoriesOf(rule string) []string {
	var names []string
	for _, d := range CategoryDefinitions(rule) {
		names = append(names, d.Name)
	}
	return names
}

// AllCategories lists those of today, then those that files of earlier versions may have.
func AllCategories() []string { return CategoriesOf(CategoryRule + "," + EarlierRule) }
