package profile

import (
	"fmt"

	"reprise/trace/page"
)

func (h *sheet) prefixes() page.Section {
	if h.Prefixes == nil {
		return page.Section{}
	}
	s := page.Section{Title: "Top prefixes", Text: h.sayPrefixes()}
	for _, list := range []struct {
		by       string
		prefixes []Prefix
	}{{"by how many requests begin with them", h.Prefixes.ByRequests}, {"by the tokens that no shorter prefix saves", h.Prefixes.BySaved}} {
		if len(list.prefixes) == 0 {
			continue
		}
		t := page.Table{Caption: "Prefixes " + list.by, Align: []page.Align{page.Right},
			Head: []string{"last block", "blocks", "tokens", "requests", "of requests", "saved tokens", "its own", "of hit tokens"}}
		for _, p := range list.prefixes {
			t.Rows = append(t.Rows, []string{page.Count(p.LastBlock), page.Count(p.DepthBlocks), page.Count(p.DepthTokens), page.Count(p.Requests),
				page.OrDash(p.RequestShare, page.Percent), page.Count(p.SavedTokens), page.Count(p.OwnSavedTokens), page.OrDash(p.OwnShare, page.Percent)})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

func (h *sheet) sayPrefixes() []string {
	var says []string
	if list := h.Prefixes.ByRequests; len(list) > 0 {
		says = append(says, fmt.Sprintf("The prefix that most requests begin with is %s long and begins %s of them, %s (requests).",
			page.Many(list[0].DepthTokens, "token"), page.Count(list[0].Requests), page.OrDash(list[0].RequestShare, page.Percent)))
	}
	var saved float64
	for _, p := range h.Prefixes.BySaved {
		if p.OwnShare != nil {
			saved += *p.OwnShare
		}
	}
	if saved > 0 {
		says = append(says, fmt.Sprintf("Those that save most bring %s of all hit tokens together (its own): keeping them in the cache for good is worth no more than that.", page.Percent(saved)))
	}
	return says
}
