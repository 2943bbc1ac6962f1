package page_test

import (
	"bytes"
	"fmt"
	"strings"

	"reprise/trace/page"
)

func ExamplePage() {
	p := page.Page{
		Title: "Profile of one hour",
		Facts: []page.Fact{{Label: "Requests", Value: "4"}},
		Sections: []page.Section{{
			Title: "Lengths",
			Notes: []page.Note{{Level: page.Warn, Text: "Four requests are few."}},
			Plots: []page.Plot{{
				Title: "Prompt lengths", XLabel: "Input tokens", YLabel: "Requests", Kind: page.Bars, LogX: true,
				Series: []page.Series{{Name: "prompts", X: []float64{128, 256}, Hi: []float64{256, 512}, Y: []float64{3, 1}}},
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
