package bench

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// portName is the placeholder that is filled in with a free port.
const portName = "port"

// A ServeCommand is the command that starts a serving engine. {port} in it becomes
// a free port, and other names in braces what [ServeCommand.Fill] gives them.
type ServeCommand struct {
	words []string
}

var placeholder = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_-]*\}`)

// ParseServeCommand takes a command apart into words at its spaces. Quotes and
// backslashes keep a word together as they do in a shell; nothing else means
// anything: no variables, patterns, pipes or redirections. For these the command is
// sh -c '…'. It is split first and filled in then, so that a value with spaces stays
// one word.
func ParseServeCommand(line string) (ServeCommand, error) {
	var words []string
	var word strings.Builder
	inWord, quote, escaped := false, rune(0), false
	for _, r := range line {
		switch {
		case r == 0:
			return ServeCommand{}, errors.New("the command has a zero byte")
		case escaped:
			if quote == '"' && !strings.ContainsRune("\"\\$`\n", r) {
				word.WriteByte('\\')
			}
			if r != '\n' { // which continues the line
				word.WriteRune(r)
				inWord = true
			}
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	switch {
	case quote != 0:
		return ServeCommand{}, fmt.Errorf("the command has an unclosed %c", quote)
	case escaped:
		return ServeCommand{}, errors.New("the command ends in a backslash")
	case inWord:
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return ServeCommand{}, errors.New("the command is empty")
	}
	return ServeCommand{words}, nil
}

// Placeholders lists the names to be filled in, without the port, each once.
func (c ServeCommand) Placeholders() []string {
	names := map[string]bool{}
	for _, w := range c.words {
		for _, p := range placeholder.FindAllString(w, -1) {
			names[p[1:len(p)-1]] = true
		}
	}
	delete(names, portName)
	return slices.Sorted(maps.Keys(names))
}

// HasPort tells whether the command is told its port.
func (c ServeCommand) HasPort() bool {
	return slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains(w, "{"+portName+"}") })
}

// Fill puts values in the place of their names. A name without a value, and a value
// whose name is not in the command, are errors.
func (c ServeCommand) Fill(values map[string]string) (ServeCommand, error) {
	names := c.Placeholders()
	for _, name := range names {
		if _, ok := values[name]; !ok {
			return c, fmt.Errorf("the command has {%s}, but no value is given for it", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			return c, fmt.Errorf("a value is given for %s, but the command has no {%s}", name, name)
		}
	}
	return c.replace(values), nil
}

func (c ServeCommand) replace(values map[string]string) ServeCommand {
	out := ServeCommand{make([]string, len(c.words))}
	for i, w := range c.words {
		out.words[i] = placeholder.ReplaceAllStringFunc(w, func(p string) string {
			if v, ok := values[p[1:len(p)-1]]; ok {
				return v
			}
			return p
		})
	}
	return out
}

// Words are the program and its arguments.
func (c ServeCommand) Words() []string { return slices.Clone(c.words) }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// QuoteWords joins words to a line that a shell, and [ParseServeCommand], takes
// apart into the same words.
func QuoteWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; !plainWord.MatchString(w) {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// String is the command as a line.
func (c ServeCommand) String() string { return QuoteWords(c.words) }
