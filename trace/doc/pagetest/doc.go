// Package pagetest opens pages in a headless Chromium, for tests. Without a Chromium the
// tests that ask for one skip, and say so.
//
//  1. [Open] starts the browser with a profile of its own, and speaks its DevTools protocol
//     over two pipes, so that no port is opened.
//  2. [Browser.Show] loads a page at a width, a height and a colour scheme, and says what
//     is on it: how wide it is, whether its plots were drawn, and where elements are.
//  3. [Screen.Screenshot] keeps what it looks like among the artifacts of the test: go
//     test -artifacts -outputdir DIR writes them to DIR.
//
// [FirstScreen] is what every page of a report has to keep to, on screens and on paper;
// [Readable] is the part of it that needs no browser.
//
// # Files
//
//   - browser.go: the browser: starting it, its protocol, pages in it
//   - screens.go: what every page keeps to, at the usual sizes, in both colour schemes, and in print
//
// Exported names may change in any release.
package pagetest
