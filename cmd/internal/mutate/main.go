// Command mutate plants faults in a package, one at a time, and says which of them
// its tests do not notice.
//
//	mutate -n 40 -seed 1 ./anonymize/dp ./replay/...
//
// A mutant is the package with one small change at a place drawn at random: a bound
// moved by one, a comparison turned round, && for ||, a condition negated, + for -, a
// statement left out, a result dropped. The tests of the mutant's own package run
// against it, through an overlay: the working tree stays as it is. A mutant that
// fails a test or runs into the time limit is killed; one that does not compile is
// drawn again. Survivors are printed with their place and change, and each is either
// a missing test or an equivalent mutant, which changes nothing that can be seen.
//
// With -with, the tests of further packages are asked about the mutants that the own
// tests do not notice. With -again FILE, which holds the output of an earlier run, only
// its survivors are tested again.
//
// Long tests run too where REPRISE_TEST_LONG is set. Exit code 1 says that a smaller
// share of the mutants than -least was killed.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 20, "mutants to try")
	seed := flag.Uint64("seed", 1, "seed of the draw")
	limit := flag.Duration("timeout", 2*time.Minute, "time for the tests of one mutant")
	least := flag.Float64("least", 0.9, "share of mutants that must be killed")
	with := flag.String("with", "", "packages, in one string, whose tests also run against survivors")
	again := flag.String("again", "", "output of an earlier run, whose survivors alone are tested")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutate [flags] PACKAGE...")
		os.Exit(2)
	}
	places, err := mutationsOf(flag.Args())
	if err != nil || len(places) == 0 {
		fmt.Fprintln(os.Stderr, "mutate: nothing to mutate:", err)
		os.Exit(2)
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	if *again != "" {
		said, err := os.ReadFile(*again)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(2)
		}
		places = slices.DeleteFunc(places, func(m mutation) bool { return !strings.Contains(string(said), m.line(survived)) })
	}
	tried, killed := 0, 0
	for _, m := range places {
		if tried == *n {
			break
		}
		outcome, err := m.test(*limit, strings.Fields(*with))
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(2)
		}
		if outcome == notBuilt {
			continue
		}
		tried++
		if outcome != survived {
			killed++
		}
		fmt.Print(m.line(outcome))
	}
	fmt.Printf("%d of %d mutants killed (%d places)\n", killed, tried, len(places))
	if float64(killed) < *least*float64(tried) {
		os.Exit(1)
	}
}
