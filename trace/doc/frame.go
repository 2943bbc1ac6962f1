package doc

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"sync"
)

//go:embed assets
var assets embed.FS

// A shell is what all pages share: the template, the styles, the script, and the
// policy that admits only these.
type shell struct {
	page      *template.Template
	style     template.CSS
	plotStyle template.CSS // this and the script only where there are plots
	script    template.JS
	policy    string
}

// frame is built when the first page is written, not when the program starts:
// most commands write none.
var frame = sync.OnceValues(func() (*shell, error) {
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	style, err := join("assets/page.css")
	if err != nil {
		return nil, err
	}
	plotStyle, err := join("assets/uplot.min.css", "assets/plot.css")
	if err != nil {
		return nil, err
	}
	licence, err := assets.ReadFile("assets/uplot.LICENSE")
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	script, err := join("assets/before.js", "assets/uplot.iife.min.js", "assets/page.js")
	if err != nil {
		return nil, err
	}
	script = fmt.Sprintf("/*!\nThe plots are drawn by uPlot 1.6.32.\n\n%s\n*/\n%s", bytes.TrimSpace(licence), script)
	return &shell{
		page:      t,
		style:     template.CSS(style),
		plotStyle: template.CSS(plotStyle),
		script:    template.JS(script),
		policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s' '%s'; img-src data:; base-uri "+
			"'none'; form-action 'none'",
			digest(script), digest(style), digest(plotStyle)),
	}, nil
})

// join returns the files one after the other.
func join(names ...string) (string, error) {
	var b bytes.Buffer
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("page: %w", err)
		}
		b.Write(text)
		if !bytes.HasSuffix(text, []byte("\n")) {
			b.WriteByte('\n')
		}
	}
	return b.String(), nil
}

// digest is a source expression of Content Security Policy level 2 that admits
// an inline element by its content.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Write writes the page as one HTML file, in one call of w.Write. The same page
// gives the same bytes. A page that contradicts itself (no title, ragged rows,
// series of unequal lengths, an unknown kind, level, alignment or term) is an
// error, and nothing is written.
func (p *Document) Write(w io.Writer) error {
	v, err := newView(p)
	if err != nil {
		return err
	}
	f, err := frame()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = f.page.Execute(&b, struct {
		*view
		Style, PlotStyle template.CSS
		Script           template.JS
		Policy           string
	}{v, f.style, f.plotStyle, f.script, f.policy})
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
