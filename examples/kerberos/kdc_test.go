package kerberos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A kdc is a Kerberos server of MIT's, on loopback, with a database of its own.
type kdc struct {
	t    *testing.T
	dir  string
	env  []string
	conf *config.Config
}

// startKDC starts a KDC with some principals, and skips the test where none is
// installed.
func startKDC(t *testing.T, principals ...string) *kdc {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/lib/mit/sbin")
	for _, program := range []string{"krb5kdc", "kdb5_util", "kadmin.local"} {
		if _, err := exec.LookPath(program); err != nil {
			line := strings.Repeat("*", 70)
			t.Skipf("\n%s\nNOT TESTED WITH A REAL KDC: %v\n%s\napt-get install -y krb5-kdc krb5-admin-server installs one on Debian.", line, err, line)
		}
	}
	k := &kdc{t: t, dir: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	krb5 := fmt.Sprintf(`[libdefaults]
 default_realm = %[1]s
 dns_lookup_kdc = false
 dns_lookup_realm = false
 udp_preference_limit = 1
[realms]
 %[1]s = {
  kdc = %[2]s
 }
[domain_realm]
 localhost = %[1]s
`, realm, address)
	k.write("krb5.conf", krb5)
	k.write("kdc.conf", fmt.Sprintf(`[kdcdefaults]
 kdc_listen = ""
 kdc_tcp_listen = %[2]s
[realms]
 %[1]s = {
  database_name = %[3]s/principal
  key_stash_file = %[3]s/stash
  acl_file = %[3]s/acl
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }
[logging]
 kdc = FILE:%[3]s/kdc.log
`, realm, address, k.dir))
	k.env = append(os.Environ(), "KRB5_CONFIG="+k.path("krb5.conf"), "KRB5_KDC_PROFILE="+k.path("kdc.conf"))
	k.run("kdb5_util", "create", "-s", "-r", realm, "-P", "master")
	for _, p := range principals {
		k.run("kadmin.local", "-r", realm, "-q", "addprinc -randkey "+p)
		k.run("kadmin.local", "-r", realm, "-q", "ktadd -k "+k.keytab(p)+" "+p)
	}
	server := exec.Command("krb5kdc", "-n", "-r", realm, "-P", k.path("pid"))
	server.Env = k.env
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			log, _ := os.ReadFile(k.path("kdc.log"))
			t.Fatalf("the KDC does not answer: %v\n%s", err, log)
		}
	}
	if k.conf, err = config.NewFromString(krb5); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kdc) path(name string) string { return filepath.Join(k.dir, name) }

func (k *kdc) keytab(principal string) string {
	return k.path(strings.ReplaceAll(principal, "/", "-") + ".keytab")
}

func (k *kdc) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(k.path(name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kdc) run(name string, args ...string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = k.env
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// login returns a client of a principal.
func (k *kdc) login(principal string) *client.Client {
	k.t.Helper()
	keys, err := keytab.Load(k.keytab(principal))
	if err != nil {
		k.t.Fatal(err)
	}
	c := client.NewWithKeytab(principal, realm, keys, k.conf, client.DisablePAFXFAST(true))
	k.t.Cleanup(c.Destroy)
	return c
}

// With a real KDC and a real ZooKeeper that demands SASL: a client connects, connects
// again after a lost connection, and owns the znodes that it creates; a client without a
// ticket for the servers' principal, or with a ticket that the servers cannot read, gets
// an error that says so. Breaks if any token of the exchange is not as RFC 4752 and RFC
// 4121 have it.
func TestRealKDC(t *testing.T) {
	k := startKDC(t, "zookeeper/localhost", "zookeeper/elsewhere", "app")
	k.write("jaas.conf", fmt.Sprintf(`Server {
 com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false
  keyTab=%q principal="zookeeper/localhost@%s";
};
`, k.keytab("zookeeper/localhost"), realm))
	e := zksynctest.RealZooKeeper(t, 1,
		zksynctest.RealJVM("-Djava.security.auth.login.config="+k.path("jaas.conf"), "-Djava.security.krb5.conf="+k.path("krb5.conf")),
		zksynctest.RealProperty("authProvider.sasl", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		zksynctest.RealProperty("sessionRequireClientSASLAuth", "true"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mechanism := New(k.login("app"))
	mechanism.Host = "localhost"
	m, err := session.Connect(ctx, e.Servers(), session.WithSASL(mechanism))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "/mine", []byte("x"), zk.FlagEphemeral); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, "/named", nil, zk.FlagEphemeral, zk.ACL{Perms: zk.PermAll, Scheme: "sasl", ID: "app@" + realm}); err != nil {
		t.Fatal(err)
	}
	e.Reset(zksynctest.Client, 1)
	for _, path := range []string{"/mine", "/named"} {
		if _, _, err := s.Get(ctx, path); err != nil {
			t.Errorf("after a new connection: %v", err)
		}
	}
	if n := m.Stats().Connections; n < 2 {
		t.Errorf("%d connections, want another one", n)
	}

	short, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	mechanism = New(k.login("app"))
	mechanism.Host = "nowhere"
	if _, err := session.Connect(short, e.Servers(), session.WithSASL(mechanism)); err == nil || !strings.Contains(err.Error(), "zookeeper/nowhere") {
		t.Errorf("error %v, want one about zookeeper/nowhere", err)
	}
	mechanism = New(k.login("app"))
	mechanism.Host = "elsewhere"
	if _, err := session.Connect(ctx, e.Servers(), session.WithSASL(mechanism)); !errors.Is(err, session.ErrAuthFailed) {
		t.Errorf("error %v, want ErrAuthFailed: the servers have another key", err)
	}
}
