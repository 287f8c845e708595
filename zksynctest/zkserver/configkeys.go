package zkserver

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// configKeys has a function for each key that this server uses.
var configKeys = map[string]func(*configParser, property) error{
	"clientPort": func(p *configParser, prop property) error {
		n, err := intOf(prop, 0, math.MaxUint16, "a port, 0 for any that is free")
		p.port = strconv.Itoa(n)
		return err
	},
	"clientPortAddress": func(p *configParser, prop property) error {
		host := strings.TrimSuffix(strings.TrimPrefix(prop.value, "["), "]")
		if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, ":/ []") {
			return wrong(prop, "it must be a host name or an IP address without a port")
		}
		p.host = host
		return nil
	},
	"tickTime": func(p *configParser, prop property) error {
		return p.duration(&p.Config.TickTime, prop, 1, "milliseconds, at least 1")
	},
	"minSessionTimeout": func(p *configParser, prop property) error {
		return p.timeout(&p.Config.MinSessionTimeout, prop)
	},
	"maxSessionTimeout": func(p *configParser, prop property) error {
		return p.timeout(&p.Config.MaxSessionTimeout, prop)
	},
	"maxClientCnxns": func(p *configParser, prop property) (err error) {
		p.Config.MaxClientConns, err = intOf(prop, 0, math.MaxInt32, "how many connections one IP may have, 0 for any number")
		return err
	},
	"maxCnxns": func(p *configParser, prop property) (err error) {
		p.Config.MaxConns, err = intOf(prop, 0, math.MaxInt32, "how many connections there may be in all, 0 for any number")
		if p.Config.MaxConns == 0 {
			p.Config.MaxConns = unlimited
		}
		return err
	},
	"extendedTypesEnabled": func(p *configParser, prop property) error {
		return boolOf(&p.Config.ExtendedTypes, prop)
	},
	"reconfigEnabled": func(p *configParser, prop property) error {
		return boolOf(&p.Config.Reconfig, prop)
	},
	"enforceQuota": func(p *configParser, prop property) error {
		return boolOf(&p.Config.EnforceQuota, prop)
	},
	"DigestAuthenticationProvider.superDigest": func(p *configParser, prop property) error {
		p.Config.SuperDigest = prop.value
		if _, err := p.Config.withDefaults(); err != nil {
			p.Config.SuperDigest = ""
			return wrong(prop, `it must look like "super:" and the base64 of the SHA-1 of "super:password"`)
		}
		return nil
	},
	"initLimit": func(p *configParser, prop property) (err error) {
		p.InitLimit, err = intOf(prop, 1, math.MaxInt32, "ticks, at least 1")
		return err
	},
	"syncLimit": func(p *configParser, prop property) (err error) {
		p.Config.SyncLimit, err = intOf(prop, 1, math.MaxInt32, "ticks, at least 1")
		return err
	},
	"dynamicConfigFile": func(_ *configParser, prop property) error {
		return wrong(prop, "that file is not read; copy its lines server.N into this one in place of this line")
	},
	"4lw.commands.whitelist": func(p *configParser, prop property) error {
		for word := range strings.SplitSeq(prop.value, ",") {
			word = strings.TrimSpace(word)
			if word == "" {
				continue
			}
			if _, known := fourLetterWords[word]; word != "*" && !known {
				return wrong(prop, "there is no command %q; there are %s, and * for all", word, fourLetterNames())
			}
			p.Config.FourLetterWords = append(p.Config.FourLetterWords, word)
		}
		return nil
	},
}

// javaOptions has the field of Config for each option of Java that a real server does not take from
// its file: the server sets the system property "zookeeper.jute.maxbuffer" for a line
// jute.maxbuffer, and reads the property "jute.maxbuffer".
var javaOptions = map[string]string{
	"jute.maxbuffer":                         "MaxFrame",
	"readonlymode.enabled":                   "ReadOnlyMode",
	"znode.container.checkIntervalMs":        "ReapInterval",
	"znode.container.maxNeverUsedIntervalMs": "NeverUsedTTL",
}

// meaningless lists the keys of features that this server does not have: a disk layout, Java, its
// own TLS, peers on a network.
var meaningless = strings.Fields(`
	dataDir dataLogDir preAllocSize snapCount commitLogCount snapSizeLimitInKb snapshot.trust.empty
	secureClientPort secureClientPortAddress observerMasterPort clientPortListenBacklog client.portUnification
	localSessionsEnabled localSessionsUpgradingEnabled
	electionAlg electionPort quorumListenOnAllIPs peerType syncEnabled standaloneEnabled
	leaderServes cnxTimeout connectToLearnerMasterLimit maxConcurrentSnapshots maxConcurrentSnapSyncs electionPortBindRetry
	learner.asyncSending learner.closeSocketAsync leader.closeSocketAsync leader.maxConcurrentSnapshots
	leader.maxConcurrentSnapshotTimeout leader.maxConcurrentDiffs leader.maxTimeToWaitForEpoch leader.ackLoggingFrequency
	sslQuorum sslQuorumReloadCertFiles sslEndpointIdentification portUnification
	globalOutstandingLimit serverCnxnFactory maxResponseCacheSize maxGetChildrenResponseCacheSize
	forceSync fsync.warningthresholdms warningThresholdMs fsyncWarningThresholdMS digest.enabled DigestAuthenticationProvider.enabled
	DigestAuthenticationProvider.digestAlg X509AuthenticationProvider.superUser superUser skipACL sessionRequireClientSASLAuth
	allowSaslFailedClients requireClientAuthScheme enforce.auth.enabled enforce.auth.schemes kerberos.removeHostFromPrincipal
	kerberos.removeRealmFromPrincipal jaasLoginRenew setACL.superOnly
	traceFile tcpKeepAlive maxBatchSize flushDelay maxWriteQueuePollTime request_throttler.shutdownTimeout requestThrottleLimit
	requestThrottleStallTime requestThrottleDropStale requestStaleLatencyCheck requestStaleConnectionCheck
	largeRequestMaxBytes largeRequestThreshold advancedFlowControlEnabled intBufferStartingSizeBytes
	closeSessionTxn.enabled connectionMaxTokens connectionTokenFillTime connectionTokenFillCount connectionFreezeTime
	connectionDropIncrease connectionDropDecrease connectionDecreaseRatio connection_throttle_tokens
	connection_throttle_fill_time connection_throttle_fill_count connection_throttle_freeze_time
	connection_throttle_drop_increase connection_throttle_drop_decrease connection_throttle_decrease_ratio
	connection_throttle_weight_enabled connection_throttle_global_session_weight connection_throttle_local_session_weight
	connection_throttle_renew_session_weight watchManagerName watcherCleanThreadsNum watcherCleanThreshold
	watcherCleanIntervalInSeconds maxInProcessingDeadWatchers bitHashCacheSize compressedTxnLog txnLogSizeLimitInKb
	znode.container.maxPerMinute test.disableEphemeralOwnerCheck test.allowDiscontinuousProposals
	follower.nodelay serializeLastProcessedZxid.enabled pathStats.slotCapacity pathStats.slotDuration pathStats.maxDepth
	pathStats.initialDelay pathStats.delay pathStats.topPathMax pathStats.enabled
	throttledOpWaitTime emulate353TTLNodes enableEagerACLCheck maxConcurrentDiffSyncs audit.enable audit.impl.class
	forward_learner_requests_to_commit_processor_disabled quorumCnxnTimeoutMs clientTcpKeepAlive jute.maxbuffer.extrasize
	oraclePath messageTracker.BufferSize messageTracker.Enabled kerberos.canonicalizeHostNames jmx.log4j.disable jvmPauseMonitor`)

// families lists prefixes of keys that this server ignores.
var families = []string{
	"ssl.", "group.", "weight.", "authProvider.", "metricsProvider.", "quorum.", "multiAddress.", "autopurge.", "admin.",
	"snapshot.", "commitProcessor.", "netty.", "nio.", "jvm.", "fastleader.", "sasl.", "server.cnxn", "java.", "log4j.",
	"commit.", "client.", "learner.", "leader.", "observer.",
}

// server checks a server.N line. This server does not use the addresses in the value, but rejects a
// malformed value like a real server.
func (p *configParser) server(number string, prop property) error {
	id, err := strconv.Atoi(number)
	if err != nil || id < 0 || id > 255 {
		return wrong(prop, "the key must be server.N with N between 0 and 255")
	}
	if !validServer(prop.value) {
		return wrong(prop, "it must look like host:2888:3888, with :participant or :observer and ;clientPort behind it if you like")
	}
	if quorum, _, _ := strings.Cut(prop.value, ";"); strings.Contains(quorum, ":observer") {
		p.ignore(prop, "there are no observers here; this member has a vote")
	}
	p.Servers = append(p.Servers, ConfigServer{id, prop.value})
	return nil
}

func validServer(value string) bool {
	quorum, client, hasClient := strings.Cut(value, ";")
	if hasClient {
		if host, port, err := net.SplitHostPort(client); err == nil && host != "" {
			client = port
		}
		if !validPort(client) {
			return false
		}
	}
	for address := range strings.SplitSeq(quorum, "|") {
		for _, role := range []string{":participant", ":observer"} {
			address = strings.TrimSuffix(address, role)
		}
		end := 0
		if strings.HasPrefix(address, "[") {
			end = strings.IndexByte(address, ']') + 1
		}
		host, ports, ok := strings.Cut(address[end:], ":")
		if !ok || host == "" && end == 0 || host != "" && end > 0 {
			return false
		}
		for port := range strings.SplitSeq(ports, ":") {
			if !validPort(port) {
				return false
			}
		}
		if strings.Count(ports, ":") > 1 {
			return false
		}
	}
	return true
}

func validPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil
}

func (p *configParser) duration(to *time.Duration, prop property, least int, what string) error {
	n, err := intOf(prop, least, math.MaxInt32, what)
	*to = milliseconds(n)
	return err
}

// timeout parses a bound of session timeouts; -1 stands for the default.
func (p *configParser) timeout(to *time.Duration, prop property) error {
	if prop.value == "-1" {
		return nil
	}
	return p.duration(to, prop, 1, "milliseconds, at least 1, or -1 for the default")
}

func intOf(prop property, least, most int, what string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimPrefix(prop.value, "+"), 10, 64)
	if err != nil || int(n) < least || int(n) > most {
		return 0, wrong(prop, "it must be %s", what)
	}
	return int(n), nil
}

func boolOf(to *bool, prop property) error {
	switch strings.ToLower(prop.value) {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return wrong(prop, "it must be true or false")
	}
	return nil
}

func joinHostPort(host, port string) string {
	if host == "0.0.0.0" || host == "::" {
		host = ""
	}
	return net.JoinHostPort(host, port)
}

// nearestKey returns the known key that is most similar to key, or "" if no known key is similar.
func nearestKey(key string) string {
	best, at := "", 3
	if len(key) < 6 {
		at = 2
	}
	consider := func(known string) {
		if d := editDistance(strings.ToLower(key), strings.ToLower(known)); d < at || d == at && known < best {
			best, at = known, d
		}
	}
	for known := range configKeys {
		consider(known)
	}
	for known := range javaOptions {
		consider(known)
	}
	for _, known := range meaningless {
		consider(known)
	}
	return best
}

// editDistance returns the number of letters to change, insert or delete to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
