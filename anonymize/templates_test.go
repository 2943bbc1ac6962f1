package anonymize

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"reprise/trace"
)

// templateUse counts requests of users with system prompts.
type templateUse struct {
	system, user, session string
	times                 int
}

func templatesOf(c *templateCounter, uses []templateUse) *Templates {
	for _, u := range uses {
		for range u.times {
			var system []trace.Text
			for m := range strings.SplitSeq(u.system, "|") {
				system = append(system, trace.NewText(m))
			}
			c.add(system, u.user, u.session)
		}
	}
	return c.report()
}

// templateMany has a number of users, or sessions, use a prompt.
func templateMany(system, user, session string, n int) (out []templateUse) {
	for i := range n {
		u := templateUse{system: system, times: 2}
		if user != "" {
			u.user = fmt.Sprint(user, i)
		}
		if session != "" {
			u.session = fmt.Sprint(session, i)
		}
		out = append(out, u)
	}
	return out
}

func TestTemplatesNeedUsers(t *testing.T) {
	join := func(parts ...[]templateUse) (out []templateUse) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	for name, c := range map[string]struct {
		uses []templateUse
		unit string
		want []template
	}{
		"enough users": {join(templateMany("Ask help@acme.example.|Be kind.", "u", "s", 3), templateMany("rare", "u", "s", 2), []templateUse{{"often", "u1", "s1", 99}}), UnitUser,
			[]template{{[]string{"Ask [email].", "Be kind."}, 6, map[string]int{"email": 1}}}},
		"sessions are no users":     {templateMany("a", "", "s", 5), UnitSession, []template{{[]string{"a"}, 10, map[string]int{}}}},
		"a user's sessions are one": {join(templateMany("b", "", "s", 9), []templateUse{{"c", "u", "t", 1}}), UnitUser, nil},
		"neither":                   {templateMany("a", "", "", 50), "", nil},
		"the same once scrubbed": {join(templateMany("to a@b.example", "u", "", 3), templateMany("to c@d.example", "v", "", 4), templateMany("x", "w", "", 4)), UnitUser,
			[]template{{[]string{"to [email]"}, 14, map[string]int{"email": 2}}, {[]string{"x"}, 8, map[string]int{}}}},
		"too long": {templateMany(strings.Repeat("a", maxTemplateBytes), "u", "", 9), UnitUser, nil},
	} {
		got := templatesOf(newTemplateCounter(3), c.uses)
		if got.Unit() != c.unit || !reflect.DeepEqual(got.list, c.want) {
			t.Errorf("%s: by %s, %+v", name, got.Unit(), got.list)
		}
	}
}

// With too many candidates, those of one user go; what is dropped may be missed,
// and is never counted for more users than it has.
func TestTemplatesAreBounded(t *testing.T) {
	c := newTemplateCounter(3)
	c.limit.candidates = 10
	var uses []templateUse
	for i := range 500 {
		uses = append(uses, templateUse{fmt.Sprint("of one, ", i), fmt.Sprint("v", i), "", 1})
		if i < 4 {
			uses = append(uses, templateUse{"common", fmt.Sprint("u", i), "", 1})
		}
		uses = append(uses, templateUse{"of two", fmt.Sprint("u", i%2), "", 1})
	}
	got := templatesOf(c, uses)
	if len(got.list) != 1 || got.list[0].Messages[0] != "common" || got.dropped < 400 || len(c.seen) > 10 {
		t.Errorf("%d candidates, %+v", len(c.seen), got)
	}
}

// The prompt is what stands before the first message that is not of the system.
func TestSystemPrompt(t *testing.T) {
	m := func(role trace.Role, s string) trace.Message {
		return trace.Message{Role: role, Content: trace.NewText(s)}
	}
	got := systemPrompt([]trace.Message{m(trace.System, "a"), m(trace.System, "b"), m(trace.User, "mine"), m(trace.System, "late")})
	if len(got) != 2 || got[0].Reveal() != "a" || got[1].Reveal() != "b" {
		t.Errorf("%d messages", len(got))
	}
}
