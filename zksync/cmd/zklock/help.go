package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// usage is the text that a wrong call prints.
const usage = `usage: zklock COMMAND [OPTION ...] PATH [-- COMMAND [ARGUMENT ...]]

  run         run a command while a lock is held, or while this process leads
  ls          list the locks, elections, queues, ... below a path
  who         show the holders and waiting contenders of a path
  watch       show them, and each change, until interrupted
  break       take a lock away from its holders; asks first
  completion  print shell completion: bash, zsh or fish
  help        print the manual, or the manual of a command
`

// A page is the manual of a command. The options are added from their definitions.
type page struct{ synopsis, description, statuses, examples string }

// failures are the exit statuses of all commands that ask the servers and print.
const failures = `2  wrong usage
3  no server could be reached, the servers refused, or the output could not be written
128+n  signal n has ended zklock
`

var pages = map[string]page{
	"run": {
		"zklock run [-lock | -rlock | -wlock | -sem N | -elect] [-try | -wait DURATION] [OPTION ...] PATH [--] COMMAND [ARGUMENT ...]",
		`Runs COMMAND while the lock at PATH is held, as flock(1) does on one machine.
PATH is created if it does not exist. Use one kind of lock for a path, since
different kinds do not exclude each other:

    -lock           the default, as flock -x: excludes every other -lock, the
                    Mutex of this toolkit and the InterProcessMutex of Curator
    -rlock, -wlock  as flock -s and -x: one -wlock excludes every -rlock and
                    every other -wlock, the RWMutex of this toolkit and the
                    InterProcessReadWriteLock of Curator
    -sem N          a unit of a semaphore, excludes the holders after N units
    -elect          an election, excludes every other -elect

So a -lock runs beside an -rlock or a -wlock of the same path: give -wlock where
others give -rlock.

COMMAND gets the terminal's foreground and finds its fencing token in
ZKSYNC_TOKEN. The token is greater than the token of every earlier holder, so a
resource that remembers the greatest token can refuse a holder that is late.

If the lock cannot be proven any longer, COMMAND and all processes of its
process group get TERM, at most a sixth of the session timeout ahead of time,
and KILL before the servers can give the lock away, whatever -grace is. If an
operator breaks the lock, they get KILL at once. A process that leaves the
process group (setsid) is not killed. A machine that was suspended runs on for
a moment before the kill: only the fencing token protects against that.

If zklock itself gets KILL, Linux kills COMMAND, and other systems kill nothing.
The processes that COMMAND has started run on then, also beside the next holder:
let a shell exec the program that does the work, or rely on the fencing token.

When COMMAND ends, the processes that it leaves in its process group get KILL.

If COMMAND has become another user, as by sudo, the system may refuse its signals.
zklock says so, and holds the lock for as long as it can while COMMAND runs. After
a loss COMMAND runs on, also beside the next holder. INT, TERM or HUP to zklock
then end zklock with status 4, and COMMAND runs on without the lock.

INT, TERM and HUP to zklock send TERM to the process group, and KILL after
-grace. If the servers do not answer then, zklock ends without a release, and the
lock goes with the session. Ctrl-C reaches COMMAND alone. A COMMAND that stops, as
by Ctrl-Z, is continued, once in a second at most: a stopped holder would lose the
lock.

While zklock waits, it names the holder after 3 s and then at growing intervals.
Messages that nobody reads from the standard error are dropped and counted. They
delay no kill, and the end of zklock by 2 s at most.`,
		`0-255     the exit status of COMMAND
1         others hold the lock (-try, -wait), or an operator has removed the
          contender before COMMAND was started; another status with -E
2         wrong usage
3         no server could be reached, the servers refused, or the lock was lost
          before COMMAND was started
4         the lock was lost while COMMAND ran, or a signal has ended zklock while
          COMMAND ran on, because it could not be killed
126, 127  COMMAND could not be started, or was not found
128+n     signal n has ended COMMAND, or zklock before COMMAND was started
`,
		`zklock run /locks/backup -- pg_dump mydb
zklock run -try /locks/cron -- ./nightly || echo "others run it"
zklock run -sem 4 -wait 10m /jobs/build -- make
zklock run -elect /scheduler -- ./scheduler --foreground
`},
	"ls": {
		"zklock ls [-json] PATH",
		`Lists the children of PATH: what each is, the number of contenders that wait or
of messages in a queue, the holder, and the clients that use it. What uses a path
is a guess from the names and the data of its znodes. If some children cannot be
read, ls shows the others, and the exit status is 3.`,
		"", "zklock ls /locks\nzklock ls -json /locks | jq '.[] | select(.depth > 10)'\n"},
	"who": {
		"zklock who [-json] PATH",
		`Shows the holders of PATH and the contenders that wait, in order: ID, session,
fencing token, and since when they are in line. The ID is what the contender has
written: host:pid by default for this toolkit, the address of the host for
Curator, an identifier for kazoo. The session leads to the client's address: look
for it in the answer of the four-letter word cons. Of contenders of several kinds
at one PATH, as a lock and an election, it shows one kind, and counts the others.`,
		"0  somebody holds or waits, or PATH is a queue or a barrier\n1  nobody holds or waits, also if PATH does not exist; with -json, participants is empty\n" + failures,
		"zklock who /locks/backup\nzklock who /scheduler; [ $? -ne 1 ] || echo \"nobody leads\"\n"},
	"watch": {
		"zklock watch [-json] PATH",
		`Shows the participants of PATH, and then each contender that joins, holds or
leaves, until it is interrupted. With -json each change is a line.`,
		"", "zklock watch /scheduler\n"},
	"break": {
		"zklock break [-yes] [-all] [-id ID] [-json] PATH",
		`Deletes the znodes of the holders of PATH, after a question for each. The next
contender holds then. A holder that watches its znode learns of the loss: the
contexts of this toolkit end, and zklock run kills its command. Others, such as
the locks of Curator and kazoo, go on as if they held the lock: stop their
process first.`,
		"0  broken\n1  nobody held the lock, its holder left before the answer, or the answer was no\n" + failures,
		"zklock break /locks/backup\nzklock break -id host-a:4711 -yes /locks/backup\n"},
	"completion": {
		"zklock completion bash|zsh|fish",
		`Prints the completion of a shell: of commands, options, and, in bash and zsh, of
paths, which it asks the servers of ZOOKEEPER_SERVERS for.`,
		"0  success\n2  wrong usage\n3  the output could not be written\n",
		"source <(zklock completion bash)\nzklock completion fish | source\n"},
}

const generalManual = `NAME
    zklock - hold, show and break locks of a ZooKeeper ensemble

SYNOPSIS
%s
DESCRIPTION
    zklock works on the locks, read-write locks, semaphores and elections of
    this toolkit, of Curator, of kazoo and of go-zookeeper.

ENVIRONMENT
    ZOOKEEPER_SERVERS  the servers, if -servers does not name them
    ZKSYNC_TOKEN       set for the command of run: its fencing token

DURATIONS
    A DURATION is a number with its unit, or several of them, as 10s, 500ms or
    1h30m.

FILES
    -auth-file names a file of credentials, because other users of the machine
    can read the arguments of a process. Each line is one of

        digest:NAME:PASSWORD    for ACLs of the scheme digest
        sasl:NAME:PASSWORD      for SASL by DIGEST-MD5, and ACLs of the scheme sasl
        SCHEME:CREDENTIAL       for any other scheme that the servers know

    Empty lines and lines that begin with # do not count. Spaces at the end of a
    line belong to the credential.

EXIT STATUS
    0 is success, 1 that others hold or nobody holds, 2 a wrong usage, and 3 that
    no server could be reached, that the servers refused, or that the output could
    not be written. 128+n is that signal n has ended zklock. run has more.

SEE ALSO
    zklock help COMMAND
`

// help prints the manual and returns the exit status.
func help(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintf(stdout, generalManual, indent(usage))
		return 0
	}
	p, ok := pages[args[0]]
	if !ok {
		fmt.Fprintf(stderr, "zklock: there is no manual of %q\n%s", args[0], usage)
		return statusUsage
	}
	statuses := p.statuses
	if statuses == "" {
		statuses = "0  success\n" + failures
	}
	about := ""
	if _, ok := subcommands[args[0]]; ok {
		about = "OPTIONS\n" + options(args[0]) + "\n"
	}
	fmt.Fprintf(stdout, "NAME\n    zklock %s\n\nSYNOPSIS\n%s\nDESCRIPTION\n%s\n%sEXIT STATUS\n%s\nEXAMPLES\n%s",
		args[0], indent(p.synopsis), indent(p.description), about, indent(statuses), indent(p.examples))
	return 0
}

// options describes the options of a command.
func options(name string) string {
	var b strings.Builder
	(&program{}).flagSet(name, subcommands[name]()).VisitAll(func(f *flag.Flag) {
		value, about := flag.UnquoteUsage(f)
		fmt.Fprintf(&b, "    -%s %s\n        %s", f.Name, value, about)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
			fmt.Fprintf(&b, " (default %s)", f.DefValue)
		}
		b.WriteString("\n")
	})
	return b.String()
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		if line != "\n" {
			b.WriteString("    ")
		}
		b.WriteString(line)
	}
	return b.String()
}
