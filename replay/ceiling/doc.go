// Package ceiling measures how much load this machine can send: requests and events per
// second, and streams at once.
//
// [Measure] replays against a server in the same process, over loopback, with the runner
// and the client of a replay, as fast as these go. The server shares the cores, so that
// with a server elsewhere the machine can do somewhat more. [Save] keeps the result for
// later runs, and [Saved] finds it: [Ceiling.Warning] says when a load is too much.
//
// # Files
//
//   - ceiling.go: the Ceiling, its measurement, and what share of it a load takes
//   - server.go: the server: canned answers of one token, or of many, one a millisecond
//   - saved.go: the Ceiling in the user's cache directory
//
// Exported names may change in any release.
package ceiling
