package report

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
	"reprise/trace/textpage"
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

// Whatever the column, each request is in one group of it, and the figures of a group are those that the test
// computes from its requests alone.
func TestGroupsOfEveryColumn(t *testing.T) {
	rows := messy(rand.New(rand.NewPCG(5, 5)), 2000)
	for i := range rows {
		rows[i].User, rows[i].Adapter = trace.Ptr(int64(i%7)), []string{"", "sql", "summary"}[i%3]
		rows[i].HTTPStatus = trace.Ptr(int32(200 + 200*(i%2)))
	}
	s := summarise(t, result.Run{}, Options{By: ColumnNames()}, rows...)
	if len(s.Groups) != len(ColumnNames()) {
		t.Fatalf("%d groupings of %d columns", len(s.Groups), len(ColumnNames()))
	}
	for _, of := range s.Groups {
		var n, failed int64
		for _, g := range of.Each {
			n, failed = n+g.Rows, failed+g.Failed
		}
		if of.LeftOut == 0 && (n != s.Requests.Rows || failed != s.Requests.Failed) {
			t.Errorf("by %s: %d rows, %d failed, of %d and %d", of.By, n, failed, s.Requests.Rows, s.Requests.Failed)
		}
	}

	for at, value := range map[int]func(*result.Result) string{0: func(r *result.Result) string {
		return strconv.FormatInt(*r.User, 10)
	}, 1: func(r *result.Result) string { return r.Adapter }} {
		ttft, output := map[string][]float64{}, map[string]int64{}
		for i := range rows {
			r := &rows[i]
			if r.Error != "" || r.SentNS == nil || r.DoneNS == nil {
				continue
			}
			if r.Output != nil {
				output[value(r)] += int64(*r.Output)
			}
			if r.FirstTokenNS != nil {
				ttft[value(r)] = append(ttft[value(r)], float64(*r.FirstTokenNS-*r.SentNS)/1e6)
			}
		}
		for _, g := range s.Groups[at].Each {
			name := ""
			if g.Value != nil {
				name = *g.Value
			}
			sort.Float64s(ttft[name])
			near(t, name, g.TTFTP50, quantile(ttft[name], .5), 1e-6)
			near(t, name, g.TTFTP99, quantile(ttft[name], .99), 1e-6)
			if g.TTFTCount != int64(len(ttft[name])) || g.Output != output[name] {
				t.Errorf("%s %q: %d times of %d, %d output tokens of %d", s.Groups[at].By, name, g.TTFTCount, len(ttft[name]),
					g.Output, output[name])
			}
		}
	}

	var text, data bytes.Buffer
	if err := errors.Join(Page(s).WriteText(&text, textpage.Options{Width: 80}), WriteCSV(&data, s)); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	if !strings.Contains(data.String(), "\ngroups.each.ttft,by=adapter value=none,ms,p99,") {
		t.Error("the CSV does not tell groups apart")
	}
}

func TestUnknownColumn(t *testing.T) {
	_, err := FindColumn("usr")
	if err == nil || !strings.Contains(err.Error(), "nearest is user: want one of user, adapter,") {
		t.Errorf("%v", err)
	}
	if c, err := FindColumn("Kind"); err != nil || c.Name != "api" {
		t.Errorf("%v, %v", c, err)
	}
}
