package replay

import "regexp"

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// value is what follows a name: a quoted string, or all up to a space.
const value = `(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"']+(?:"[^"]*"?|'[^']*'?)*)`

// secretName is a name whose value is a secret. Token alone or at the end is one, as
// in --hf-token, while tokenizer, max_tokens and batched-tokens are none; key is one at
// the end, as in --api-key and AWS_ACCESS_KEY.
const secretName = `[\w.-]*(?:key|token|secret|passw(?:or)?d|pwd|credentials?|authorization|[_-]auth|bearer)`

// Each pattern keeps its first group, which names what is replaced.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)(?:\s+|%20))[^\s"',]+`),
	// --api-key X and --api-key=X; vLLM takes several behind one flag.
	regexp.MustCompile(`(?i)(--?` + secretName + `(?:\s*=\s*|\s+))` + value + `(?:\s+[^\s-]\S*)*`),
	// HF_TOKEN=X, "token": "X", api_key: X
	regexp.MustCompile(`(?i)(["']?\b` + secretName + `["']?\s*[=:]\s*)` + value),
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@`), // user:password@
	regexp.MustCompile(`(/(?:home|Users)/)[^\s/"',:]+`),
	// What is a key by its look.
	regexp.MustCompile(`()\b(?:sk|nvapi|xai|glpat)-[\w-]{12,}`),
	regexp.MustCompile(`()\b(?:hf|gsk|npm|gh[pousr]|github_pat)_\w{12,}`),
	regexp.MustCompile(`()\b(?:AKIA|ASIA)[A-Z0-9]{12,}`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w.-]{8,}`),
}

// Redact puts [Redacted] in the place of what looks like a secret: the values of flags,
// variables and fields that are named like one, bearer tokens, what stands before the @
// of a URL, names of home directories, and strings that look like keys. It is for text that is kept beside
// results, such as an engine's flags; rather too much goes than too little.
func Redact(s string) string {
	for _, re := range secrets {
		s = re.ReplaceAllString(s, "${1}"+Redacted)
	}
	return s
}
