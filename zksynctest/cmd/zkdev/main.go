// Command zkdev is a ZooKeeper server for development: it starts in
// milliseconds, needs no Java, and any client can use it, zkCli.sh included.
//
//	zkdev -listen 127.0.0.1:2181
//	zkdev -data zk.data
//	zkdev -config zoo.cfg
//
// Install it by
//
//	go install github.com/go-zksync/toolkit/zksynctest/cmd/zkdev@latest
//
// Without -data everything is lost when zkdev ends. With -data the tree, the sessions
// and the zxid are kept in a file: every acknowledged write survives kill -9, and
// with -fsync also a crash of the machine. Zkdev ends with SIGINT or SIGTERM.
//
// Without -config zkdev allows TTL nodes, and the four-letter word srvr alone, as a
// real server does; -4lw allows more words. From a configuration file of a real server
// zkdev takes the properties that it supports, and says which properties it leaves
// out.
//
// A file with several server.N lines is the configuration of an ensemble. Its servers
// know nothing of each other unless they are in one process, which needs -ensemble:
//
//	zkdev -config zoo.cfg -ensemble
//
// serves all of them, each at the port for clients of its server.N line, if they have
// different ones, or else at the address and the ports after it. Without -ensemble such
// a file is an error: started once for each server, as real ones are, zkdev would be
// three ensembles of three. A file with one server.N line is served at the port of
// that line.
//
// It is not for production: it runs on one machine, in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// options are the settings of the command line and of the file that it names.
type options struct {
	listen  string
	servers []string // the address of each
	config  zkserver.Config
	ignored []zkserver.IgnoredKey
}

const defaultListen = "127.0.0.1:2181"

func parse(args []string, stderr io.Writer) (*options, error) {
	flags := flag.NewFlagSet("zkdev", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "Zkdev is a ZooKeeper server for development and tests, without Java: it runs on one machine, in memory or with a data file.\n\nusage: zkdev [options]\n")
		flags.PrintDefaults()
	}
	listen := flags.String("listen", "", "address for clients; port 0 for any that is free (default "+defaultListen+", or that of -config)")
	file := flags.String("config", "", "configuration file, as zoo.cfg")
	data := flags.String("data", "", "file that keeps tree, sessions and zxid over restarts")
	words := flags.String("4lw", "", "four-letter words to answer, as stat,mntr, or * for all (default srvr, or those of -config)")
	ensemble := flags.Bool("ensemble", false, "with -config, serve all server.N of the file in this process")
	fsync := flags.Bool("fsync", false, "with -data, survive a crash of the machine too")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is not an option; zkdev -h lists them", flags.Arg(0))
	}
	if *fsync && *data == "" {
		return nil, errors.New("-fsync needs -data")
	}
	o := &options{listen: defaultListen}
	var members []zkserver.ConfigServer
	if *file == "" {
		o.config = zkserver.Config{ExtendedTypes: true}
	} else {
		c, err := zkserver.ReadConfig(*file)
		if err != nil {
			return nil, err
		}
		o.config, o.ignored, members = c.Config, c.Ignored, c.Servers
		if c.ClientAddr != "" {
			o.listen = c.ClientAddr
		}
	}
	if *listen != "" {
		o.listen = *listen
	}
	if *words != "" {
		o.config.FourLetterWords = []string{"srvr"} // as a real server
		for word := range strings.SplitSeq(*words, ",") {
			if word = strings.TrimSpace(word); word != "" {
				o.config.FourLetterWords = append(o.config.FourLetterWords, word)
			}
		}
	}
	switch several := len(members) > 1; {
	case several && !*ensemble:
		return nil, severalServers(*file, members)
	case *ensemble && !several:
		return nil, errors.New("-ensemble needs a -config with several server.N")
	}
	var err error
	if o.servers, err = addresses(o.listen, *listen != "", members); err != nil {
		return nil, err
	}
	o.config.DataFile, o.config.DataSync = *data, *fsync
	return o, nil
}

// run serves until ctx ends, and returns the exit status.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	logger := log.New(stderr, "zkdev: ", log.LstdFlags|log.Lmsgprefix)
	o, err := parse(args, stderr)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		logger.Print(err)
		return 2
	}
	for _, key := range o.ignored {
		logger.Printf("line %d of the configuration, %s=%s: %s", key.Line, key.Key, key.Value, key.Why)
	}
	if err := serve(ctx, o, logger); err != nil {
		logger.Print(err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, o *options, logger *log.Logger) (err error) {
	o.config.Logf = logger.Printf
	srv, err := zkserver.NewEnsemble(o.config, len(o.servers))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Close()) }()
	if o.config.DataFile != "" {
		logger.Printf("%s has %d sessions, zxid %#x", o.config.DataFile, len(srv.Sessions()), srv.Zxid())
	} else {
		logger.Print("all is kept in memory; -data keeps it in a file")
	}

	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close() // the listeners that are not served yet
		}
	}()
	for _, address := range o.servers {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		listeners = append(listeners, l)
	}
	ended := make(chan error, len(listeners))
	for i, l := range listeners {
		logger.Printf("listening on %v", l.Addr())
		go func() { ended <- srv.Endpoint(i + 1).Serve(l) }()
	}
	select {
	case <-ctx.Done():
		logger.Print("stopping")
		return nil
	case err := <-ended:
		return err
	}
}
