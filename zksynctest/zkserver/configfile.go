package zkserver

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// ConfigFile is the parsed configuration file of a real server, a zoo.cfg.
type ConfigFile struct {
	Config Config
	// ClientAddr is the address to listen on, from clientPortAddress and clientPort: ":2181"
	// listens on all interfaces. Empty means that the file has no clientPort.
	ClientAddr string
	// Servers lists the members of the ensemble in the order of their numbers. An empty list or a
	// single member is a standalone server. One process serves all members with [NewEnsemble]:
	// processes that serve one member each would not know of each other.
	Servers []ConfigServer
	// InitLimit is in ticks, and 0 if the file does not set it.
	InitLimit int
	// Ignored lists, in the order of the file, the keys that only a real server uses, and the keys
	// that a later line sets again.
	Ignored []IgnoredKey
}

// ConfigServer is one server.N line of a configuration file.
type ConfigServer struct {
	ID    int
	Value string // host:port:port and so on, as written in the file
}

// ClientPort returns the client port after the semicolon, or "".
func (c ConfigServer) ClientPort() string {
	_, client, _ := strings.Cut(c.Value, ";")
	return client[strings.LastIndexByte(client, ':')+1:]
}

// IgnoredKey is a line of a configuration file without effect.
type IgnoredKey struct {
	Line       int
	Key, Value string
	Why        string
}

// maxConfigFile bounds the size of a configuration file.
const maxConfigFile = 1 << 20

// ReadConfig reads the configuration file of a real server. Its errors are those of [ParseConfig],
// with the name of the file.
func ReadConfig(path string) (*ConfigFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("zkserver: read the configuration: %w", err)
	}
	defer f.Close()
	c, err := parseConfig(f)
	if err != nil {
		return nil, fmt.Errorf("zkserver: %s: %w", path, err)
	}
	return c, nil
}

// ParseConfig reads a configuration in the form of a real server's zoo.cfg: lines of key=value in
// the syntax of Java's properties. Keys may have the prefix "zookeeper.", like system properties.
// A key that is missing has the default of a real server's file: a tickTime of 3000, and 60 for maxClientCnxns.
// Ignored lists the keys that a real server knows and this server does not use, and the keys that a
// real server does not read from its file, such as jute.maxbuffer and readonlymode.enabled. An
// unknown key and an invalid value are errors; the error names the line, the key, the value and the
// values that would be valid.
func ParseConfig(r io.Reader) (*ConfigFile, error) {
	c, err := parseConfig(r)
	if err != nil {
		return nil, fmt.Errorf("zkserver: the configuration: %w", err)
	}
	return c, nil
}

func parseConfig(r io.Reader) (*ConfigFile, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxConfigFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfigFile {
		return nil, fmt.Errorf("longer than %d bytes, which no zoo.cfg is", maxConfigFile)
	}
	list, err := parseProperties(string(text))
	if err != nil {
		return nil, err
	}
	// The defaults of a real server's file, where they are not those of a Config.
	defaults := Config{TickTime: 3 * time.Second, MaxClientConns: 60}
	p := configParser{ConfigFile: &ConfigFile{Config: defaults}, lines: map[string]property{}}
	last := map[string]int{}
	for i, prop := range list {
		last[shortKey(prop.key)] = i
	}
	for i, prop := range list {
		key := shortKey(prop.key)
		if again := last[key]; again != i {
			p.ignore(prop, fmt.Sprintf("line %d gives it again", list[again].line))
			continue
		}
		p.lines[key] = prop
		if err := p.set(key, prop); err != nil {
			return nil, err
		}
	}
	return p.ConfigFile, p.finish()
}

func shortKey(key string) string { return strings.TrimPrefix(key, "zookeeper.") }

// configParser is the state of a parser: the result and the values that several lines contribute
// to.
type configParser struct {
	*ConfigFile
	lines      map[string]property // by key
	host, port string
}

func (p *configParser) ignore(prop property, why string) {
	p.Ignored = append(p.Ignored, IgnoredKey{prop.line, prop.key, prop.value, why})
}

// wrong returns the error for an invalid value.
func wrong(prop property, format string, args ...any) error {
	return fmt.Errorf("line %d: %s=%s: %s", prop.line, prop.key, prop.value, fmt.Sprintf(format, args...))
}

func (p *configParser) set(key string, prop property) error {
	if field, ok := configKeys[key]; ok {
		if prop.value == "" {
			return wrong(prop, "there is no value; leave the line out for the default")
		}
		return field(p, prop)
	}
	if field, ok := javaOptions[key]; ok {
		p.ignore(prop, "a real server reads only the option -D"+key+" of Java, and not this line; set Config."+field+" in its place")
		return nil
	}
	if strings.HasPrefix(key, "server.") {
		return p.server(strings.TrimPrefix(key, "server."), prop)
	}
	if slices.Contains(meaningless, key) || slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(key, f) }) {
		p.ignore(prop, "it means nothing to this server")
		return nil
	}
	if near := nearestKey(key); near != "" {
		return fmt.Errorf("line %d: %s=%s: there is no such key; did you mean %s?", prop.line, prop.key, prop.value, near)
	}
	return fmt.Errorf("line %d: %s=%s: there is no such key", prop.line, prop.key, prop.value)
}

// finish checks the constraints between several lines.
func (p *configParser) finish() error {
	if prop, ok := p.lines["clientPortAddress"]; ok && p.port == "" {
		return wrong(prop, "it needs a clientPort")
	}
	if p.port != "" {
		p.ClientAddr = joinHostPort(p.host, p.port)
	}
	p.allowServersOwn()
	slices.SortFunc(p.Servers, func(a, b ConfigServer) int { return a.ID - b.ID })
	// A real server lets no bound adapt to the other.
	cfg := p.Config
	cfg.MinSessionTimeout = cmp.Or(cfg.MinSessionTimeout, 2*cfg.TickTime)
	cfg.MaxSessionTimeout = cmp.Or(cfg.MaxSessionTimeout, 20*cfg.TickTime)
	_, err := cfg.withDefaults()
	if err == nil {
		return nil
	}
	// Each value is valid alone, so the error is a contradiction between two values.
	for _, key := range []string{"maxSessionTimeout", "minSessionTimeout", "tickTime"} {
		if prop, ok := p.lines[key]; ok {
			return wrong(prop, "%s", strings.TrimPrefix(err.Error(), "zkserver: "))
		}
	}
	return err
}

// allowServersOwn adds the words that a real server needs itself to the whitelist, like a real
// server.
func (p *configParser) allowServersOwn() {
	words := p.Config.FourLetterWords
	if words == nil || slices.Contains(words, "*") {
		return
	}
	if !slices.Contains(words, "srvr") {
		words = append(words, "srvr")
	}
	p.Config.FourLetterWords = words
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }
