package main

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// severalServers is the error for a file of an ensemble. Real servers are started once
// for each member. A user who does so here must not get as many ensembles.
func severalServers(file string, members []zkserver.ConfigServer) error {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = fmt.Sprintf("server.%d", m.ID)
	}
	return fmt.Errorf("%s is the configuration of %d servers (%s), and those of several processes know nothing of each other: "+
		"start one process with -ensemble, which serves all of them, or remove all but one of these lines for a server on its own",
		file, len(members), strings.Join(names, ", "))
}

// addresses returns the addresses of the members, or the address of the one server. If
// the address was not given on the command line, and the members have different client
// ports, each member listens on its own port.
func addresses(listen string, given bool, members []zkserver.ConfigServer) ([]string, error) {
	host, _, err := net.SplitHostPort(listen)
	ports := map[string]bool{"": true, "0": true}
	var list []string
	for _, m := range members {
		port := m.ClientPort()
		if given || err != nil || ports[port] {
			break
		}
		ports[port] = true
		list = append(list, net.JoinHostPort(host, port))
	}
	if len(members) > 0 && len(list) == len(members) {
		return list, nil
	}
	list = nil
	for i := range max(len(members), 1) {
		address, err := following(listen, i)
		if err != nil {
			return nil, err
		}
		list = append(list, address)
	}
	return list, nil
}

// following is the address of server i, counted from 0.
func following(listen string, i int) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("-listen %s: %w; it must look like %s", listen, err, defaultListen)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || int(n)+i > 65535 {
		return "", fmt.Errorf("-listen %s: port %s must be a number below 65536, with room for the servers after it", listen, port)
	}
	if n > 0 {
		n += uint64(i)
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}
