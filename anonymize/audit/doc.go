// Package audit tries to break what Reprise writes. It holds the checks that a
// file must pass before it may leave the house, and it believes nothing that the
// file says of itself.
//
//  1. A [Case] is opened: the output to be judged, of any kind, and what the
//     judge has beside it: the source log, a trace of tier internal made of it,
//     strings that were planted in the source. An outsider has the output alone.
//  2. [Run] runs the [Checks] one by one. Those that need what is not there are
//     skipped, with the reason; each of the others gives a [Finding].
//  3. The [Result] names the rows it judged by their digest and the file by its
//     hash, and is written as JSON or for people.
//
// A check can refute and never prove: it fails when it found a way in, passes when
// it found none, and is inconclusive when it could not have found one. For every
// check the tests plant a bug that it must catch.
package audit
