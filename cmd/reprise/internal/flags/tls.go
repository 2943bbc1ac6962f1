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

// Register adds the flags. insecure is the help of --tls-insecure.
func (f *TLS) Register(rest Section, insecure string) {
	rest.StringVar(&f.authorities, "tls-ca", "",
		"PEM `file` of certificate authorities to trust instead of the system's")
	rest.StringVar(&f.cert, "tls-cert", "", "PEM `file` with a client certificate")
	rest.StringVar(&f.key, "tls-key", "", "PEM `file` with the key of --tls-cert")
	rest.StringVar(&f.name, "tls-server-name", "",
		"name expected in the server's certificate, instead of the URL's host")
	rest.BoolVar(&f.insecure, "tls-insecure", false, insecure)
}

// Check refuses flags that do not go together.
func (f *TLS) Check() error {
	if (f.cert == "") != (f.key == "") {
		return cli.Usagef("--tls-cert and --tls-key go together")
	}
	if f.insecure && f.authorities != "" {
		return cli.Usagef("--tls-insecure and --tls-ca cannot be used together")
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
			return nil, cli.Usagef("--tls-ca: %s holds no certificate in PEM", f.authorities)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
