package h1

import (
	"errors"

	"reprise/replay/openai"
)

// ErrStale says that a request died on a connection that had been kept, idle or
// after another answer, without a byte of an answer. Most likely the server had
// closed it and never saw the request, which is the one failure after which sending
// again is customary; it is no proof. The error of the connection is wrapped with it.
var ErrStale = errors.New("the server closed a kept-alive connection before it answered")

// A protocolError reports an answer that is not the HTTP/1.1 that this package accepts.
// It has the class stream_error of package openai, and quotes nothing of the answer.
type protocolError struct{ What string }

// Error implements error.
func (e *protocolError) Error() string { return "h1: the server's answer: " + e.What }

// Unwrap returns an error of the class.
func (e *protocolError) Unwrap() error { return &openai.StreamError{Kind: openai.KindStream} }

func malformed(what string) error { return &protocolError{what} }

// A handshakeError is of the class tls, for every cause.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "h1: TLS handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() []error {
	return []error{&openai.StreamError{Kind: openai.KindTLS}, e.err}
}
