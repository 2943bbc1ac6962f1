// Package crash ends the program in words when a goroutine panics. Go ends it with exit code 2, which
// users know as a mistake of theirs, and prints what panicked, which may hold text of a prompt.
//
// Every goroutine of the program defers [Caught] first, which the linter checks, and the program says
// once by [Handle] how it ends. Like package os/signal, this package speaks of the whole process:
// its one variable is that function.
package crash

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
)

var handler atomic.Pointer[func(words string)]

// Handle sets what is called with the words about a panic, in the goroutine that panicked: it should
// print them and end the process. If it returns, or is not set, the panic goes on.
func Handle(end func(words string)) { handler.Store(&end) }

// Caught is deferred by a goroutine before anything else: it hands a panic to the function of [Handle].
func Caught() {
	panicked := recover()
	if panicked == nil {
		return
	}
	if end := handler.Load(); end != nil {
		(*end)(Words(panicked))
	}
	panic(panicked)
}

// Words says what a recovered panic was and where it began. What the program's own panics say is left
// out, since it may hold text of a file; what the runtime says of an index or a division is kept.
// It must be called by the function that recovered, or by one that this function calls.
func Words(panicked any) string {
	what := fmt.Sprintf("%T", panicked)
	if _, ok := panicked.(runtime.Error); ok {
		what = fmt.Sprint(panicked)
	}
	return place() + ": " + what
}

// place is the innermost function that the panic went through, and the line.
func place() string {
	calls := make([]uintptr, 64)
	frames := runtime.CallersFrames(calls[:runtime.Callers(2, calls)])
	panicked := false
	for {
		frame, more := frames.Next()
		if panicked && !strings.HasPrefix(frame.Function, "runtime.") {
			return fmt.Sprintf("%s, line %d", frame.Function, frame.Line)
		}
		if panicked = panicked || frame.Function == "runtime.gopanic"; !more {
			return "a place that is not known"
		}
	}
}
