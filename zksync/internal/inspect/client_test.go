package inspect

import (
	"testing"

	"github.com/go-zksync/toolkit/zksync/internal/line"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

const uuid = "0a1b2c3d-0a1b-4c3d-8a1b-0a1b2c3d4e5f"

// The client library of a participant is recognised by the name and the data of its
// znode. To see this test fail, take a case out of clientOf.
func TestClientOf(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		name, data string
		want       string
	}{
		{Lock, "_c_" + uuid + "-lock-0000000003", "10.0.0.7", ClientCurator},
		{Lock, "_c_" + uuid + "-lock-0000000003", "host:12", ClientZksync},
		{Lock, "_c_" + uuid + "-lock-0000000003", "node-1", ClientZksyncOrCurator},
		{Lock, "_c_" + uuid + "__lock__0000000003", "host:12", ClientZksync},
		{Lock, "0a1b2c3d0a1b4c3d8a1b0a1b2c3d4e5f__lock__0000000003", "", ClientKazoo},
		{Lock, "_c_0a1b2c3d0a1b4c3d8a1b0a1b2c3d4e5f-lock-0000000003", "", ClientGoZookeeper},
		{Lock, "x-72057594037927936-0000000003", "", ClientRecipe},
		{Lock, "lock-0000000003", "", ""},
		{DoubleBarrier, uuid, "", ClientCurator},
		{DoubleBarrier, "member-a", "", ClientZksync},
		{Queue, "_c_" + uuid + "-consumer", "", ClientZksync},
		{Group, "a", "", ""},
	} {
		if got := clientOf(c.kind, line.Listed{Node: znode.Node{Name: c.name, Data: []byte(c.data)}}); got != c.want {
			t.Errorf("%s with the data %q is a znode of %q, want %q", c.name, c.data, got, c.want)
		}
	}
}
