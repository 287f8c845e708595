package tree

import "github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"

// aclTable has the lists that znodes share. A million znodes with the same rights
// hold one list between them.
type aclTable map[string]*[]jute.ACL

// aclsShared is how many different lists are remembered. When there are more, all are
// forgotten, and later znodes share new lists.
const aclsShared = 1024

// share returns the list that all znodes with the same rights point to.
func (t *aclTable) share(list []jute.ACL) *[]jute.ACL {
	if len(list) == 1 && list[0] == jute.OpenACL[0] {
		return &jute.OpenACL
	}
	var room [128]byte
	key := jute.AppendACLs(room[:0], list)
	if shared, ok := (*t)[string(key)]; ok {
		return shared
	}
	if *t == nil || len(*t) >= aclsShared {
		*t = aclTable{}
	}
	shared := new([]jute.ACL)
	*shared = list
	(*t)[string(key)] = shared
	return shared
}
