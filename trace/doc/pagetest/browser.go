package pagetest

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"reprise/trace/longtest"
)

// A Browser is a headless Chromium with one tab.
type Browser struct {
	t       testing.TB
	to      io.Writer
	from    *bufio.Reader
	calls   int
	session string // of the tab
	dir     string
}

// Open starts a Chromium that ends with the test, or skips the test where there is none, and
// where tests do not take long.
func Open(t testing.TB) *Browser {
	t.Helper()
	longtest.Skip(t)
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" || runtime.GOOS == "windows" { // whose processes inherit no pipes
		t.Skip("no chromium in PATH: the page is not tried in a browser")
	}
	b := &Browser{t: t, dir: t.TempDir()}
	toRead, toWrite := pipe(t)
	fromRead, fromWrite := pipe(t)
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--hide-scrollbars", "--user-data-dir="+
			filepath.Join(b.dir, "profile"), "--remote-debugging-pipe")
	cmd.ExtraFiles = []*os.File{toRead, fromWrite} // which the browser knows as 3 and 4
	if err := cmd.Start(); err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	// The deadline of the pipe bounds every call.
	err := errors.Join(toRead.Close(), fromWrite.Close(), fromRead.SetReadDeadline(time.Now().Add(3*time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = toWrite.Close() // which ends it
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		timer.Stop()
		_ = fromRead.Close()
	})
	b.to, b.from = toWrite, bufio.NewReader(fromRead)
	var target struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		t.Skipf("the browser does not run here: %v", err)
	}
	var session struct{ SessionID string }
	b.must("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	return b
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func (b *Browser) must(method string, params map[string]any, into any) {
	b.t.Helper()
	if err := b.call(method, params, into); err != nil {
		b.t.Fatal(err)
	}
}

// call sends a command and waits for its answer. Messages end with a zero byte.
func (b *Browser) call(method string, params map[string]any, into any) error {
	b.calls++
	message := map[string]any{"id": b.calls, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &answer); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		switch {
		case answer.ID != b.calls: // an event
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case into != nil:
			return json.Unmarshal(answer.Result, into)
		default:
			return nil
		}
	}
}

// eval gives the value of an expression, which is JSON.
func (b *Browser) eval(expression string, into any) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value string }
		ExceptionDetails *struct{ Text string }
	}
	b.must("Runtime.evaluate", map[string]any{"expression": "JSON.stringify(" + expression + ")"}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Text)
	}
	if err := json.Unmarshal([]byte(answer.Result.Value), into); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// A Screen is a page as the browser shows it.
type Screen struct {
	b     *Browser
	Width int // of the whole page, beyond the window where it runs off

	// numbers of the plots on the page, of those that were drawn, and of errors of the scripts
	Plots, Drawn, Errors string
}

// Show loads a page in a window of so many pixels, in the colour scheme light or dark.
func (b *Browser) Show(html []byte, width, height int, scheme string) *Screen {
	b.t.Helper()
	file := filepath.Join(b.dir, "page.html")
	if err := os.WriteFile(file, html, 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.must("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.must("Emulation.setEmulatedMedia",
		map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}},
		nil)
	b.must("Page.navigate", map[string]any{"url": "about:blank"}, nil)
	b.must("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	s := &Screen{b: b}
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		// Plots are drawn before a page is complete; a script that the policy refuses draws none.
		var now struct {
			Ready, URL, Plots, Drawn, Errors string
			Width                            int
		}
		b.eval(`{ready: document.readyState, url: location.protocol, plots: document.body?.dataset.plots || '0', drawn: document.body?.dataset.plotsDrawn || '0',
			errors: document.body?.dataset.errors || '', width: document.documentElement?.scrollWidth || 0}`, &now)
		s.Plots, s.Drawn, s.Errors, s.Width = now.Plots, now.Drawn, now.Errors, now.Width
		loaded := now.URL == "file:" && now.Ready == "complete"
		if loaded && now.Plots == now.Drawn || time.Since(begin) > 5*time.Second && loaded ||
			time.Since(begin) > time.Minute {
			return s
		}
	}
}

// printed is the width of the text on a sheet of A4, in pixels.
const printed = 688

// Print loads a page as it goes to paper.
func (b *Browser) Print(html []byte) *Screen {
	b.t.Helper()
	s := b.Show(html, printed, 970, "dark") // a reader's dark scheme does not go to paper
	b.must("Emulation.setEmulatedMedia", map[string]any{"media": "print",
		"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
	var now struct{ Drawn, Errors string }
	b.eval(`(dispatchEvent(new Event('beforeprint')), {drawn: document.body.dataset.plotsDrawn || '0', errors: document.body.dataset.errors || ''})`, &now)
	s.Drawn, s.Errors = now.Drawn, now.Errors
	return s
}

// A Box is where an element is, in pixels from the top left of the page.
type Box struct{ Left, Top, Right, Bottom float64 }

// Boxes are those of the elements that a CSS selector finds.
func (s *Screen) Boxes(selector string) (boxes []Box) {
	s.b.t.Helper()
	name, err := json.Marshal(selector)
	if err != nil {
		s.b.t.Fatal(err)
	}
	s.b.eval(`[...document.querySelectorAll(`+string(name)+`)].map(e => { const r = e.getBoundingClientRect();
		return {left: r.left + scrollX, top: r.top + scrollY, right: r.right + scrollX, bottom: r.bottom + scrollY}; })`, &boxes)
	return boxes
}

// Text is that of the first element that a CSS selector finds, "" without one.
func (s *Screen) Text(selector string) (text string) {
	s.b.t.Helper()
	name, err := json.Marshal(selector)
	if err != nil {
		s.b.t.Fatal(err)
	}
	s.b.eval(`document.querySelector(`+string(name)+`)?.innerText || ''`, &text)
	return text
}

// Screenshot keeps what is in the window as NAME.png.
func (s *Screen) Screenshot(name string) {
	s.b.t.Helper()
	var shot struct{ Data string }
	s.b.must("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.b.t.ArtifactDir(), name+".png"), png, 0o644)
	}
	if err != nil {
		s.b.t.Fatal(err)
	}
}
