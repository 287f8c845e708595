package jute

// ACL is one entry of an access control list.
type ACL struct {
	Perms  int32
	Scheme string
	ID     string
}

const (
	PermRead   = 1
	PermWrite  = 2
	PermCreate = 4
	PermDelete = 8
	PermAdmin  = 16
	PermAll    = 31
)

var OpenACL = []ACL{{PermAll, "world", "anyone"}}

// ACLs appends to list.
func (d *Decoder) ACLs(list []ACL) []ACL {
	for range d.count(12) {
		list = append(list, ACL{Perms: d.Int32(), Scheme: d.nullableStr(), ID: d.nullableStr()})
		if d.Bad {
			return nil
		}
	}
	return list
}

func AppendACLs(b []byte, list []ACL) []byte {
	b = AppendInt32(b, int32(len(list)))
	for _, a := range list {
		b = AppendInt32(b, a.Perms)
		b = AppendString(b, a.Scheme)
		b = AppendString(b, a.ID)
	}
	return b
}
