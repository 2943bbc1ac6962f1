package anonymize

import (
	"strings"
	"testing"
)

// Items are joined from parts, so that no scanner of sources takes them for real.
func scrubJoin(parts ...string) string { return strings.Join(parts, "") }

// Every kind has texts in which it is found, and others that look alike.
var scrubCases = map[string]struct{ items, others []string }{
	"pem": {[]string{"-----BEGIN RSA PRIVATE KEY-----\nMIIEpQ\n-----END RSA PRIVATE KEY-----", "-----BEGIN CERTIFICATE-----\ncut off"},
		[]string{"-----BEGIN-----", "BEGIN PRIVATE KEY"}},
	"url-credentials":   {[]string{"postgres://bob:pw@", "https://:hunter2@", "amqp+ssl://u:p%40ss@"}, []string{"https://example.com:8080/a", "https://bob/x"}},
	"jwt":               {[]string{scrubJoin("eyJhbGciOiJI", "UzI1NiJ9.eyJzdWIiOiIxIn0.c2ln")}, []string{"eyJhb.eyJ", "keyJhbGciOiJ.abcdefghi"}},
	"aws-key":           {[]string{scrubJoin("AKIA", "IOSFODNN7EXAMPLE")}, []string{"AKIAIOSFODNN7", "XAKIAIOSFODNN7EXAMPLE"}},
	"google-key":        {[]string{scrubJoin("AIza", strings.Repeat("aB3", 11), "xy")}, []string{"AIzaShort"}},
	"google-token":      {[]string{scrubJoin("ya29.", "a0AfH6SMBx-1234567890")}, []string{"ya29.short"}},
	"azure-key":         {[]string{scrubJoin("AccountKey=", strings.Repeat("aB3/", 21), "aa==")}, []string{"AccountKey=none"}},
	"azure-signature":   {[]string{scrubJoin("sig=", strings.Repeat("a%2", 14))}, []string{"sig=short", "design=ok"}},
	"github-token":      {[]string{scrubJoin("ghp_", strings.Repeat("a1B2", 9)), scrubJoin("github_pat_", strings.Repeat("a1_", 9))}, []string{"ghp_short", "github_pat_x"}},
	"gitlab-token":      {[]string{scrubJoin("glpat-", "abcdefghij0123456789")}, []string{"glpat-short"}},
	"slack-token":       {[]string{scrubJoin("xoxb-", "1234567890-abcdef")}, []string{"xoxz-1234567890"}},
	"slack-webhook":     {[]string{scrubJoin("hooks.slack.com/services/", "T00000000/B00000000/xx")}, []string{"hooks.slack.com/docs"}},
	"llm-key":           {[]string{scrubJoin("sk-", "proj-abcdefghijklmnopqrst"), scrubJoin("sk-ant-", "api03-abcdefghijklmnop")}, []string{"sk-short", "task-oriented-dialogue-systems"}},
	"stripe-key":        {[]string{scrubJoin("sk_", "live_abcdefghijklmnop")}, []string{"sk_live_x"}},
	"huggingface-token": {[]string{scrubJoin("hf_", strings.Repeat("abc", 11))}, []string{"hf_hub_download"}},
	"package-token":     {[]string{scrubJoin("npm_", strings.Repeat("abc1", 9)), scrubJoin("pypi-", strings.Repeat("abcd-", 10))}, []string{"npm_config_cache", "pypi-server"}},
	"sendgrid-key":      {[]string{scrubJoin("SG.", "abcdefghijklmnop.abcdefghijklmnop")}, []string{"SG.a.b"}},
	"twilio-key":        {[]string{scrubJoin("AC", strings.Repeat("0a", 16))}, []string{"AC0a"}},
	"telegram-token":    {[]string{scrubJoin("123456789:", strings.Repeat("AAbb-", 7))}, []string{"12345678:short"}},
	"authorization":     {[]string{"Bearer abcdefgh.ijklmnop", "basic dXNlcjpwYXNzd29yZA=="}, []string{"the bearer of good news", "basic instructions"}},
	"password":          {[]string{"password: hunter22", `"api_key" = "abc-def"`, "PWD=secret1"}, []string{"the password is yours", "password: {password}", "secret: [x]"}},
	"email":             {[]string{"jane.doe+x@mail.example.co.uk", "jürgen@bücher.example"}, []string{"@handle", "a@b", "1 @ 2.50"}},
	"iban":              {[]string{"DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432", "NL91ABNA0417164300"}, []string{"DE88 3704 0044 0532 0130 00", "AB12 SOME WORDS IN CAPITALS"}},
	"mac":               {[]string{"00:1B:44:11:3a:B7", "00-1B-44-11-3A-B7"}, []string{"00:1B:44:11:3A", "12:30:00"}},
	"ip":                {[]string{"192.168.0.1", "2001:db8::8a2e:370:7334", "fe80::1", "::ffff:10.0.0.1"}, []string{"999.1.1.1", "std::vector", "a::b::c", "10:30", "1.2.3", "::"}},
	"phone":             {[]string{"+49 30 901820", "+1 (555) 010-9999", "+441632960961"}, []string{"+1", "1 + 2", "+0123456789"}},
	"card":              {[]string{"4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"}, []string{"4111 1111 1111 1112", "1234567890", "20260102030405061"}},
	"uuid":              {[]string{"123e4567-e89b-12d3-a456-426614174000"}, []string{"123e4567-e89b-12d3"}},
	"token": {[]string{"d41d8cd98f00b204e9800998ecf8427e", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1"},
		[]string{"internationalisation", "a_very_long_identifier_name", "https-only-cookies-are-set", "--------------------------------", "00000000000000000000000000000000"}},
}

func TestScrub(t *testing.T) {
	for _, r := range recognisers {
		cases, ok := scrubCases[r.name]
		if !ok || len(cases.items) == 0 || len(cases.others) == 0 {
			t.Errorf("%s has no cases", r.name)
		}
		for _, item := range cases.items {
			for _, around := range []string{"%", "see % now", "(%)", "é%é", "a: \"%\",\nb"} {
				if strings.HasSuffix(around, "b") && strings.HasSuffix(item, "cut off") {
					continue // it takes all that follows
				}
				text := strings.Replace(around, "%", item, 1)
				got, found := scrub(text)
				if r.name == "password" || r.name == "email" { // they may take more
					if strings.Contains(got, item) || found[r.name] != 1 {
						t.Errorf("%s: %q became %q, %v", r.name, text, got, found)
					}
					continue
				}
				if want := strings.Replace(around, "%", "["+r.name+"]", 1); got != want && !strings.HasSuffix(item, "cut off") || found[r.name] != 1 {
					t.Errorf("%s: %q became %q, %v", r.name, text, got, found)
				}
			}
		}
		for _, other := range cases.others {
			if got, found := scrub(other); got != other {
				t.Errorf("%s: %q became %q, %v", r.name, other, got, found)
			}
		}
	}
	if len(scrubCases) != len(recognisers) {
		t.Errorf("%d cases for %d recognisers", len(scrubCases), len(recognisers))
	}
}

// What stands beside an item does not hide it, nor become one by its going.
func TestScrubNeighbours(t *testing.T) {
	for text, want := range map[string]string{
		"7 4111 1111 1111 1111 9":                 "[card] 9",
		"IBAN DE89 3704 0044 0532 0130 00 AND SO": "IBAN [iban] AND SO",
		"a@b.com,c@d.org;10.0.0.1.":               "[email],[email];[ip].",
		"[2001:db8::1]:443":                       "[[ip]]:443",
		"You are a helpful assistant.":            "You are a helpful assistant.",
		"postgres://u:p@host:5432/db":             "[url-credentials]host:5432/db",
	} {
		if got, _ := scrub(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// Nothing that is recognised is left.
func FuzzScrub(f *testing.F) {
	for _, c := range scrubCases {
		f.Add(strings.Join(append(c.items, c.others...), " "))
		f.Add(strings.Join(append(c.items, c.others...), ""))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 2000 {
			return
		}
		once, _ := scrub(text)
		if again, found := scrub(once); again != once || len(found) > 0 {
			t.Errorf("%q became %q and then %q", text, once, again)
		}
		for i := range recognisers {
			if _, n := recognisers[i].replace(once); n > 0 {
				t.Errorf("%q became %q, with a %s", text, once, recognisers[i].name)
			}
		}
	})
}
