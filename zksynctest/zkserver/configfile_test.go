package zkserver_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ReadConfig reads a typical zoo.cfg of an operator.
func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zoo.cfg")
	text := `# A file as people have them
tickTime=500
initLimit = 10
syncLimit : 5
dataDir=/var/lib/zookeeper
clientPort=2181
clientPortAddress=127.0.0.1
maxClientCnxns=60
minSessionTimeout=600
maxSessionTimeout=60000
zookeeper.extendedTypesEnabled=true
readonlymode.enabled=TRUE
reconfigEnabled=false
enforceQuota=true
4lw.commands.whitelist=stat, ruok,\
    mntr
jute.maxbuffer=0x400000
znode.container.checkIntervalMs=1000
znode.container.maxNeverUsedIntervalMs=5000
DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=
autopurge.snapRetainCount=3
server.2=zk2:2888:3888;2181
server.1=zk1:2888:3888
server.10=[::1]:2888:3888:observer;[::1]:2181
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := zkserver.ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &zkserver.ConfigFile{
		Config: zkserver.Config{
			TickTime:          500 * time.Millisecond,
			MinSessionTimeout: 600 * time.Millisecond,
			MaxSessionTimeout: time.Minute,
			MaxClientConns:    60,
			ExtendedTypes:     true,
			SyncLimit:         5,
			FourLetterWords:   []string{"stat", "ruok", "mntr", "srvr"},
			EnforceQuota:      true,
			SuperDigest:       "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
		},
		ClientAddr: "127.0.0.1:2181",
		Servers: []zkserver.ConfigServer{
			{ID: 1, Value: "zk1:2888:3888"},
			{ID: 2, Value: "zk2:2888:3888;2181"},
			{ID: 10, Value: "[::1]:2888:3888:observer;[::1]:2181"},
		},
		InitLimit: 10,
		Ignored: []zkserver.IgnoredKey{
			{Line: 5, Key: "dataDir", Value: "/var/lib/zookeeper", Why: "it means nothing to this server"},
			{Line: 12, Key: "readonlymode.enabled", Value: "TRUE", Why: "a real server reads only the option -Dreadonlymode.enabled of Java, and not this line; set Config.ReadOnlyMode in its place"},
			{Line: 17, Key: "jute.maxbuffer", Value: "0x400000", Why: "a real server reads only the option -Djute.maxbuffer of Java, and not this line; set Config.MaxFrame in its place"},
			{Line: 18, Key: "znode.container.checkIntervalMs", Value: "1000", Why: "a real server reads only the option -Dznode.container.checkIntervalMs of Java, and not this line; set Config.ReapInterval in its place"},
			{Line: 19, Key: "znode.container.maxNeverUsedIntervalMs", Value: "5000", Why: "a real server reads only the option -Dznode.container.maxNeverUsedIntervalMs of Java, and not this line; set Config.NeverUsedTTL in its place"},
			{Line: 21, Key: "autopurge.snapRetainCount", Value: "3", Why: "it means nothing to this server"},
			{Line: 24, Key: "server.10", Value: "[::1]:2888:3888:observer;[::1]:2181", Why: "there are no observers here; this member has a vote"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	start(t, got.Config)
	for i, want := range []string{"", "2181", "2181"} {
		if port := got.Servers[i].ClientPort(); port != want {
			t.Errorf("the port for clients of %s is %q, want %q", got.Servers[i].Value, port, want)
		}
	}
}

// A field that a zoo.cfg does not set has the value of the zero Config, or the default of a real server's file.
func TestConfigDefaults(t *testing.T) {
	for text, want := range map[string]zkserver.ConfigFile{
		"":                                 {},
		"maxClientCnxns=0":                 {},
		"minSessionTimeout=-1":             {},
		"clientPort=0":                     {ClientAddr: ":0"},
		"clientPort=+2181":                 {ClientAddr: ":2181"},
		"4lw.commands.whitelist=*":         {Config: zkserver.Config{FourLetterWords: []string{"*"}}},
		"maxCnxns=7":                       {Config: zkserver.Config{MaxConns: 7}},
		"maxCnxns=0":                       {Config: zkserver.Config{MaxConns: -1}},
		"4lw.commands.whitelist=srvr,stat": {Config: zkserver.Config{FourLetterWords: []string{"srvr", "stat"}}},
		"4lw.commands.whitelist=ruok":      {Config: zkserver.Config{FourLetterWords: []string{"ruok", "srvr"}}},
		"clientPort=2181\nclientPortAddress=0.0.0.0": {ClientAddr: ":2181"},
		"clientPort=2181\nclientPortAddress=::1":     {ClientAddr: "[::1]:2181"},
		"clientPort=2181\nclientPortAddress=[::1]":   {ClientAddr: "[::1]:2181"},
		"clientPort=2181\nclientPortAddress=zk-1.x":  {ClientAddr: "zk-1.x:2181"},
		"tickTime=nonsense\ntickTime=3000": {
			Ignored: []zkserver.IgnoredKey{
				{Line: 1, Key: "tickTime", Value: "nonsense", Why: "line 2 gives it again"},
			},
		},
	} {
		want.Config.TickTime = 3 * time.Second
		if text != "maxClientCnxns=0" {
			want.Config.MaxClientConns = 60
		}
		got, err := zkserver.ParseConfig(strings.NewReader(text))
		if err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
}

// The error for a mistake in a zoo.cfg names the line, the key, the value and a valid alternative.
func TestConfigMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"ticktime=2000":                 {"line 1", "ticktime=2000", "did you mean tickTime?"},
		"\n\nclientport=2181":           {"line 3", "clientport=2181", "did you mean clientPort?"},
		"zookeeper.tickTimes=1":         {"zookeeper.tickTimes=1", "did you mean tickTime?"},
		"maxClientConns=1":              {"did you mean maxClientCnxns?"},
		"dataDirr=/x":                   {"did you mean dataDir?"},
		"what.is.this=1":                {"line 1", "what.is.this=1", "there is no such key"},
		"tickTime=2s":                   {"tickTime=2s", "milliseconds, at least 1"},
		"tickTime=0":                    {"tickTime=0", "at least 1"},
		"tickTime=":                     {"tickTime=", "no value"},
		"tickTime=99999999999999999999": {"milliseconds"},
		"minSessionTimeout=0":           {"minSessionTimeout=0", "-1 for the default"},
		"minSessionTimeout=5000\nmaxSessionTimeout=4000":  {"line 2", "maxSessionTimeout=4000", "less than", "5s"},
		"maxSessionTimeout=5999":                          {"line 1", "maxSessionTimeout=5999", "less than", "6s"},
		"minSessionTimeout=60001":                         {"line 1", "minSessionTimeout=60001", "1m0.001s"},
		"tickTime=2147483647":                             {"line 1", "tickTime=2147483647", "32 bits"},
		"clientPort=65536":                                {"clientPort=65536", "a port"},
		"clientPortAddress=localhost":                     {"clientPortAddress=localhost", "needs a clientPort"},
		"clientPort=1\nclientPortAddress=localhost:2181":  {"line 2", "without a port"},
		"maxClientCnxns=-1":                               {"maxClientCnxns=-1", "0 for any number"},
		"extendedTypesEnabled=yes":                        {"extendedTypesEnabled=yes", "true or false"},
		"4lw.commands.whitelist=ruok,sttat":               {`"sttat"`, "ruok", "* for all"},
		"DigestAuthenticationProvider.superDigest=secret": {"superDigest=secret", "base64"},
		"syncLimit=0":                                     {"syncLimit=0", "at least 1"},
		"server.x=a:1:2":                                  {"server.x=a:1:2", "server.N"},
		"server.256=a:1:2":                                {"between 0 and 255"},
		"server.1=a":                                      {"server.1=a", "host:2888:3888"},
		"server.1=a:1:2:3":                                {"host:2888:3888"},
		"server.1=:1:2":                                   {"host:2888:3888"},
		"server.1=a:1:2;":                                 {"host:2888:3888"},
		"tickTime=1\ndynamicConfigFile=/zoo.dyn":          {"line 2: dynamicConfigFile=/zoo.dyn", "copy its lines server.N into this one"},
		"server.1=a:1:x|b:1:2":                            {"host:2888:3888"},
		`a=\u1`:                                           {"line 1", "hexadecimal"},
	} {
		got, err := zkserver.ParseConfig(strings.NewReader(text))
		if err == nil {
			t.Errorf("%q: %+v", text, got)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v: want %q in that", text, err, part)
			}
		}
	}
}

// ReadConfig and ParseConfig errors name the file and the line that they cannot read.
func TestConfigThatCannotBeRead(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "zoo.cfg")
	if _, err := zkserver.ReadConfig(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(missing, []byte("ticktime=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := zkserver.ReadConfig(missing); err == nil || !strings.Contains(err.Error(), missing+": line 1") {
		t.Errorf("%v", err)
	}
	if _, err := zkserver.ParseConfig(iotest.ErrReader(os.ErrClosed)); err == nil {
		t.Error("no error from a reader that fails")
	}
	if _, err := zkserver.ParseConfig(strings.NewReader(strings.Repeat("#", 2<<20))); err == nil {
		t.Error("no error for two megabytes")
	}
}

// ParseConfig returns for every input, and a server starts with every Config that it accepts.
func FuzzConfig(f *testing.F) {
	f.Add("tickTime=500\nclientPort=2181\nserver.1=a:1:2;3\n4lw.commands.whitelist=*")
	f.Add("minSessionTimeout=1\nmaxSessionTimeout=2\\\n000\n# x\ndataDir=/x")
	f.Add("zookeeper.jute.maxbuffer = 0xfffff\nclientPort:1\nclientPortAddress [::1]")
	f.Add(`DigestAuthenticationProvider.superDigest=super:\u0041\=`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := zkserver.ParseConfig(strings.NewReader(text))
		if err != nil {
			return
		}
		s, err := zkserver.New(c.Config)
		if err != nil {
			t.Fatalf("%q was accepted and makes no server: %v", text, err)
		}
		s.Close()
		if lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1; len(c.Ignored)+len(c.Servers) > lines {
			t.Fatalf("%d keys made of %d lines", len(c.Ignored)+len(c.Servers), lines)
		}
	})
}
