package main

import (
	"errors"
	"flag"
	"strings"
	"time"
)

// A duration is the value of an option. Unlike the error of package flag, its error names a
// valid value.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

func (d *duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("want a DURATION with its unit, as 10s, 500ms or 1h30m")
	}
	*d = duration(parsed)
	return nil
}

func durationVar(fs *flag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	fs.Var((*duration)(d), name, usage)
}

// apiAdvice is what errors of package session advise to a programmer, each with the advice
// for a user of zklock.
var apiAdvice = []string{
	"create the chroot by session.WithCreateChroot", "create the znode of the chroot, as by zkCli.sh -server HOST:PORT create /CHROOT",
	", or as ServerName of session.WithTLS", "",
	"RootCAs of session.WithTLS", "-ca",
	"Certificates of session.WithTLS", "-cert and -key",
	"session.WithTLS", "-tls",
	"session.WithAuth or WithSASL", "-auth-file",
	"session.WithSASL", "a line sasl:NAME:PASSWORD in -auth-file",
	"session.WithTimeout", "-timeout",
}

// inOptions replaces the advice. The first texts of the list come before their parts.
var inOptions = strings.NewReplacer(apiAdvice...)
