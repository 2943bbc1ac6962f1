package flags

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/objectstore"
)

// TLS says how servers are checked, and what the client shows them.
type TLS struct {
	authorities, cert, key, name string
	insecure                     bool
}

// Register adds the flags.
func (f *TLS) Register(rest Section) {
	rest.StringVar(&f.authorities, "tls-ca", "", "")
	rest.StringVar(&f.cert, "tls-cert", "", "")
	rest.StringVar(&f.key, "tls-key", "", "")
	rest.StringVar(&f.name, "tls-server-name", "", "")
	rest.BoolVar(&f.insecure, "tls-insecure", false, "")
}

// Check refuses flags that do not go together.
func (f *TLS) Check() error {
	if (f.cert == "") != (f.key == "") {
		return cli.Usagef("--set tls-cert and tls-key go together")
	}
	if f.insecure && f.authorities != "" {
		return cli.Usagef("--set tls-insecure and tls-ca cannot be used together")
	}
	return nil
}

// Config is nil where nothing about TLS was said.
func (f *TLS) Config() (*tls.Config, error) {
	if cmp.Or(f.authorities, f.cert, f.name) == "" && !f.insecure {
		return nil, nil
	}
	c := &tls.Config{ServerName: f.name, InsecureSkipVerify: f.insecure}
	if f.authorities != "" {
		pem, err := objectstore.ReadFile(f.authorities)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, cli.Usagef("--set tls-ca: %s holds no certificate in PEM", f.authorities)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--set tls-cert and tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
