package datasets

import (
	"testing"
	"time"
)

// fromEpoch spells a time as the tests do, from Epoch.
func fromEpoch(t testing.TB, date string) string {
	at, err := time.Parse(time.RFC3339Nano, date)
	if err != nil {
		t.Fatal(err)
	}
	return at.Sub(Epoch).String()
}

// Rows of 2024 with and without fractions stand side by side.
func TestAzure2024(t *testing.T) {
	info := reads(t, azureHeader+"2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00+00:00,2399,6\n"+
		"2024-05-10 02:00:01.5+02:00,76,15\n2024-05-12 00:00:00.000001+00:00,1,0", Options{},
		fromEpoch(t, "2024-05-10T00:00:00.00993Z")+" in=2162 out=5",
		fromEpoch(t, "2024-05-10T00:00:00Z")+" in=2399 out=6",
		fromEpoch(t, "2024-05-10T00:00:01.5Z")+" in=76 out=15",
		fromEpoch(t, "2024-05-12T00:00:00.000001Z")+" in=1 out=0")
	if info.Format != "azure-2024" || info.TimeUnit != "date" || info.Bad != 0 {
		t.Errorf("%+v", info)
	}
	wantBad(t, azureHeader+"2024-05-10 00:00:00+00:00,1,2\n2024-05-10 00:00:00,1,2\n", Options{}, "log:3:1: its time is written in another way")
}

func TestAzure2025(t *testing.T) {
	info := reads(t, "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,0,1180,42\n2024-10-15T12:00:01Z,3,2399,0\n", Options{},
		fromEpoch(t, "2024-10-15T12:00:00.269Z")+" in=1180 out=42 images=0",
		fromEpoch(t, "2024-10-15T12:00:01Z")+" in=2399 out=0 images=3")
	if info.Format != "azure-2025" || info.TimeUnit != "date" {
		t.Errorf("%+v", info)
	}
	const head = "GeneratedTokens,ContextTokens,NumImages,TIMESTAMP\n"
	wantBad(t, head+"1,2,,2024-10-15T12:00:00Z\n", Options{}, "log:2:1: images is missing")
	wantBad(t, head+"1,2,-3,2024-10-15T12:00:00Z\n", Options{}, "log:2:5: images: want a whole number")
	wantBad(t, azureHeader+"2024-10-15T12:00:00Z,1,2\n", Options{Format: "azure-2025"}, "log:1:1: the header has no column for images")
}
