package client

import (
	"testing"

	"reprise/replay/result"
)

// Where the APIs, the models and the pages beside them are, by the URL that was given.
func TestWhereThingsAre(t *testing.T) {
	for _, c := range []struct{ given, chat, models, metrics string }{
		{"http://h:8000", "http://h:8000/v1/chat/completions", "http://h:8000/v1/models", "http://h:8000/metrics"},
		{"http://h:8000/", "http://h:8000/v1/chat/completions", "http://h:8000/v1/models", "http://h:8000/metrics"},
		{"http://h:8000/v1", "http://h:8000/v1/chat/completions", "http://h:8000/v1/models", "http://h:8000/metrics"},
		{"http://h/proxy", "http://h/proxy/v1/chat/completions", "http://h/proxy/v1/models", "http://h/proxy/metrics"},
		{"http://h/proxy/v1/", "http://h/proxy/v1/chat/completions", "http://h/proxy/v1/models", "http://h/proxy/metrics"},
		{"http://h/v1/chat/completions", "http://h/v1/chat/completions", "http://h/v1/models", "http://h/metrics"},
		{"http://h/v1/completions", "http://h/v1/chat/completions", "http://h/v1/models", "http://h/metrics"},
		{"https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai/models", "https://h/metrics"},
		{"https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai/models", "https://h/metrics"},
		{"https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions", "https://h/api/paas/v4/models", "https://h/api/paas/metrics"},
		{"https://h/v1/acct/gateway/compat/chat/completions", "https://h/v1/acct/gateway/compat/chat/completions", "https://h/v1/acct/gateway/compat/models", "https://h/metrics"},
		{"https://h/inference/chat/completions", "https://h/inference/chat/completions", "https://h/inference/models", "https://h/inference/metrics"},
		{"https://h/openai/deployments/m/chat/completions?api-version=2024-10-21", "https://h/openai/deployments/m/chat/completions?api-version=2024-10-21",
			"https://h/openai/deployments/m/models?api-version=2024-10-21", "https://h/openai/deployments/m/metrics?api-version=2024-10-21"},
		{"http://h/chat/completions", "http://h/chat/completions", "http://h/models", "http://h/metrics"},
	} {
		o := Options{URL: c.given}
		all, err := o.targets()
		if err != nil {
			t.Errorf("%s: %v", c.given, err)
			continue
		}
		one := &all[0]
		if got := one.urls[result.APIChat].String(); got != c.chat {
			t.Errorf("%s: chats go to %s, want %s", c.given, got, c.chat)
		}
		if got := below(one.root, modelsPath).String(); got != c.models {
			t.Errorf("%s: models are at %s, want %s", c.given, got, c.models)
		}
		if got := PageBeside(c.given, "/metrics"); got != c.metrics {
			t.Errorf("%s: metrics are at %s, want %s", c.given, got, c.metrics)
		}
	}
	for given, want := range map[string][2]string{
		"unix:///run/e.sock":           {"http://socket-0.invalid/v1/messages", "unix:///run/e.sock:/metrics"},
		"unix:///run/e.sock:/base/v1":  {"http://socket-0.invalid/base/v1/messages", "unix:///run/e.sock:/base/metrics"},
		"unix:///run/e.sock:/messages": {"http://socket-0.invalid/messages", "unix:///run/e.sock:/metrics"},
	} {
		o := Options{URL: given}
		all, err := o.targets()
		if err != nil || all[0].urls[result.APIMessages].String() != want[0] || PageBeside(given, "/metrics") != want[1] {
			t.Errorf("%s: %v, %s, %s", given, err, all[0].urls[result.APIMessages], PageBeside(given, "/metrics"))
		}
	}
}
