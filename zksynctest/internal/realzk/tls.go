package realzk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files of keys, in the directory of the cluster.
const (
	authorityFile = "authority.pem" // the certificate that signed both
	serverFile    = "server.pem"    // key and certificate of all servers
	clientFile    = "client.pem"    // key and certificate of clients
)

// tlsProperties configure the secure port. ZooKeeper serves TLS by Netty only,
// then on the plain port, too, and wants a certificate of clients as well.
func tlsProperties(dir string) map[string]string {
	return map[string]string{
		"serverCnxnFactory":       "org.apache.zookeeper.server.NettyServerCnxnFactory",
		"ssl.keyStore.location":   filepath.Join(dir, serverFile),
		"ssl.keyStore.type":       "PEM",
		"ssl.trustStore.location": filepath.Join(dir, authorityFile),
		"ssl.trustStore.type":     "PEM",
	}
}

// issuer signs certificates for this run.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writeKeys makes an authority, and the certificates that it signs for servers and
// clients.
func writeKeys(dir string) error {
	if err := makeKeys(dir); err != nil {
		return fmt.Errorf("make TLS keys: %w", err)
	}
	return nil
}

func makeKeys(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate("zksynctest authority")
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, authorityFile), block("CERTIFICATE", der)); err != nil {
		return err
	}
	authority := issuer{cert: cert, key: key}
	if err := authority.issue(filepath.Join(dir, serverFile), "zksynctest server"); err != nil {
		return err
	}
	return authority.issue(filepath.Join(dir, clientFile), "zksynctest client")
}

// issue writes a new key and its certificate for loopback addresses.
func (a issuer) issue(path, name string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	template.DNSNames = []string{"localhost"}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, block("PRIVATE KEY", keyDER), block("CERTIFICATE", der))
}

func certificate(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		BasicConstraintsValid: true,
	}
}

func block(kind string, der []byte) *pem.Block { return &pem.Block{Type: kind, Bytes: der} }

func writePEM(path string, blocks ...*pem.Block) error {
	var data []byte
	for _, b := range blocks {
		data = append(data, pem.EncodeToMemory(b)...)
	}
	return os.WriteFile(path, data, 0o600)
}

// ClientTLS returns the configuration with which a client can reach the secure ports.
func (c *Cluster) ClientTLS() (*tls.Config, error) {
	if !c.config.TLS {
		return nil, fmt.Errorf("the servers have no secure port: ask for one with RealTLS")
	}
	authority, err := os.ReadFile(filepath.Join(c.config.Dir, authorityFile))
	if err != nil {
		return nil, fmt.Errorf("read TLS keys: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := filepath.Join(c.config.Dir, clientFile)
	cert, err := tls.LoadX509KeyPair(client, client)
	if err != nil {
		return nil, fmt.Errorf("read TLS keys: %w", err)
	}
	return &tls.Config{
		RootCAs:      roots,
		Certificates: []tls.Certificate{cert},
		ServerName:   "127.0.0.1",
		MinVersion:   tls.VersionTLS12,
	}, nil
}
