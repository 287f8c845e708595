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
// Without -data all is gone when it ends. With it the tree, the sessions and the
// zxid are kept in a file: what a client was told is there again after kill -9,
// and with -fsync after a crash of the machine. It ends with SIGINT or SIGTERM.
//
// Without -config it answers all four-letter words and allows TTL nodes. From a
// configuration file of a real server it takes what makes sense for it, and says
// what it leaves out. A file with several server.N makes an ensemble: its servers
// are at the address and, for the second and later ones, the ports after it.
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
	"strconv"
	"syscall"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// options are what the command line says, and the file that it names.
type options struct {
	listen  string
	servers int
	config  zkserver.Config
	ignored []zkserver.IgnoredKey
}

const defaultListen = "127.0.0.1:2181"

func parse(args []string, stderr io.Writer) (*options, error) {
	flags := flag.NewFlagSet("zkdev", flag.ContinueOnError)
	flags.SetOutput(stderr)
	listen := flags.String("listen", "", "address for clients; port 0 for any that is free (default "+defaultListen+", or that of -config)")
	file := flags.String("config", "", "configuration file, as zoo.cfg")
	data := flags.String("data", "", "file that keeps tree, sessions and zxid over restarts")
	fsync := flags.Bool("fsync", false, "with -data, survive a crash of the machine too")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%q is not an option; zkdev -h lists them", flags.Arg(0))
	}
	if *fsync && *data == "" {
		return nil, errors.New("-fsync means nothing without -data")
	}
	o := &options{listen: defaultListen, servers: 1}
	if *file == "" {
		o.config = zkserver.Config{FourLetterWords: []string{"*"}, ExtendedTypes: true}
	} else {
		c, err := zkserver.ReadConfig(*file)
		if err != nil {
			return nil, err
		}
		o.config, o.ignored, o.servers = c.Config, c.Ignored, max(len(c.Servers), 1)
		if c.ClientAddr != "" {
			o.listen = c.ClientAddr
		}
	}
	if *listen != "" {
		o.listen = *listen
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
	srv, err := zkserver.NewEnsemble(o.config, o.servers)
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
			l.Close() // those that are not served yet
		}
	}()
	for i := range o.servers {
		address, err := following(o.listen, i)
		if err != nil {
			return err
		}
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

// following is the address of server i, counted from 0.
func following(listen string, i int) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("-listen %s: %w; it must look like %s", listen, err, defaultListen)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || int(n)+i > 65535 {
		return "", fmt.Errorf("-listen %s: port %s must be a number below 65536, with room for the servers after it", listen, port)
	}
	if n > 0 {
		n += uint64(i)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
