package main

import (
	"math/rand/v2"
	"strings"
)

// The words of the grammar. A letter in a template stands for a draw from one
// of these lists: N noun, A adjective, V verb, P place, T time.
var words = map[rune][]string{
	'N': strings.Fields(`lantern ledger kettle anchor bicycle parcel orchard ladder compass window blanket notebook
		ferry kitchen harbour garden bridge market workshop invoice ticket engine battery printer antenna sensor valve
		pump filter basket saddle wheel chain helmet pedal label crate pallet shelf counter receipt voucher calendar
		schedule report meter cable switch fuse hinge drawer carpet curtain mirror bucket hose rake shovel seed`),
	'A': strings.Fields(`quiet broken heavy narrow wooden late blue small spare missing damp bright loose rusty empty
		warm cold steady early double plain sturdy faulty clean dusty gentle sharp hollow round uneven`),
	'V': strings.Fields(`repair return replace order measure paint carry store clean adjust label deliver cancel renew
		inspect connect tighten fold move open close lift count mark seal sort weigh wrap charge reset`),
	'P': strings.Fields(`upstairs outside downstairs abroad nearby indoors underground elsewhere`),
	'T': strings.Fields(`today tomorrow yesterday tonight soon later again now`),
}

var statements = []string{
	"The A N has to be moved before you V the N.",
	"Most people V the N first and only then look at the A N.",
	"If the N is A, it helps to V it T.",
	"Our team keeps a A N next to the N, and we V both every week.",
	"There is no need to V the A N unless the N becomes A.",
	"A N that was stored P will usually stay A for a few days.",
	"You can V the N P, but the N should stay where it is.",
	"First V the N, then V the A N, and finally check that the N is not A.",
	"The N and the N arrived T, though one of them was A.",
	"When in doubt, V the N once more and write down what happened.",
	"A A N costs more than a A one, yet it lasts longer.",
	"Nobody had expected the N to be so A after such a short time.",
}

var questions = []string{
	"How do I V the N when the N is A?",
	"Can you tell me why my A N is still A?",
	"What should I V first, the N or the A N?",
	"Is it safe to V a A N P?",
	"Could somebody V the N T, please?",
	"Which N do you recommend for a A N?",
	"What does it mean if the N turns A T?",
	"Do I have to V the N before I V the N?",
}

// A writer writes English-like text.
type writer struct{ *rand.Rand }

// sentence fills the letters of one of the templates.
func (w writer) sentence(templates []string) string {
	var out []string
	for i, t := range strings.Fields(templates[w.IntN(len(templates))]) {
		letter := rune(t[0])
		if list := words[letter]; list != nil && (len(t) == 1 || !(t[1] >= 'a' && t[1] <= 'z')) && (t != "A" || i > 0) {
			t = list[w.IntN(len(list))] + t[1:]
		}
		if i > 0 && strings.EqualFold(out[i-1], "a") && strings.Contains("aeiou", t[:1]) {
			out[i-1] += "n"
		}
		out = append(out, t)
	}
	return strings.Join(out, " ")
}

// text writes sentences until they have at least n words.
func (w writer) text(templates []string, n int) string {
	var b strings.Builder
	for have, sentence := 0, 0; have < n; sentence++ {
		s := w.sentence(templates)
		have += strings.Count(s, " ") + 1
		switch {
		case sentence == 0:
		case sentence%6 == 0:
			b.WriteString("\n\n")
		default:
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return b.String()
}
