package realzk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports of servers lie below the range from which systems take the ports of
// outgoing connections, so that a server that is down keeps its port.
const (
	firstPort = 15000
	lastPort  = 32000
	portTries = 200
)

// taken holds the ports given out in this process, whose servers may not
// listen yet.
var taken struct {
	sync.Mutex
	ports map[int]bool
}

// pickPorts returns n free ports of 127.0.0.1. Another process may still take
// one before the server does.
func pickPorts(n int) ([]int, error) {
	taken.Lock()
	defer taken.Unlock()
	if taken.ports == nil {
		taken.ports = make(map[int]bool)
	}
	ports := make([]int, 0, n)
	for range portTries {
		if len(ports) == n {
			break
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if taken.ports[port] || !isFree(port) {
			continue
		}
		taken.ports[port] = true
		ports = append(ports, port)
	}
	if len(ports) < n {
		for _, port := range ports {
			delete(taken.ports, port)
		}
		return nil, errors.New("no free ports on 127.0.0.1")
	}
	return ports, nil
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// releasePorts gives ports back.
func releasePorts(ports ...int) {
	taken.Lock()
	defer taken.Unlock()
	for _, port := range ports {
		delete(taken.ports, port)
	}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
