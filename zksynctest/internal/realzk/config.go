package realzk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Defaults of a Config.
const (
	DefaultTickTime  = 500 * time.Millisecond
	DefaultSyncLimit = 5

	initLimit         = 20 // ticks for a follower to load the tree of its leader
	minSessionTicks   = 2
	maxSessionTimeout = time.Minute
)

// Config says what to start.
type Config struct {
	Servers    int    // 1 or 3
	Dir        string // where data, logs and keys go
	TickTime   time.Duration
	SyncLimit  int
	TLS        bool
	Properties map[string]string // lines of zoo.cfg, ahead of the defaults
	JVM        []string          // flags, after the defaults
}

// NewConfig returns the default configuration for the given number of servers.
func NewConfig(servers int) Config {
	return Config{
		Servers:    servers,
		TickTime:   DefaultTickTime,
		SyncLimit:  DefaultSyncLimit,
		Properties: make(map[string]string),
	}
}

func (c Config) validate() error {
	switch {
	case c.Servers != 1 && c.Servers != 3:
		return fmt.Errorf("an ensemble has 1 or 3 servers, not %d", c.Servers)
	case c.TickTime < time.Millisecond:
		return fmt.Errorf("tick time %v is below 1 ms", c.TickTime)
	case c.SyncLimit < 1:
		return fmt.Errorf("sync limit %d is below 1 tick", c.SyncLimit)
	case c.Dir == "":
		return fmt.Errorf("no directory for the data")
	}
	for key, value := range c.Properties {
		if err := checkProperty(key, value); err != nil {
			return err
		}
	}
	return nil
}

func checkProperty(key, value string) error {
	if key == "" || strings.ContainsAny(key, "=: \t\r\n\\") || strings.ContainsAny(value, "\r\n\\") {
		return fmt.Errorf("property %q=%q cannot be written on a line of zoo.cfg", key, value)
	}
	return nil
}

// SetProperty sets a line of the zoo.cfg of server i, from its next start on.
func (c *Cluster) SetProperty(i int, key, value string) error {
	s, err := c.server(i)
	if err != nil {
		return err
	}
	if err := checkProperty(key, value); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.properties == nil {
		s.properties = make(map[string]string)
	}
	s.properties[key] = value
	return nil
}

// jvmFlags are for servers that live for seconds and hold little.
var jvmFlags = []string{
	"-Xmx256m",
	"-XX:+UseSerialGC",
	"-XX:TieredStopAtLevel=1",
	"-XX:-UsePerfData",
	"-Djava.net.preferIPv4Stack=true",
	"-Djava.awt.headless=true",
	"-Dzookeeper.jmx.log4j.disable=true",
	"-Dorg.slf4j.simpleLogger.showDateTime=true",
	"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	"-Dorg.slf4j.simpleLogger.showShortLogName=true",
	// These tell of every four-letter word.
	"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
	"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NettyServerCnxn=warn",
}

const mainClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// properties of zoo.cfg that all servers of an ensemble share. ZooKeeper turns
// properties that it does not know into system properties, with "zookeeper." in front
// of the name.
func (c Config) properties() map[string]string {
	props := map[string]string{
		"tickTime":               strconv.FormatInt(c.TickTime.Milliseconds(), 10),
		"initLimit":              strconv.Itoa(initLimit),
		"syncLimit":              strconv.Itoa(c.SyncLimit),
		"minSessionTimeout":      strconv.FormatInt(minSessionTicks*c.TickTime.Milliseconds(), 10),
		"maxSessionTimeout":      strconv.FormatInt(maxSessionTimeout.Milliseconds(), 10),
		"maxClientCnxns":         "0",
		"admin.enableServer":     "false",
		"4lw.commands.whitelist": "*",
		"standaloneEnabled":      "true",
		"reconfigEnabled":        "false",
		// Processes get killed, machines do not: written data is safe in the page
		// cache, and waiting for the disk only takes time.
		"forceSync":    "no",
		"preAllocSize": "1024",
		// A server that looks for a leader asks less and less often, in the
		// end once a minute; tests heal links and want to see the effect.
		"fastleader.maxNotificationInterval": "1000",
		"electionPortBindRetry":              "1",
	}
	if c.TLS {
		for key, value := range tlsProperties(c.Dir) {
			props[key] = value
		}
	}
	return props
}

// writeFiles writes the files that a server reads when it starts: zoo.cfg, its
// number, and the logger's configuration for the loggers that releases have come
// with.
func (s *server) writeFiles(ports serverPorts) error {
	c := s.cluster.config
	props := c.properties()
	props["dataDir"] = s.dataDir()
	props["clientPort"] = strconv.Itoa(ports.client)
	props["clientPortAddress"] = "127.0.0.1"
	if c.TLS {
		props["secureClientPort"] = strconv.Itoa(ports.secure)
		props["secureClientPortAddress"] = "127.0.0.1"
	}
	if c.Servers > 1 {
		for _, peer := range s.cluster.servers {
			props[fmt.Sprintf("server.%d", peer.id)] = s.view(peer, ports)
		}
	}
	maps.Copy(props, c.Properties)
	s.mu.Lock()
	maps.Copy(props, s.properties)
	s.mu.Unlock()
	lines := make([]string, 0, len(props))
	for key, value := range props {
		lines = append(lines, key+"="+value+"\n")
	}
	sort.Strings(lines)
	for name, text := range map[string]string{
		"zoo.cfg":          strings.Join(lines, ""),
		"data/myid":        strconv.Itoa(s.id) + "\n",
		"log4j.properties": log4jConfig,
		"logback.xml":      logbackConfig,
	} {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("configure server %d: %w", s.id, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("configure server %d: %w", s.id, err)
		}
	}
	return nil
}

// view is the address of a peer as s shall see it: its links to the peer, or
// its own ports.
func (s *server) view(peer *server, own serverPorts) string {
	if peer == s {
		return fmt.Sprintf("127.0.0.1:%d:%d", own.quorum, own.election)
	}
	link := s.cluster.peers[pair{s.id, peer.id}]
	_, election, _ := strings.Cut(link.election.Addr(), ":")
	return link.quorum.Addr() + ":" + election
}

const log4jConfig = `log4j.rootLogger=INFO, CONSOLE
log4j.logger.org.apache.zookeeper.server.NIOServerCnxn=WARN
log4j.logger.org.apache.zookeeper.server.NettyServerCnxn=WARN
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{HH:mm:ss.SSS} [%t] %p %c{1} - %m%n
`

const logbackConfig = `<configuration>
  <appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} [%thread] %level %logger{0} - %msg%n</pattern></encoder>
  </appender>
  <logger name="org.apache.zookeeper.server.NIOServerCnxn" level="WARN"/>
  <logger name="org.apache.zookeeper.server.NettyServerCnxn" level="WARN"/>
  <root level="INFO"><appender-ref ref="CONSOLE"/></root>
</configuration>
`
