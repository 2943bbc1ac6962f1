package report

import (
	"testing"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// What is kept of a column is bounded: requests of further values are one group, which is the last.
func TestGroupsAreBounded(t *testing.T) {
	var rows []result.Result
	for i := range int64(maxGroups + 10) {
		r := resulttest.Answer(i, i, 0, 5, 9)
		r.User = trace.Ptr(i)
		rows = append(rows, r)
	}
	s := summarise(t, result.Run{}, Options{By: []string{"user"}}, rows...)
	g := newGroupings(&result.Run{}, &Options{By: []string{"user"}}, 0)
	for i := range rows {
		g.put(&rows[i], Succeeded)
	}
	all := g.user.summary(maxGroups+10, true, false)
	if last := all.Each[len(all.Each)-1]; len(all.Each) != maxGroups+1 || last.Rows != 10 || *last.Value != "(others)" {
		t.Errorf("%d groups, the last %+v", len(all.Each), last)
	}
	if of := s.Groups[0]; of.Groups != maxGroups+1 || len(of.Each) != listedGroups || of.LeftOut != maxGroups+1-listedGroups {
		t.Errorf("%d groups, %d listed, %d left out", of.Groups, len(of.Each), of.LeftOut)
	}
	if s.Tenants.Left != 10 || s.Tenants.Tenants != maxGroups {
		t.Errorf("%d tenants, %d requests left", s.Tenants.Tenants, s.Tenants.Left)
	}
}
