// Package h1 is an HTTP/1.1 client for the hot path of a replay: many long streams,
// each request sent at its instant, and no request sent twice.
//
//  1. A [Client] holds connections to one server and dials them ahead of need, as
//     many as requests are expected and were lately needed. It checks the idle ones,
//     and replaces one that its server closed before a request needs it.
//  2. The caller serialises a request, head and body in one slice. [Client.Start]
//     writes it to a ready connection, in one write and without waiting; [Client.Do]
//     dials when no connection is ready.
//  3. [Exchange.Await] reads the head of the answer, strictly and within a bound. A
//     [Response] is its body: chunked, by length, or until the connection ends. It is
//     decoded in the caller's own buffer.
//  4. [Readers] read the answers for all who wait, and stamp what they read. Whoever waits
//     is woken for the head, for the end, and now and then between: on two cores, 20
//     requests/s of 100 tokens take a replay 1.6 s of CPU time instead of 2.6, and waking
//     a goroutine for each event was most of the difference.
//  5. After the answer the connection is kept or closed, as [Keep] says. Some servers
//     promise to keep connections and close them. To find them out without losing a
//     request, no connection is used again until one has outlived its answer.
//
// A request fails with [ErrStale] when its kept connection ended without a byte of an
// answer. The caller decides whether to send it again; this package never does.
//
// net/http was measured at 16,000 streams: it takes 32 KB for each stream and this
// package 11 KB, 60 allocations for a request against 7, and it hands a request through
// two goroutines before it is written. This package leaves out what a replay does not
// need: redirects, cookies, compression, proxies, HTTP/2.
//
// # Files
//
//   - client.go: the Client's options and counts; how it dials
//   - pool.go: which connection a request gets, dialling ahead of need, checks of idle
//     connections, Close
//   - ports.go: waiting while the system has no local port left
//   - exchange.go: writing a request, waiting for its answer, reading the body, and
//     giving the connection back
//   - head.go: parsing status line and header; how long the body is; valid header names
//     and values
//   - chunks.go: decoding a chunked body
//   - errors.go: stale connections, malformed answers, TLS handshakes that fail
//   - socket.go, socket_unix.go, socket_other.go: asking a socket without waiting, by
//     system
//   - reader_linux.go, reader_other.go: reading for many connections, with the kernel's
//     receive timestamps
//   - feed_linux.go: a connection that is read so
//   - reader_race_linux.go, reader_norace_linux.go: such reads, for the race detector
package h1
