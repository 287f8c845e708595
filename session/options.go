package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

const (
	defaultTimeout    = 10 * time.Second
	defaultMaxRequest = 0xfffff // ZooKeeper's default of jute.maxbuffer
	defaultMaxAnswer  = 1 << 28 // rejects a length that no correct server sends
)

// The limits of a session timeout. With a timeout below minTimeout, the session is over
// before a request and its answer have crossed a network. A timeout above maxTimeout is
// treated like maxTimeout, which is the cautious choice.
const (
	minTimeout = 100 * time.Millisecond
	maxTimeout = 24 * time.Hour
)

// DialFunc opens a connection to one server. It must return when ctx is done.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// An Option changes a default of Connect.
type Option func(*config) error

type credential struct {
	scheme string
	auth   []byte
}

type config struct {
	timeout    time.Duration
	acl        []zk.ACL
	auth       []credential
	sasl       SASLMechanism
	tls        *tls.Config
	dial       DialFunc
	log        *zap.Logger
	observer   Observer
	maxRequest int
	maxAnswer  int
	makeChroot bool
	suspension clock // nil is the clock of the machine
}

func newConfig(opts []Option) (config, error) {
	c := config{timeout: defaultTimeout, log: zap.NewNop(), maxRequest: defaultMaxRequest, maxAnswer: defaultMaxAnswer, dial: (&net.Dialer{}).DialContext}
	for i, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("%w: option %d is nil", ErrInvalidOption, i+1)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	limit := records{max: c.maxRequest}
	for _, a := range c.auth {
		// Otherwise the servers would close every connection.
		if err := limit.checkSize(len(wire.AuthRecord(a.scheme, a.auth))); err != nil {
			return c, fmt.Errorf("%w: WithAuth: %w", ErrInvalidOption, err)
		}
	}
	if c.acl == nil {
		c.acl = zk.WorldACL(zk.PermAll)
		if len(c.auth) > 0 || c.sasl != nil {
			// With the open ACL the credentials would protect nothing.
			c.acl = zk.AuthACL(zk.PermAll)
		}
	}
	return c, nil
}

// option returns an option that calls set, or that is the named invalid option, because of
// problem, unless ok.
func option[C any](ok bool, name, problem string, set func(*C)) func(*C) error {
	return func(c *C) error {
		if !ok {
			return invalid(name, "%s", problem)
		}
		set(c)
		return nil
	}
}

func invalid(option, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrInvalidOption, option, fmt.Sprintf(format, args...))
}

// WithTimeout sets the session timeout d that Connect requests. The servers clamp d to
// their own limits, and Session.Timeout returns the result. The default is 10 seconds,
// and the maximum is 24 hours. Connect fails if the servers grant less than 100 ms. If a
// process dies, its holds end d to 1.5 d later. A holder that is cut off from the servers
// learns of its loss within d, usually between 0.3 and 0.6 d later.
func WithTimeout(d time.Duration) Option {
	return option(d >= time.Millisecond && d <= maxTimeout, "WithTimeout", fmt.Sprintf("%v is not between 1ms and %v", d, maxTimeout),
		func(c *config) { c.timeout = d })
}

// WithACL sets the ACL of every znode that is created without an explicit ACL. The
// default is open to everyone. With WithAuth, the default gives all permissions to the
// creator and none to other clients.
func WithACL(acl ...zk.ACL) Option {
	err := checkACL(acl)
	return option(err == nil, "WithACL", fmt.Sprint(err), func(c *config) { c.acl = slices.Clone(acl) })
}

func checkACL(acl []zk.ACL) error {
	if len(acl) == 0 {
		return fmt.Errorf("an empty ACL, want at least one entry")
	}
	for _, a := range acl {
		switch {
		case a.Perms < 1 || a.Perms > zk.PermAll:
			return fmt.Errorf("%v: the permissions %d are not between 1 and %d", a, a.Perms, zk.PermAll)
		case a.Scheme == "":
			return fmt.Errorf("%v: no scheme, want one as world, auth, digest or ip", a)
		case a.Scheme == "world" && a.ID != "anyone":
			return fmt.Errorf(`%v: the scheme world has the id "anyone" only, not %q`, a, a.ID)
		}
	}
	return nil
}

// WithAuth adds a credential, for example ("digest", []byte("user:password")). Every
// connection sends the credential before any request. The option may be given more than
// once: all credentials are sent.
func WithAuth(scheme string, auth []byte) Option {
	return option(scheme != "", "WithAuth", `no scheme, want one as "digest"`, func(c *config) {
		// A copy that is never nil: nil is sent as the length -1.
		c.auth = append(c.auth, credential{scheme, append([]byte{}, auth...)})
	})
}

// WithSASL authenticates the client by a SASL mechanism, on every connection and before
// any request. Znodes are then created with all permissions for their creator and none
// for other clients, unless WithACL is given. Connect fails with ErrAuthFailed if the
// server refuses the credentials, offers no SASL, or does not prove its own identity as
// the mechanism requires.
//
//	session.WithSASL(session.DigestMD5("bob", "secret"))
func WithSASL(mechanism SASLMechanism) Option {
	return func(c *config) error {
		if mechanism == nil {
			return invalid("WithSASL", "the mechanism is nil, want one as session.DigestMD5(user, password)")
		}
		if m, ok := mechanism.(*digestMD5); ok && m.user == "" {
			return invalid("WithSASL", "the user name of DigestMD5 is empty, want one that the servers know")
		}
		c.sasl = mechanism
		return nil
	}
}

// WithTLS makes connections to the servers use TLS. If cfg names no server, the host of
// the connection string is verified. With InsecureSkipVerify, the functions of cfg verify the server:
// as with tls.Dial, VerifyConnection gets the host as ServerName, or "" if the host is an IP address.
func WithTLS(cfg *tls.Config) Option {
	// The caller may change its configuration after Connect.
	return option(cfg != nil, "WithTLS", "the configuration is nil", func(c *config) { c.tls = cfg.Clone() })
}

// WithDialer sets the function that opens connections, in place of net.Dialer: for
// example through a proxy, or to a server in memory. WithTLS adds TLS to these
// connections. The Manager sets a deadline in the past to end the reads and writes of a connection, and
// then closes it in the background. A Close that takes long delays neither the end of a hold
// nor, if the connection supports deadlines, the next connection. Manager.Close waits for it.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return option(dial != nil, "WithDialer", "the function is nil", func(c *config) { c.dial = dial })
}

// WithLogger sets the logger for connections, sessions and clean-up. By default nothing
// is logged. The goroutines that keep the session alive call the logger, so it must not
// block: a destination that blocks for a part of the session timeout may cost the session.
func WithLogger(log *zap.Logger) Option {
	return option(log != nil, "WithLogger", "the logger is nil, want zap.NewNop() for silence", func(c *config) { c.log = log })
}

// WithObserver adds an observer. It may be given more than once. Without an observer
// nothing is measured.
func WithObserver(o Observer) Option {
	return func(c *config) error {
		c.observer = c.observer.and(o)
		return nil
	}
}

// WithCreateChroot makes Connect create the chroot of the connection string, with the
// directories above it, if the chroot does not exist. The chroot gets the ACL of WithACL.
// Without this option Connect fails with ErrNoChroot, because a mistyped chroot would
// separate this process from all others without a sign.
func WithCreateChroot() Option {
	return func(c *config) error {
		c.makeChroot = true
		return nil
	}
}

// WithMaxRequest sets the size in bytes of the largest request that is sent, at least 1,024. Set it to
// the servers' jute.maxbuffer. The default is ZooKeeper's default, 1,048,575. If n is greater, a
// request between the two limits breaks one connection after another, and a log line and the
// errors of waiting calls name that request. A read with a
// watch ends with ErrTooLarge, too, if its path is so long that the request that arms the
// watch again after a reconnect would be larger.
func WithMaxRequest(n int) Option {
	return frameSize("WithMaxRequest", n, func(c *config) { c.maxRequest = n })
}

// WithMaxAnswer sets the size in bytes of the largest answer that is received, at least 1,024. A larger
// answer breaks the connection. After the second such answer, the read ends with
// ErrAnswerTooLarge. The default is 256 MiB. ZooKeeper does not limit the answer to
// MultiRead or the list of a znode's children.
func WithMaxAnswer(n int) Option {
	return frameSize("WithMaxAnswer", n, func(c *config) { c.maxAnswer = n })
}

func frameSize(name string, n int, set func(*config)) Option {
	return option(n >= 1024 && n <= math.MaxInt32, name, fmt.Sprintf("%d is not between 1024 and %d bytes", n, math.MaxInt32), set)
}
