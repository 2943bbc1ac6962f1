package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/engine"
	"reprise/trace/crash"
	"reprise/trace/textpage"
)

func serveCommand() *cobra.Command {
	c := engine.DefaultServerConfig()
	var listen string
	var asked flags.Engine
	var faults serveFaults
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a simulated OpenAI-compatible endpoint",
		Long: `Serve is a simulated endpoint. It answers /v1/chat/completions, /v1/completions,
/v1/responses, /v1/messages and /v1/embeddings with random words: it tokenises prompts,
runs them on the engine model of reprise simulate in real time (batches, chunked prefill,
KV blocks with their prefix cache, preemption) and sends tokens at exact times.

Without --preset or --costs a step of the engine takes 10 ms, or 2.5 us for each token of a
prompt where that is longer, and a request enters it after 5 ms.

--imitate, --quirks and --fault make it behave and fail as real servers do;
--list-quirks prints them.

It also serves /v1/models, /tokenize, /health, /metrics (vLLM's names),
/reset_prefix_cache, and with --admin /admin/config. It speaks HTTP/1.1, and HTTP/2
without TLS (h2c).`,
		Example: `  reprise serve --listen 127.0.0.1:8000 --costs step=20ms
  reprise serve --listen 127.0.0.1:8000 --preset l4-qwen2.5-0.5b
  reprise serve --listen 127.0.0.1:8000 --imitate llama-server --fault error=503:5%,stall=5s:1%`,
		Args: flags.Wants(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if faults.list {
				return writeQuirks(cmd)
			}
			if err := serveModel(cmd, &asked, &c); err != nil {
				return err
			}
			s, err := engine.NewServer(c)
			if err != nil {
				return cli.Exit(cli.Usage, err)
			}
			l, err := listenAt(listen)
			if err != nil {
				return err
			}
			cli.Notef(cmd, "serving %s at http://%s", c.Model, l.Addr())
			return serve(cmd.Context(), s.Gate(l), s.Handler())
		},
	}
	fl := cmd.Flags()
	server, serverRest := flags.Sections(fl, "Server")
	server.StringVar(&listen, "listen", "127.0.0.1:8000", "address and port; port 0 picks a free one")
	server.StringVar(&c.Model, "model", c.Model, "model name")
	server.StringVar(&c.Tokenizer, "tokenizer", c.Tokenizer,
		"tokenizer of prompts: a name, or the path of a tokenizer.json")
	serverRest.IntVar(&c.MaxModelLen, "max-model-len", c.MaxModelLen, "longest prompt and answer together, in tokens")
	asked.Register(fl)
	faults.register(fl, &c)
	return cmd
}

// serveModel makes c the engine that the flags ask for; its costs stay where they name none.
func serveModel(cmd *cobra.Command, f *flags.Engine, c *engine.ServerConfig) error {
	if f.Preset == "" && f.Costs == "" {
		f.Costs = c.Engine.Costs.String()
	}
	e, model, err := f.Config(cmd)
	if err != nil {
		return err
	}

	if !cmd.Flags().Changed("model") && f.Preset != "" {
		c.Model = model
	}
	c.Engine = e
	if warning := f.Warning(cmd, e); warning != "" {
		cli.Warnf(cmd, "warning: %s", warning)
	}
	return nil
}

// listenAt opens the port of --listen. A port alone is one of this machine.
func listenAt(address string) (net.Listener, error) {
	if _, err := strconv.ParseUint(address, 10, 16); err == nil {
		address = "127.0.0.1:" + address
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--listen: another program listens at %s: choose another port, or 0 for a free one",
			address)
	case err != nil:
		return nil, cli.Usagef("--listen: %v: write an address and a port, such as 127.0.0.1:8000", err)
	}
	return l, nil
}

// serve answers on l until ctx ends, then lets no stream hold it up.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true) // for clients that begin with it
	done := make(chan error, 1)
	go func() {
		defer crash.Caught()
		done <- srv.Serve(l)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	err := srv.Close()
	if serr := <-done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// serveFaults say how a simulated endpoint differs from the usual, and fails.
type serveFaults struct{ list bool }

func (f *serveFaults) register(fl *pflag.FlagSet, c *engine.ServerConfig) {
	server, _ := flags.Sections(fl, "Server")
	faults, faultsRest := flags.Sections(fl, "Faults")
	server.StringVar(&c.Imitate, "imitate", "", "imitate the wire format of a server: "+
		strings.Join(engine.Imitations(), ", "))
	faults.StringVar(&c.Quirks, "quirks", "",
		"`list` of quirks for every answer, such as crlf,usage-missing; see --list-quirks")
	faults.StringVar(&c.Faults, "fault", "",
		"`list` of quirks for a random share of the requests: error=503:5%,stall=5s:1%; + combines quirks: "+
			"error=429+retry-after=2:1%")
	faultsRest.Seed(&c.FaultSeed, "fault-seed", 1, "")
	faultsRest.BoolVar(&c.FaultHeader, "fault-header", false, "")
	server.BoolVar(&c.Admin, "admin", false,
		"serve /admin/config, to read and change latencies, limits, quirks and faults at run time")
	faults.BoolVar(&f.list, "list-quirks", false, "print the quirks and the imitated servers, and exit")
}

// writeQuirks prints the closed list.
func writeQuirks(cmd *cobra.Command) error {
	p := textpage.New(cli.TextOptions(cmd, ""))
	for _, q := range engine.Quirks() {
		name := q.Name
		if q.Value != "" {
			name = strings.Replace(name+"="+q.Value, "=[", "[=", 1)
		}
		if p.Width() < 100 { // what it does takes most of a line
			p.Line("", name)
			p.Line("    ", q.Does)
			continue
		}
		p.Line(fmt.Sprintf("%-34s ", name), q.Does)
	}
	p.Blank()
	for _, name := range engine.Imitations() {
		p.Line("", fmt.Sprintf("--imitate %s is --quirks %s", name, engine.Imitation(name)))
	}
	_, err := p.WriteTo(cmd.OutOrStdout())
	return err
}
