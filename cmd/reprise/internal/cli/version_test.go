package cli

import "testing"

// A binary of go install says the version that it was fetched at; where Go noted none, nobody knows one.
func TestModuleVersion(t *testing.T) {
	for noted, want := range map[string]string{"": "unversioned", "(devel)": "unversioned", "v1.2.3": "v1.2.3",
		"v0.0.0-20260101000000-0123456789ab+dirty": "v0.0.0-20260101000000-0123456789ab+dirty"} {
		if got := moduleVersion(noted); got != want {
			t.Errorf("%q is version %s, want %s", noted, got, want)
		}
	}
}
