package watch

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-zksync/toolkit/session"
)

// A Decoded is the value of a znode.
type Decoded[T any] struct {
	// Value is the decoded data. If the data cannot be decoded, or the znode does not
	// exist, Value is the last value that could be decoded: the zero T if there is
	// none.
	Value T
	// State is the state of the znode, undecoded.
	State State
	// Err wraps the decoder's error, if it could not decode State.Data, and names the path
	// and the version of the data.
	Err error
}

// Value follows the data of a znode as Node does, and decodes it. A value that
// cannot be decoded is an event with an error, and does not end the stream:
//
//	for config, err := range watch.Value(ctx, m, "/config", watch.JSON[Config]).All() {
//		switch {
//		case err != nil:
//			return err // ctx ended, the Manager was closed, or the path may not be read
//		case config.Err != nil:
//			log.Print(config.Err) // go on with config.Value, the last good one
//		case !config.State.Exists:
//			apply(defaults)
//		default:
//			apply(config.Value)
//		}
//	}
//
// decode runs in a goroutine of the stream, and must not change the data. A nil decode
// ends the stream before it begins, with session.ErrInvalidOption.
func Value[T any](ctx context.Context, m *session.Manager, path string, decode func(data []byte) (T, error)) *Stream[Decoded[T]] {
	if decode == nil {
		st := emptyStream[Decoded[T]]("value", path)
		st.end(ctx, fmt.Errorf("%w: the function that decodes is nil", session.ErrInvalidOption))
		return st
	}
	return NewStream(ctx, "value", path, func(ctx context.Context, report func(Decoded[T], any)) error {
		var good T
		var from stamp // the state that was decoded to good
		node := Node(ctx, m, path)
		for state, err := range node.All() {
			if err != nil {
				return err
			}
			value := Decoded[T]{State: state}
			if state.Exists {
				var decoded T
				// A separate variable: a decoder may return half a value with its error.
				if decoded, err = decode(state.Data); err == nil {
					good, from = decoded, state.stamp()
				} else {
					value.Err = fmt.Errorf("watch value %s: decode version %d: %w", path, state.Stat.Version, err)
				}
			}
			value.Value = good
			// The same state with another good value is a change: the event between may have
			// been merged.
			report(value, [2]stamp{state.stamp(), from})
		}
		return node.Err()
	})
}

// JSON decodes a value with encoding/json. Use it as watch.JSON[Config]. Each value begins
// as the zero T: a field that is absent from the data is zero, and does not keep its former
// value. Unknown fields are ignored, and a znode without data is an error.
func JSON[T any](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}
