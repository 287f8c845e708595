package simulation_test

import (
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An object is a primitive with a history.
type object struct {
	name    string
	history *history
	model   porcupine.Model
	check   func() []string // replaces the search by the model, if not nil
}

// object registers a primitive and returns its history.
func (w *world) object(name string, model porcupine.Model) *history {
	o := &object{name: name, history: &history{}, model: model}
	w.objects = append(w.objects, o)
	return o.history
}

func (o *object) verdict() []string {
	if o.check != nil {
		return o.check()
	}
	o.history.mu.Lock()
	defer o.history.mu.Unlock()
	switch porcupine.CheckOperationsTimeout(o.model, o.history.ops, 10*time.Second) {
	case porcupine.Illegal:
		return []string{"the history of " + o.name + " is not one of its model"}
	case porcupine.Unknown:
		return []string{"the history of " + o.name + " could not be checked in time"}
	}
	return nil
}

// onChange makes the servers call f when a request has created or deleted path, before any client
// learns of the change and before any other request.
func (w *world) onChange(path string, f func(there bool)) {
	change := func(code zkserver.OpCode, at string) {
		if at != path {
			return
		}
		switch code {
		case zkserver.OpCreate, zkserver.OpCreate2:
			f(true)
		case zkserver.OpDelete:
			f(false)
		}
	}
	w.srv.Inject(zkserver.Fault{Path: path, At: zkserver.AfterCommit, Match: func(op zkserver.Op) bool {
		failed := func(sub zkserver.SubOp) bool { return sub.Err != 0 }
		if op.Err != 0 || slices.ContainsFunc(op.Sub, failed) {
			return false
		}
		change(op.Code, op.Path)
		for _, sub := range op.Sub {
			change(sub.Code, sub.Path)
		}
		return false
	}})
}
