// Package audit tries to break the privacy of what Reprise writes. It holds the
// checks that a file must pass before it may be released, and it believes nothing
// that the file says about itself.
//
//  1. A [Case] holds the output to judge, of any kind, and what the judge knows
//     besides: the source log, a trace of tier internal made from it, strings that
//     were planted in the source. An outsider has the output alone.
//  2. [Run] runs the [Checks] one by one. A check that lacks an input is skipped,
//     with the reason. Every other check returns a [Finding].
//  3. The [Result] identifies the rows by their digest and the file by its hash. It
//     is written as JSON, as text, or as a [Page].
//
// A check can refute a release and never prove one safe. It fails when it found a
// way to learn something, passes when it found none, and is inconclusive when it
// could not have found one. For every check the tests plant a bug that it must find.
package audit
