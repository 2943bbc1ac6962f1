package runs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/check"
	"reprise/replay/client"
	"reprise/replay/openai"
	"reprise/trace/token"
)

// untilFree calls ask until the server is no longer full or starting, and says on stderr
// what it waits for: 1, 2, 4, 8 and 16 s, 31 s in all.
func untilFree(cmd *cobra.Command, ask func() error) error {
	for wait := time.Second; wait <= 16*time.Second; wait *= 2 {
		err := ask()
		e, ok := errors.AsType[*client.SetupError](err)
		if !ok || e.Kind != openai.KindRateLimited && e.Kind != openai.KindUnavailable {
			return err
		}
		cli.Notef(cmd, "endpoint: %s; trying again in %v",
			map[bool]string{true: e.Kind, false: fmt.Sprintf("HTTP %d", e.Status)}[e.Status == 0], wait)
		select {
		case <-time.After(wait):
		case <-cmd.Context().Done():
			return err
		}
	}
	return ask()
}

// beforeLoad is how long all that is asked before a load may take together, unless a single
// request may take longer.
const beforeLoad = 10 * time.Minute

// withinLimit calls ask, which asks the servers what they are, in a time that is limited as a
// whole, since each of many requests may take as long as a request of the load. What ask waits
// for with the consent of its user, ready, comes on top.
func withinLimit(cmd *cobra.Command, t *flags.Target, ready time.Duration, ask func() error) error {
	limit := max(beforeLoad, t.Timeout) + ready
	before := cmd.Context()
	ctx, cancel := context.WithTimeout(before, limit)
	defer cancel()
	cmd.SetContext(ctx)
	defer cmd.SetContext(before)

	err := ask()
	if err != nil && ctx.Err() != nil && before.Err() == nil {
		err = fmt.Errorf("%s was asked what it is for %v, and the answers were not all there: nothing was measured. "+
			"See whether the server hangs or answers without end. If it is only slow, allow a longer --timeout",
			strings.Join(t.URLs, ", "), limit)
	}
	return err
}

// advised adds to why a server cannot be used what to do next.
func advised(err error, t *flags.Target) error {
	e, ok := errors.AsType[*client.SetupError](err)
	if !ok {
		return err
	}
	next := ""
	var unencrypted tls.RecordHeaderError
	var unknown *net.DNSError
	var dial *net.OpError
	switch from, kept := t.KeyFrom(); {
	case len(e.Models) > 0 && e.Model == "":
		next = fmt.Sprintf("Name one with --model: %s", strings.Join(e.Models, ", "))
	case len(e.Models) > 0:
		next = fmt.Sprintf("The server has no model %q. It has: %s. Name one with --model", e.Model,
			strings.Join(e.Models, ", "))
	case e.Other != "":
		next = fmt.Sprintf("The server has no %s API, but has %s: use --api %s", e.API, e.Other, e.Other)
	case e.Kind == openai.KindAuth && kept:
		next = flags.DefaultKeyEnv + " is set, but is not sent unencrypted over a network. Use https, or " +
			"--api-key-env " + flags.DefaultKeyEnv + " to send it all the same"
	case e.Kind == openai.KindAuth && from != "":
		next = fmt.Sprintf("The key from %s was sent and refused. --api-key-env names another variable", from)
	case e.Kind == openai.KindAuth:
		next = "Set " + flags.DefaultKeyEnv + " to the API key, or name another variable with --api-key-env"
	case errors.Is(err, openai.ErrOverlong):
		next = "One token was asked for. The server, or another program at this path, does not keep to the request, " +
			"so nothing can be measured there"
	case errors.Is(err, context.DeadlineExceeded) && e.Kind == openai.KindTimeout && !strings.HasPrefix(e.Asked, "GET"):
		next = "One token was asked for. See whether the server hangs, or has a long queue: --timeout says how long " +
			"a request may take"
	case errors.Is(err, context.DeadlineExceeded) && e.Kind == openai.KindTimeout:
		next = "See whether the server hangs. If it lists no models, pass --model, so that it is not asked"
	case errors.As(err, &unencrypted):
		next = "The server does not speak TLS at this port: write http:// in --url"
	case e.Kind == openai.KindTLS:
		next = "If the certificate is your own, trust its authority with --set tls-ca=FILE, or skip the check with " +
			"--set tls-insecure"
	case errors.As(err, &dial) && dial.Op == "proxyconnect":
		next = "The proxy did not answer, and the server was not asked. --set proxy=none goes without it, as do " +
			"hosts in NO_PROXY"
	case errors.As(err, &unknown):
		next = "Host not found: check the spelling of --url, and the network or VPN that it is in"
	case e.Kind == openai.KindConnect:
		next = "Check that the server runs and that --url names it"
	case e.Status == http.StatusBadRequest && strings.HasPrefix(e.Asked, "GET http://"):
		next = "If the server speaks TLS at this port, write https:// in --url"
	case e.Unknown && e.Model != "":
		next = fmt.Sprintf("The server does not know the model %q: name another with --model", e.Model)
	case e.Status == http.StatusNotFound && e.API != "" && e.Listed:
		next = "The server lists its models, but has no completions, chat or responses API below the path of --url"
	case e.Status == http.StatusNotFound && e.API != "":
		next = "Check the path of --url. It may be the whole URL of an API, such as " +
			"https://host/openai/chat/completions?api-version=1, which is then used as it is"
	case e.Status == http.StatusNotFound, e.Failure != nil && e.Kind == openai.KindOther && e.API == "":
		next = "If the server lists no models, pass --model. Else check the path of --url: models are listed below it"
	case e.Kind == openai.KindRedirect:
		next = "No redirect is followed, since each would add a round trip to the time to the first token: write the " +
			"address that it leads to in --url"
	case e.Kind == openai.KindCompressed:
		next = "A compressor holds tokens back until it has enough of them: switch compression off for this path at " +
			"the gateway"
	case e.Failure != nil && e.API != "" && (e.Kind == openai.KindIncomplete || e.Kind == openai.KindStream ||
		e.Kind == openai.KindNotStreamed):
		next = "Every token is timed as it comes, so the server must send a stream (SSE). Check the path of --url, " +
			"and whether a gateway switches streams off"
	case e.Status == http.StatusInternalServerError:
		next = "The server failed at a request of one token: its log says why"
	case e.Kind == openai.KindRateLimited || e.Kind == openai.KindUnavailable:
		next = "The server is full or still starting. Try again, or wait for it with --ready-check-timeout-sec 300"
	default:
		return err
	}
	return fmt.Errorf("%w\n%s", err, next+".")
}

// Checked is how a server is reached that is to be checked against a tokenizer: with the
// headers and the key of requests. closing drops the connections.
func Checked(cmd *cobra.Command, t *flags.Target, tok *token.Encoding) (o check.Options, closing func(), err error) {
	options, err := t.Options()
	if err != nil {
		return o, nil, err
	}
	options.Connections = client.Pooled
	options.Retries, options.Backoff = 4, 500*time.Millisecond // nothing is timed that counts
	options.Count = func(text string) int { return len(tok.Append(nil, text)) }
	if from, _ := t.KeyFrom(); from == flags.DefaultKeyEnv {
		cli.Notef(cmd, "endpoint: the API key is from %s", from)
	}
	if o.Endpoint, err = client.New(options); err != nil {
		return o, nil, cli.Usagef("%s", strings.TrimPrefix(err.Error(), "client: "))
	}
	o.Admin, err = client.NewAdmin(client.AdminOptions{URLs: t.URLs, APIKey: options.APIKey, Header: options.Header,
		TLS: options.TLS, Proxy: options.Proxy})
	if err != nil {
		o.Endpoint.Close()
		return o, nil, cli.Exit(cli.Usage, err)
	}
	o.Key, o.Tokenizer = options.APIKey != "", tok
	o.Patiently = func(ask func() error) error { return untilFree(cmd, ask) }
	return o, func() { o.Endpoint.Close(); o.Admin.Close() }, nil
}

// Check checks a server, in a time that is limited as a whole. Its errors say what to do next.
func Check(cmd *cobra.Command, t *flags.Target, o check.Options) (report *check.Report, err error) {
	err = withinLimit(cmd, t, 0, func() (err error) {
		report, err = check.Run(cmd.Context(), o)
		return advised(err, t)
	})
	return report, err
}
