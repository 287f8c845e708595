package zkserver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
)

// Config configures a [Server]. The zero Config is ready to use.
type Config struct {
	// TickTime is the server's unit of time, at least a millisecond. Sessions expire at multiples
	// of TickTime. The default is 2 s.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound the session timeouts that clients negotiate, in
	// whole milliseconds. The defaults are 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxClientConns limits the connections of one remote IP to one endpoint (maxClientCnxns). A
	// connection over the limit is accepted and closed. 0 means no limit, because many clients of a
	// test share one address.
	MaxClientConns int
	// MaxConns limits the connections to all endpoints together (maxCnxns). A connection over the
	// limit is accepted and closed. 0 means 10,000, and -1 means no limit.
	MaxConns int
	// MaxFrame is the maximum length of a request in bytes (jute.maxbuffer). A connection that
	// announces a longer request is closed. The default is 1048575.
	MaxFrame int
	// MaxAnswer is the maximum length of an answer in bytes, at least 1,024. If the answer to a
	// request would be longer, the server closes the connection without an answer and logs a line.
	// A write is carried out all the same. A real server has no such limit: it runs out of memory,
	// and clients close a connection that announces more than their own jute.maxbuffer. 0 means 64
	// MiB, and -1 means no limit.
	MaxAnswer int
	// MaxQueued limits the bytes that are queued for one client that does not read them. When more
	// bytes would be queued, the connection is closed and the queued bytes are dropped; a single
	// answer may always be queued. Above a quarter of the limit, the server reads the next request
	// of that client only after the client has read something, or once in a third of its session
	// timeout if the client reads nothing. A client that reads slowly keeps its session. The events
	// of one transaction are queued together, however fast the client reads: the end of a session
	// with a million ephemeral znodes may exceed the limit for a client that watches all of them. 0
	// means 128 MiB, and -1 means no limit.
	MaxQueued int
	// MaxQueuedTotal limits the bytes that are queued for all clients together. When more bytes are
	// queued for open connections, the connection with the most queued bytes is closed, unless a
	// single answer exceeds the limit. Above half of the limit, the server holds back requests of
	// clients that have more than 64 KiB queued, as with MaxQueued. 0 means 512 MiB, and -1 means
	// no limit.
	MaxQueuedTotal int
	// FourLetterWords lists the four-letter words that the server answers; "*" allows all of them
	// (4lw.commands.whitelist). nil allows the words that a real server allows by default: srvr,
	// and isro with ReadOnlyMode. Other words show the sessions and the watches to every client.
	FourLetterWords []string
	// ExtendedTypes enables TTL nodes.
	ExtendedTypes bool
	// ReapInterval is the interval at which the server looks for containers and TTL nodes to remove
	// (znode.container.checkIntervalMs), at least a millisecond. The default is a minute. See
	// [Server.ReapNow].
	ReapInterval time.Duration
	// NeverUsedTTL is the age at which the server removes a container that never had a child
	// (znode.container.maxNeverUsedIntervalMs). 0 means never.
	NeverUsedTTL time.Duration
	// SuperDigest is "super:" followed by the base64 SHA-1 of "super:password". A client that
	// authenticates as this user bypasses all ACLs. Empty disables the super user.
	SuperDigest string
	// SASLUsers maps the users that may authenticate by SASL DIGEST-MD5 to their passwords (the
	// user_ entries of a DigestLoginModule). nil disables SASL, like a server without a JAAS
	// configuration.
	SASLUsers map[string]string
	// RequireSASL is sessionRequireClientSASLAuth: the server refuses a request of a connection
	// that has not authenticated by SASL, and closes the connection.
	RequireSASL bool
	// EnforceQuota enforces the hard limits in /zookeeper/quota. Without EnforceQuota, and for soft
	// limits always, the server only keeps the usage counts; a real server also logs violations.
	EnforceQuota bool
	// Reconfig is reconfigEnabled: the server answers a reconfig with ErrUnimplemented, like a real
	// server without an ensemble, instead of ErrReconfigDisabled.
	Reconfig bool
	// Without lists operations that this server does not know, like an older server. The server
	// answers them with ErrUnimplemented and closes the connection.
	Without []OpCode
	// Compat38 selects the behaviour of ZooKeeper 3.8.0 where it differs from 3.9:
	//
	//   - A path has one watch mode per connection: the mode that was set last.
	//   - Events have no zxid.
	//   - exists needs no permission.
	//   - checkWatches sees the watches of other clients.
	//   - The watch types that 3.9 added are unknown.
	//   - create2 in a multi is answered like create.
	//
	// Events are still hidden from clients without the read permission: 3.8.0 leaked them
	// (CVE-2024-23944), and distributions have fixed the leak in 3.8.0.
	Compat38 bool
	// SyncLimit is the number of ticks after which a leader and a follower that hear nothing from
	// each other give each other up. The default is 5.
	SyncLimit int
	// ElectionTime is the duration of an election. An election begins when the servers notice that
	// they need a leader, and ends with a new leader. 0 means that a new leader is elected
	// immediately; real elections take about 200 ms.
	ElectionTime time.Duration
	// ReadOnlyMode is readonlymode.enabled: an endpoint that has found no quorum for two seconds,
	// or for a tick if that is longer, serves clients that accept a read-only server, as with
	// localSessionsEnabled: without it, a real server gives no new session in this mode.
	ReadOnlyMode bool
	// DataFile is the file that keeps the tree, the sessions and the zxid across restarts. A server
	// that starts with an existing file continues from its contents. The server writes a change to
	// the file before it sends an answer or a watch event that shows the change, so that the change
	// survives kill -9. With DataSync the server also syncs the file first, so that the change
	// survives a crash of the machine; without DataSync such a crash loses the changes that the
	// system has not yet written.
	//
	// The server creates a file that does not exist. While the server writes a new snapshot, the
	// file ".NAME.zkserver-snapshot" is beside the file NAME. The server locks the file, so that a
	// second server on the same file is refused, also under another name or through a link. A
	// symbolic link stays a symbolic link. Systems without flock (Windows, Solaris, AIX) do not
	// lock the file: start only one server per file there.
	//
	// A write that the end of the process or of the machine interrupted, and that no client was
	// told of, is cut off. A file that is damaged, or that has a newer format, is left as it is,
	// and the error wraps ErrCorrupt or ErrNewerFormat. Empty keeps the data in memory only.
	DataFile string
	DataSync bool
	// OpsKept is the number of operations that [Server.Ops] remembers; older operations are
	// forgotten. The default is 65536.
	OpsKept int
	// OpsBytes limits the memory of the operations that [Server.Ops] remembers. An operation counts
	// as 256 bytes and its path; each operation of a multi counts as 40 bytes and its path. The
	// server forgets whole operations, the oldest first, until the rest fits, but it always keeps
	// the latest operation. 0 means 64 MiB, and -1 means no limit.
	OpsBytes int
	// Logf logs one line for an operator: a connection could not be accepted, or was closed because
	// of a limit. Lines of one kind are logged at most once a second, with the number of suppressed
	// lines. Logf may be called by several goroutines at the same time. nil disables the log.
	Logf func(format string, args ...any)

	files journal.Files // replaces the file system in tests of the data file
}

const (
	defaultTickTime = 2 * time.Second
	defaultMaxFrame = 1048575
	defaultReap     = time.Minute
	defaultOpsKept  = 65536

	defaultSyncLimit = 5
)

// withDefaults returns the configuration with its defaults filled in, or an error that names the
// invalid field.
func (cfg Config) withDefaults() (Config, error) {
	bad := func(field string, value any, why string) (Config, error) {
		return Config{}, fmt.Errorf("zkserver: Config.%s is %v: %s", field, value, why)
	}
	if cfg.TickTime == 0 {
		cfg.TickTime = defaultTickTime
	}
	if cfg.TickTime < time.Millisecond {
		return bad("TickTime", cfg.TickTime, "it must be at least 1ms")
	}
	if cfg.MinSessionTimeout != 0 && cfg.MinSessionTimeout < time.Millisecond {
		return bad("MinSessionTimeout", cfg.MinSessionTimeout, "it must be at least 1ms")
	}
	if cfg.MaxSessionTimeout != 0 && cfg.MaxSessionTimeout < time.Millisecond {
		return bad("MaxSessionTimeout", cfg.MaxSessionTimeout, "it must be at least 1ms")
	}
	// A bound that is not set adapts to a bound that is set, so that the two never contradict each
	// other.
	givenMin, givenMax := cfg.MinSessionTimeout, cfg.MaxSessionTimeout
	if givenMin == 0 {
		cfg.MinSessionTimeout = 2 * cfg.TickTime
		if givenMax > 0 {
			cfg.MinSessionTimeout = min(cfg.MinSessionTimeout, givenMax)
		}
	}
	if givenMax == 0 {
		cfg.MaxSessionTimeout = max(20*cfg.TickTime, cfg.MinSessionTimeout)
	}
	if cfg.MaxSessionTimeout < cfg.MinSessionTimeout {
		return bad("MaxSessionTimeout", cfg.MaxSessionTimeout,
			fmt.Sprintf("it must not be less than MinSessionTimeout, %v", cfg.MinSessionTimeout))
	}
	if cfg.MaxSessionTimeout.Milliseconds() > math.MaxInt32 {
		return bad("MaxSessionTimeout", cfg.MaxSessionTimeout, "it must fit 32 bits of milliseconds")
	}
	if cfg.MaxClientConns < 0 {
		return bad("MaxClientConns", cfg.MaxClientConns, "it must not be negative")
	}
	if cfg.MaxFrame == 0 {
		cfg.MaxFrame = defaultMaxFrame
	}
	if cfg.MaxFrame < 64 || cfg.MaxFrame > math.MaxInt32/2 {
		return bad("MaxFrame", cfg.MaxFrame, "it must be between 64 and 2^30")
	}
	if cfg.ReapInterval == 0 {
		cfg.ReapInterval = defaultReap
	}
	if cfg.ReapInterval < time.Millisecond {
		return bad("ReapInterval", cfg.ReapInterval, "it must be at least 1ms")
	}
	if cfg.NeverUsedTTL < 0 {
		return bad("NeverUsedTTL", cfg.NeverUsedTTL, "it must not be negative")
	}
	if user, hash, ok := strings.Cut(cfg.SuperDigest, ":"); cfg.SuperDigest != "" && (!ok || user == "" || hash == "") {
		return bad("SuperDigest", cfg.SuperDigest, `it must look like "super:base64 of sha1"`)
	}
	if slices.Contains(cfg.Without, OpConnect) {
		return bad("Without", OpConnect, "a server that cannot connect is of no use")
	}
	if cfg.SyncLimit < 0 {
		return bad("SyncLimit", cfg.SyncLimit, "it must be at least a tick")
	}
	if cfg.SyncLimit == 0 {
		cfg.SyncLimit = defaultSyncLimit
	}
	if cfg.ElectionTime < 0 {
		return bad("ElectionTime", cfg.ElectionTime, "it must not be negative")
	}
	if cfg.OpsKept < 0 {
		return bad("OpsKept", cfg.OpsKept, "it must not be negative")
	}
	if cfg.OpsKept == 0 {
		cfg.OpsKept = defaultOpsKept
	}
	if err := cfg.limits(); err != nil {
		return Config{}, err
	}
	if cfg.files == nil {
		cfg.files = journal.OSFiles{}
	}
	cfg.Without = slices.Clone(cfg.Without)
	return cfg, nil
}
