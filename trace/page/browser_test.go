package page

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser finds a Chromium, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	if os.Getenv("REPRISE_TEST_LONG") == "" {
		t.Skip("long: set REPRISE_TEST_LONG=1")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium in PATH: the page is not tried in a browser")
	return ""
}

// run lets the browser open the page and returns what it says of it.
func run(t *testing.T, browser, html string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + filepath.Join(dir, "profile"), "--window-size=1200,2400",
	}, flags...)
	out, err := exec.CommandContext(ctx, browser, append(args, "file://"+file)...).Output()
	if err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	return string(out)
}

var marks = regexp.MustCompile(`<body data-plots="(\d+)"(?: data-plots-drawn="(\d+)")?(?: data-errors="(\d+)")?`)

// drawn opens the page and returns how many plots the page has, how many were
// drawn, and how many errors the scripts counted ("" for none).
func drawn(t *testing.T, browser, html string) (plots, done, errs string) {
	t.Helper()
	m := marks.FindStringSubmatch(run(t, browser, html, "--dump-dom"))
	if m == nil {
		t.Fatal("the browser shows another page")
	}
	return m[1], m[2], m[3]
}

// edgeCases is a page of plots that are easy to draw wrongly.
func edgeCases() *Page {
	one := Series{X: []float64{5}, Y: []float64{7}}
	var plots []Plot
	for k := range Kind(len(kinds)) {
		for _, log := range []bool{false, true} {
			for _, s := range [][]Series{
				{one}, {one, one}, {{X: []float64{1, 2}, Y: []float64{0, 0}}}, {{X: []float64{1, 2, 3}, Y: []float64{-3, nan, -1}}},
				{{X: []float64{1e-90, 1e16}, Y: []float64{1e-90, 1e16}}}, {{X: []float64{1e15, 1e15 + 1}, Y: []float64{1e15, 1e15 + 1}}},
				{{X: []float64{0, 3, 5}, Y: []float64{1, 2, 3}}, {X: []float64{1, 3, 9}, Y: []float64{2, 3, 4}}}, {},
			} {
				plots = append(plots, Plot{Kind: k, LogX: log, LogY: log, XUnit: "s", Series: s})
			}
		}
	}
	p := &Page{Title: "Edge cases", Sections: []Section{{Plots: plots}}}
	for _, s := range hostile {
		p.Sections, p.Terms = append(p.Sections, everywhere(s).Sections...), append(p.Terms, everywhere(s).Terms...)
	}
	return p
}

func TestBrowserDrawsEveryPlot(t *testing.T) {
	path := browser(t)
	for name, p := range map[string]*Page{"demo": demo(), "edge cases": edgeCases()} {
		if plots, done, errs := drawn(t, path, render(t, p)); plots == "0" || done != plots || errs != "" {
			t.Errorf("%s: %q of %q plots drawn, errors %q", name, done, plots, errs)
		}
	}
}

// The policy is what stands between a hole in the escaping and a script that
// runs: neither another script nor a changed one may.
func TestBrowserRefusesOtherScripts(t *testing.T) {
	path := browser(t)
	html := render(t, demo())
	other := strings.Replace(html, "<main>", `<script>document.title = 'taken'</script><img src=x onerror="document.title = 'taken'"><main>`, 1)
	if out := run(t, path, other, "--dump-dom"); strings.Contains(out, "<title>taken") {
		t.Error("a foreign script ran")
	}
	changed := strings.Replace(html, "/* Draws the plots", "/* Draws no plots", 1)
	if changed == html {
		t.Fatal("nothing was changed")
	}
	if _, done, _ := drawn(t, path, changed); done != "" {
		t.Error("a changed script ran")
	}
}
