package zksync_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
)

// go vet reports copies of each primitive, and of a Message. Breaks if one of them loses its field of type noCopy.
func TestVetReportsCopies(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[zksync.Mutex](), reflect.TypeFor[zksync.RWMutex](), reflect.TypeFor[zksync.Semaphore](), reflect.TypeFor[zksync.Election](),
		reflect.TypeFor[zksync.Barrier](), reflect.TypeFor[zksync.DoubleBarrier](), reflect.TypeFor[zksync.Group](), reflect.TypeFor[zksync.Message](),
		reflect.TypeFor[zksync.Queue](), reflect.TypeFor[zksync.PriorityQueue](), reflect.TypeFor[zksync.DelayQueue](),
	} {
		if !hasLocker(typ) {
			t.Errorf("%v: go vet allows copies, because no field is a sync.Locker", typ)
		}
	}
}

// hasLocker reports whether a struct contains a sync.Locker, as the check copylocks of go vet does.
func hasLocker(typ reflect.Type) bool {
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[sync.Locker]()) {
		return true
	}
	if typ.Kind() == reflect.Struct {
		for i := range typ.NumField() {
			if hasLocker(typ.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
