package profile

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"reprise/trace"
)

const (
	// topGroups is how many groups of a breakdown are listed.
	topGroups = 20
	// apartGroups is how many groups of a breakdown are distinguished, in the order
	// in which they appear; requests of any more are pooled. One that sends enough
	// to be among the first topGroups appears early.
	apartGroups = 1024
)

// A GroupReuse is the traffic and the reuse of one group of requests. The cache
// is the one that all requests go through: what another group left there counts
// as known.
type GroupReuse struct {
	// Name is that of the model or category, or the number of the client as the
	// trace has it. It is empty for requests that have none, and for the rest.
	Name   string       `json:"name"`
	Whole  TrafficReuse `json:"whole"`        // from an empty cache on
	Steady TrafficReuse `json:"steady_state"` // from the warm-up on
}

// GroupedReuse is the reuse by group, those with the most requests first.
type GroupedReuse struct {
	Distinct int64        `json:"distinct"` // groups with a name
	Groups   []GroupReuse `json:"groups"`   // at most 20
	Rest     *GroupReuse  `json:"rest"`     // all other groups; null without any
	Unnamed  *GroupReuse  `json:"unnamed"`  // requests that name no group; null without any
	// NotToldApart counts requests of groups that appeared after 1,024 others:
	// they are in the rest, however many they are.
	NotToldApart int64 `json:"requests_not_told_apart"`
}

// A breakdown gathers traffic by group. Memory: a trail for each of at most
// apartGroups groups, so 80 MB when all of them are active in every span of the
// epoch, and about 80 bytes for each request before they are.
type breakdown struct {
	names   []string
	groups  []*groupTrail // in the order in which they appear
	late    groupTrail    // groups after these
	unnamed groupTrail
}

// A groupTrail is a trail with the steady state of a warm-up that is given,
// for which it needs no spans.
type groupTrail struct {
	trail
	later traffic
}

func (g *groupTrail) add(at *moment, request *traffic) {
	if at.warmUp == nil {
		g.trail.add(&at.epoch, request)
		return
	}
	g.whole.add(request)
	if at.steady() {
		g.later.add(request)
	}
}

// A moment is the clock of a profile, and when its steady state begins.
type moment struct {
	epoch
	warmUp *time.Duration // nil is half of the duration
}

// steady tells whether a warm-up that is given has passed.
func (m *moment) steady() bool { return m.elapsed() >= uint64(max(*m.warmUp, 0)) }

// group returns the n-th group in the order in which they appear.
func (b *breakdown) group(n int, name func() string) *groupTrail {
	if n >= apartGroups {
		return &b.late
	}
	if n == len(b.groups) {
		b.groups, b.names = append(b.groups, &groupTrail{}), append(b.names, name())
	}
	return b.groups[n]
}

// totals are the traffic over the whole trace and from the warm-up on.
func (g *groupTrail) totals(at *moment) (whole, steady traffic) {
	if at.warmUp == nil {
		return g.whole, g.from(&at.epoch, at.middle())
	}
	return g.whole, g.later
}

func groupReuse(name string, whole, steady traffic) GroupReuse {
	return GroupReuse{name, whole.summary(), steady.summary()}
}

// summary lists the largest of the distinct groups, or returns nil
// when no request named one.
func (b *breakdown) summary(at *moment, distinct int) *GroupedReuse {
	if distinct == 0 {
		return nil
	}
	order := make([]int, len(b.groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Compare(b.groups[j].whole.load, b.groups[i].whole.load)
	})
	s := &GroupedReuse{Distinct: int64(distinct), NotToldApart: b.late.whole.load}
	restWhole, restSteady := b.late.totals(at)
	for i, n := range order {
		whole, steady := b.groups[n].totals(at)
		if i < topGroups {
			s.Groups = append(s.Groups, groupReuse(b.names[n], whole, steady))
			continue
		}
		restWhole.add(&whole)
		restSteady.add(&steady)
	}
	if restWhole.load > 0 {
		s.Rest = trace.Ptr(groupReuse("", restWhole, restSteady))
	}
	if b.unnamed.whole.load > 0 {
		whole, steady := b.unnamed.totals(at)
		s.Unnamed = trace.Ptr(groupReuse("", whole, steady))
	}
	return s
}

// breakdowns are the groups that a profile tells apart.
type breakdowns struct {
	category, model, client breakdown
	categories, models      map[string]int
	clients                 trace.Renumber // 8 bytes for each client
}

// add takes a row at the clock of at.
func (b *breakdowns) add(at *moment, r *trace.Request, request *traffic) {
	b.category.named(&b.categories, r.Category).add(at, request)
	b.model.named(&b.models, r.Model).add(at, request)
	client := &b.client.unnamed
	if r.User != nil {
		client = b.client.group(int(b.clients.ID(uint64(*r.User))),
			func() string { return strconv.FormatInt(*r.User, 10) })
	}
	client.add(at, request)
}

// named returns the group of a name, whose number it keeps.
func (b *breakdown) named(numbers *map[string]int, name string) *groupTrail {
	if name == "" {
		return &b.unnamed
	}
	n, ok := (*numbers)[name]
	if !ok {
		if *numbers == nil {
			*numbers = map[string]int{}
		}
		n = len(*numbers)
		(*numbers)[name] = n
	}
	return b.group(n, func() string { return name })
}
