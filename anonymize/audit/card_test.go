package audit

import (
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
)

// A public release of an earlier version whose card names no declared capture fails: its times count from
// one person's request. So do those that versions before the window have made.
func TestCardOfAPublicRelease(t *testing.T) {
	for name, c := range map[string]struct {
		captureNS int64
		status    Status
		why       string
	}{
		"a declared capture": {int64(time.Hour), Inconclusive, "an earlier version"},
		"none":               {0, Fail, "names no declared capture window"},
		"an impossible one":  {-1, Fail, "names no declared capture window"},
	} {
		text, hash, err := anonymize.Card{Schema: anonymize.CardSchema, Tier: anonymize.Public, FormerPublic: &anonymize.FormerStatement{CaptureNS: c.captureNS}}.JSON()
		if err != nil {
			t.Fatal(err)
		}
		f := card(t.Context(), &Case{Output: &Output{Kind: kindTrace, Meta: map[string]string{"tier": anonymize.Public, "card": text, "card_sha256": hash}}})
		if f.Status != c.status || !strings.Contains(f.Why, c.why) {
			t.Errorf("%s: %s, %s", name, f.Status, f.Why)
		}
	}
}
