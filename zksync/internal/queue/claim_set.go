package queue

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// A claimKey identifies a claimed message: the czxid of its partition, and its name.
type claimKey struct {
	czxid int64
	name  string
}

// A claimSet is a set of claimed messages. The data of a ledger is a claimSet.
type claimSet map[claimKey]struct{}

const (
	// ledgerForm begins the data of a ledger. ledgerAnyForm begins the data of ledgers of all
	// versions of this package.
	ledgerForm    = ledgerAnyForm + "1"
	ledgerAnyForm = "zksync-ledger/"
)

// encode returns the data that a ledger has at a version.
func (s claimSet) encode(version int32) []byte {
	names := make(map[int64][]string)
	for k := range s {
		names[k.czxid] = append(names[k.czxid], k.name)
	}
	var b strings.Builder
	// With the version the data of any two transactions differ, and ledger.send can tell its own
	// write from the write of another client.
	fmt.Fprintf(&b, "%s %d\n", ledgerForm, version)
	for _, czxid := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(&b, "%x %s\n", czxid, encodeNames(names[czxid]))
	}
	return []byte(b.String())
}

// errForeignLedger has ClassFinal: unlike an internal error of a server, it does not pass.
var errForeignLedger = fmt.Errorf("a ledger has data that this version does not know (%w)", zk.ErrBadArguments)

// decode adds the messages in the data of a ledger. Without its first line, the data is that
// of another client, and the consumer has lost its claims.
func (s claimSet) decode(data []byte) error {
	text := string(data)
	switch {
	case !strings.HasPrefix(text, ledgerAnyForm):
		return nil
	case !strings.HasPrefix(text, ledgerForm+" "):
		// If its claims counted as none, a recovery would free messages that a consumer has.
		return fmt.Errorf("%w: %.40q", errForeignLedger, text)
	}
	_, text, _ = strings.Cut(text, "\n")
	for line := range strings.Lines(text) {
		hex, names, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		czxid, err := strconv.ParseInt(hex, 16, 64)
		if err == nil {
			err = decodeNames(names, func(name string) { s[claimKey{czxid, name}] = struct{}{} })
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errForeignLedger, err)
		}
	}
	return nil
}

// LedgerNames returns the names of the messages in the data of a ledger, for tools that
// show the claims of a consumer.
func LedgerNames(data []byte) (names []string, err error) {
	claims := make(claimSet)
	err = claims.decode(data)
	for k := range claims {
		names = append(names, k.name)
	}
	return names, err
}
