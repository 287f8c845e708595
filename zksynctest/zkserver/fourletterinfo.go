package zkserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// confLines returns the lines of a real server's conf.
func (e *Endpoint) confLines() string {
	_, port, _ := net.SplitHostPort(e.Addr())
	if len(e.listeners) > 0 && e.listeners[0].addr != nil {
		if _, p, err := net.SplitHostPort(e.listeners[0].addr.String()); err == nil {
			port = p
		}
	}
	cfg := &e.s.cfg
	dir, snapshot, changes := e.s.dataDir()
	return fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\ndataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=%d\n"+
		"tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=%d\n",
		port, dir, snapshot, dir, changes, cfg.TickTime.Milliseconds(), cfg.MaxClientConns,
		e.minTimeout.Milliseconds(), e.maxTimeout.Milliseconds(), e.serverID())
}

// dataDir returns the directory of the data file and the lengths of its two parts, the snapshot and
// the log of later changes. Real servers keep the two parts in separate directories.
func (s *Server) dataDir() (dir string, snapshot, changes int64) {
	if s.journal == nil {
		return "", 0, 0
	}
	dir = filepath.Dir(s.cfg.DataFile)
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	snapshot, changes = s.journal.Sizes()
	return dir, snapshot, changes
}

func (e *Endpoint) directories() string {
	_, snapshot, changes := e.s.dataDir()
	return fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", snapshot, changes)
}

// serverID returns the id of the server, 0 for a standalone server.
func (e *Endpoint) serverID() int {
	if len(e.s.en.endpoints) == 1 {
		return 0
	}
	return e.number
}

// environment returns the lines of a real server's envi; the Java properties have no values here.
func (s *Server) environment() string {
	const none = "<NA>"
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	dir, err := os.Getwd()
	if err != nil {
		dir = none
	}
	megabytes := func(n uint64) string { return fmt.Sprintf("%dMB", n>>20) }
	var b strings.Builder
	b.WriteString("Environment:\n")
	for _, line := range [][2]string{
		{"zookeeper.version", s.version()},
		{"host.name", "localhost"},
		{"java.version", none},
		{"java.vendor", none},
		{"java.home", none},
		{"java.class.path", none},
		{"java.library.path", none},
		{"java.io.tmpdir", os.TempDir()},
		{"java.compiler", none},
		{"os.name", runtime.GOOS},
		{"os.arch", runtime.GOARCH},
		{"os.version", none},
		{"user.name", none},
		{"user.home", none},
		{"user.dir", dir},
		{"os.memory.free", megabytes(mem.HeapIdle)},
		{"os.memory.max", megabytes(mem.Sys)},
		{"os.memory.total", megabytes(mem.HeapSys)},
	} {
		b.WriteString(line[0] + "=" + line[1] + "\n")
	}
	return b.String()
}

// monitorLines returns those values of a real server's mntr for which this server has a count.
func (e *Endpoint) monitorLines() string {
	s, t, l := e.s, e.tree(), &e.stats.latency
	ephemerals := 0
	for _, session := range t.Owners() {
		ephemerals += len(t.EphemeralsOf(session))
	}
	var b strings.Builder
	for _, line := range []struct {
		key   string
		value any
	}{
		{"version", s.version()},
		{"server_state", e.mode()},
		{"ephemerals_count", ephemerals},
		{"num_alive_connections", len(e.s.conns.on(e))},
		{"avg_latency", l.average()},
		{"outstanding_requests", 0},
		{"znode_count", t.Size()},
		{"global_sessions", len(s.sessions.byID)},
		{"non_mtls_remote_conn_count", 0},
		{"last_client_response_size", -1},
		{"packets_sent", e.stats.sent},
		{"packets_received", e.stats.received},
		{"max_client_response_size", -1},
		{"connection_drop_probability", "0.0"},
		{"watch_count", e.rep.watches.Size()},
		{"auth_failed_count", 0},
		{"min_latency", l.min},
		{"max_file_descriptor_count", -1},
		{"approximate_data_size", t.DataSize()},
		{"open_file_descriptor_count", -1},
		{"local_sessions", 0},
		{"uptime", time.Since(s.base).Milliseconds()},
		{"max_latency", l.max},
		{"outstanding_tls_handshake", 0},
		{"min_client_response_size", -1},
		{"non_mtls_local_conn_count", 0},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", line.key, line.value)
	}
	return b.String()
}

// watchSummary, watchesByConn and watchesByPath count only the watch table of getData and
// exists, like a real server.
func (e *Endpoint) watchSummary() string {
	byConn, total := e.watchedBy(), 0
	for _, paths := range byConn {
		total += len(paths)
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		len(byConn), len(e.rep.watches.DataPaths()), total)
}

func (e *Endpoint) watchedBy() map[*conn][]string {
	byConn := map[*conn][]string{}
	for _, path := range e.rep.watches.DataPaths() {
		for _, client := range e.rep.watches.DataWatchers(path) {
			c := client.Events.(*conn)
			byConn[c] = append(byConn[c], path)
		}
	}
	return byConn
}

func (e *Endpoint) watchesByConn() string {
	byConn := e.watchedBy()
	var b strings.Builder
	for _, c := range e.s.conns.on(e) {
		if len(byConn[c]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "0x%x\n", c.sess.id)
		for _, path := range byConn[c] {
			b.WriteString("\t" + path + "\n")
		}
	}
	return b.String()
}

func (e *Endpoint) watchesByPath() string {
	var b strings.Builder
	for _, path := range e.rep.watches.DataPaths() {
		b.WriteString(path + "\n")
		for _, client := range e.rep.watches.DataWatchers(path) {
			fmt.Fprintf(&b, "\t0x%x\n", client.Events.(*conn).sess.id)
		}
	}
	return b.String()
}
