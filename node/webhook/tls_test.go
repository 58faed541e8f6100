package webhook

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func logTo(w io.Writer) zerolog.Logger { return zerolog.New(w) }

func roots(certs ...*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool
}

// authority issues certificates; nil issues self-signed ones.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := (*authority)(nil).issue(t, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	return &authority{a.Leaf, a.PrivateKey.(*ecdsa.PrivateKey)}
}

// issue returns a certificate for 127.0.0.1 that edit may spoil.
func (a *authority) issue(t *testing.T, edit func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "receiver"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if edit != nil {
		edit(c)
	}
	parent, signer := c, key
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestC166TLSFailureIsTriedAgainAndNothingIsSent(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	good := ca.issue(t, nil)
	expired := ca.issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	elsewhere := ca.issue(t, func(c *x509.Certificate) { c.IPAddresses = nil; c.DNSNames = []string{"other.example"} })
	selfSigned := (*authority)(nil).issue(t, nil)
	stranger := newAuthority(t).issue(t, nil)
	for name, tt := range map[string]struct {
		config *tls.Config
		want   string // "": delivered
	}{
		"a good certificate":            {&tls.Config{Certificates: []tls.Certificate{good}}, ""},
		"TLS 1.2":                       {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12}, ""},
		"expired":                       {&tls.Config{Certificates: []tls.Certificate{expired}}, "certificate has expired"},
		"for another host":              {&tls.Config{Certificates: []tls.Certificate{elsewhere}}, "cannot validate certificate for 127.0.0.1"},
		"self-signed":                   {&tls.Config{Certificates: []tls.Certificate{selfSigned}}, "signed by unknown authority"},
		"of an unknown authority":       {&tls.Config{Certificates: []tls.Certificate{stranger}}, "signed by unknown authority"},
		"TLS 1.0 only":                  {&tls.Config{Certificates: []tls.Certificate{good}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}, "protocol version"},
		"a client certificate required": {&tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}, "tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &receiver{}
			r.Server = httptest.NewUnstartedServer(r.record(ok))
			r.TLS = tt.config
			r.Config.ErrorLog = log.New(io.Discard, "", 0)
			r.StartTLS()
			t.Cleanup(r.Close)
			h := handler(t, Options{RootCAs: roots(ca.cert), Secrets: []string{secretOf("a")}})
			v := try(t, h, Request{URL: r.URL, Headers: map[string]string{"Authorization": "geheim"}})
			if tt.want == "" {
				if v.fate != delivered {
					t.Errorf("fate %v, %v", v.fate, v.err)
				}
				return
			}
			if v.fate != again || !strings.Contains(v.err.Error(), tt.want) {
				t.Errorf("fate %v, %v; want %q", v.fate, v.err, tt.want)
			}
			if n := len(r.requests()); n != 0 {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}

func TestC166HTTPOnTheTLSPort(t *testing.T) {
	t.Parallel()
	r := receive(t, ok)
	v := try(t, handler(t, Options{}), Request{URL: strings.Replace(r.URL, "http:", "https:", 1)})
	if v.fate != again || !strings.Contains(v.err.Error(), "does not look like a TLS handshake") {
		t.Errorf("fate %v, %v", v.fate, v.err)
	}
}

func TestC166NothingReadableBeforeTheHandshake(t *testing.T) {
	t.Parallel()
	l := listen(t, "127.0.0.1:0")
	heard := make(chan []byte, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		first := make([]byte, 64<<10)
		n, _ := conn.Read(first)
		heard <- first[:n]
	}()
	h := handler(t, Options{Secrets: []string{secretOf("a")}})
	v := try(t, h, Request{URL: "https://" + l.Addr().String(), BodyText: "geheim", Headers: map[string]string{"Authorization": "geheim"}})
	if v.fate != again {
		t.Errorf("fate %v, %v", v.fate, v.err)
	}
	if bytes.Contains(<-heard, []byte("geheim")) {
		t.Error("a secret was sent in the clear")
	}
}
