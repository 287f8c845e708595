package zkserver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
)

// Config says how a [Server] behaves. The zero Config works as it is.
type Config struct {
	// TickTime is the unit of time of the server, at least a millisecond; sessions
	// expire at multiples of it. The default is 2 s.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what a client can negotiate.
	// The defaults are 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxClientConns is how many connections one remote IP may have to an endpoint
	// (maxClientCnxns); a connection over the limit is accepted and closed. 0 means no
	// limit, because many clients of a test have one address.
	MaxClientConns int
	// MaxConns is how many connections the server has in all, over all its endpoints
	// (maxCnxns); a connection over the limit is accepted and closed. 0 means 10,000,
	// and -1 means no limit.
	MaxConns int
	// MaxFrame is the greatest length of a request (jute.maxbuffer); a connection
	// that announces more is closed. The default is 1048575.
	MaxFrame int
	// MaxAnswer is the greatest length of an answer in bytes, at least 1,024. A request
	// whose answer would be longer ends its connection without an answer, and a line in
	// the log says so. A write is carried out all the same. A real server has no such
	// limit: it runs out of memory, and clients give up a connection that announces more
	// than their own jute.maxbuffer. 0 means 64 MiB, and -1 means no limit.
	MaxAnswer int
	// MaxQueued is how many bytes may wait for one client that does not read them. When
	// more than that would wait, the connection is closed and the bytes are gone; one
	// answer may always wait. From a quarter of the limit on, requests of that client are
	// read only when the client has read, or once in a third of its session timeout if
	// the client reads nothing. A client that reads slowly keeps its session. The events
	// of one transaction wait together, however fast the client reads: the end of a
	// session with a million ephemeral znodes may exceed the limit for a client that
	// watches all of them. 0 means 128 MiB, and -1 means no limit.
	MaxQueued int
	// MaxQueuedTotal is how many bytes may wait for all clients together. When more than
	// that wait for connections that are open, and it is not one answer alone, the
	// connection for which most bytes wait is closed. From half of the limit on, requests
	// of clients for which more than 64 KiB wait are held back, as with MaxQueued. 0 means
	// 512 MiB, and -1 means no limit.
	MaxQueuedTotal int
	// FourLetterWords are the commands that are answered to a connection that begins
	// with one, "*" for all (4lw.commands.whitelist). nil means the words that a real
	// server allows: srvr, and isro with ReadOnlyMode. Other words show the sessions and the
	// watches to every client.
	FourLetterWords []string
	// ExtendedTypes allows TTL nodes.
	ExtendedTypes bool
	// ReapInterval is how often containers and TTL nodes are looked at
	// (znode.container.checkIntervalMs), at least a millisecond. The default is a
	// minute. See [Server.ReapNow].
	ReapInterval time.Duration
	// NeverUsedTTL is the age at which a container goes that never had a child
	// (znode.container.maxNeverUsedIntervalMs). 0 means never.
	NeverUsedTTL time.Duration
	// SuperDigest is "super:" and the base64 SHA-1 of "super:password". A client
	// that authenticates so may do everything. Empty means nobody can.
	SuperDigest string
	// SASLUsers are the passwords of the users who may authenticate by SASL with
	// DIGEST-MD5 (the user_ entries of a DigestLoginModule). nil means that the server
	// offers no SASL, as one without a JAAS configuration.
	SASLUsers map[string]string
	// RequireSASL is sessionRequireClientSASLAuth: requests of a connection that has
	// not authenticated by SASL are refused, and the connection is closed.
	RequireSASL bool
	// EnforceQuota makes hard limits in /zookeeper/quota count. Without it, and for
	// soft limits always, quotas are only kept account of; a real server writes to
	// its log what exceeds them.
	EnforceQuota bool
	// Reconfig is reconfigEnabled: reconfig is answered with ErrUnimplemented, as a
	// server without an ensemble does, and not with ErrReconfigDisabled.
	Reconfig bool
	// Without lists operations that this server does not know, as an older one
	// would not: it answers ErrUnimplemented and closes the connection.
	Without []OpCode
	// Compat38 makes the server do as ZooKeeper 3.8.0 where 3.9 does otherwise: a
	// path has one mode of watch a connection, the latest; events have no zxid;
	// exists needs no right; checkWatches sees the watches of others, and the types
	// of watch that 3.9 brought are unknown; create2 in a multi is answered as a
	// create. Events are kept from those without the right to read all the same:
	// that was a hole (CVE-2024-23944), and distributions have closed it in 3.8.0.
	Compat38 bool
	// SyncLimit is how many ticks leader and followers of an ensemble do without a
	// word from each other before they give each other up. The default is 5.
	SyncLimit int
	// ElectionTime is how long an ensemble is without a leader after the servers have
	// found out that they need one. 0 means that there is a new one at once; real
	// ones take about 200 ms.
	ElectionTime time.Duration
	// ReadOnlyMode is readonlymode.enabled: an endpoint that has found no quorum for
	// two seconds, or a tick if that is longer, serves clients that are content with
	// reading.
	ReadOnlyMode bool
	// DataFile is where the tree, the sessions and the zxid are kept, so that they
	// are there when a server is started with the same file again. What a client was
	// told, be it an answer or a watch event, is in the file before it is told, and
	// outlives the process however that ends, kill -9 included. With DataSync it
	// outlives the machine too: the file is synced before a client is told; without,
	// a crash of the machine takes what the system had not yet written. A file that does
	// not exist is made; now and then ".NAME.zkserver-snapshot" is beside the file NAME
	// while a new snapshot is written. The server locks the file itself, so that a second
	// server on the same file is refused, by whatever name or link it comes; a symbolic
	// link stays one. Systems without flock (Windows, Solaris, AIX) lock nothing: start
	// one server a file there. What was being written when the process or the machine
	// ended, and nobody was told of, is cut off. A file that is damaged, or of a newer
	// format, is an error that wraps ErrCorrupt or ErrNewerFormat, and is left as it is.
	// Empty means memory alone.
	DataFile string
	DataSync bool
	// OpsKept is how many of the latest operations [Server.Ops] remembers. The
	// default is 65536.
	OpsKept int
	// OpsBytes bounds the memory of the operations that [Server.Ops] remembers: their
	// paths, those within multis, and 256 bytes for each operation and 40 for each that
	// is within a multi. The oldest operations are forgotten, as a whole, until the rest
	// fits; the latest operation is always there. 0 means 64 MiB, and -1 means no limit.
	OpsBytes int
	// Logf is told in one line what an operator wants to know: that a connection could
	// not be accepted, or was closed because of a limit. Lines of one kind come at most
	// once a second, with the number of those left out. Calls may come from several
	// goroutines at once. nil means no log.
	Logf func(format string, args ...any)

	files journal.Files // of the tests of the data file
}

const (
	defaultTickTime = 2 * time.Second
	defaultMaxFrame = 1048575
	defaultReap     = time.Minute
	defaultOpsKept  = 65536

	defaultSyncLimit = 5
)

// withDefaults is the configuration as the server uses it.
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
	if cfg.MinSessionTimeout < 0 {
		return bad("MinSessionTimeout", cfg.MinSessionTimeout, "it must not be negative")
	}
	if cfg.MaxSessionTimeout < 0 {
		return bad("MaxSessionTimeout", cfg.MaxSessionTimeout, "it must not be negative")
	}
	// A bound that was not given never contradicts the one that was.
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
