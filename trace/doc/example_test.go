package doc_test

import (
	"bytes"
	"fmt"
	"strings"

	"reprise/trace/doc"
)

func ExampleDocument() {
	p := doc.Document{
		Title: "Profile of one hour",
		Facts: []doc.Fact{{Label: "Requests", Value: "4"}},
		Sections: []doc.Section{{
			Title: "Lengths",
			Notes: []doc.Note{{Level: doc.Warn, Text: "Four requests are few."}},
			Plots: []doc.Plot{{
				Title: "Prompt lengths", XLabel: "Input tokens", YLabel: "Requests", Kind: doc.Bars, LogX: true,
				Series: []doc.Series{{Name: "prompts", X: []float64{128, 256}, Hi: []float64{256, 512}, Y: []float64{3, 1}}},
			}},
		}},
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(b.String(), "<title>Profile of one hour</title>"))
	fmt.Println(strings.Contains(b.String(), `<body data-plots="1">`))
	// Output:
	// true
	// true
}
