// Package ending says how an answer ended: for the client that waits for it, for the recorder
// that hands it on, for the readers of logs, which have only a record of it, and for
// the simulated server that gives it. None of them decides by itself what a success is.
//
//  1. [Finish] maps the finish reason of any provider onto a closed list, and [Status] the
//     word or HTTP status that a log has for the end of a request.
//  2. [OfFinish] says what a finish reason means for the request that has it.
//  3. [Answer] holds all that is known of one finished answer, and [Answer.Failure] whether it
//     failed, and in which way.
//
// It imports none of our packages, so that all of them may ask it.
//
// # Files
//
//   - finish.go: the finish reasons of providers and engines, and the words of logs
//   - answer.go: whether an answer succeeded
//
// Exported names may change in any release.
package ending
