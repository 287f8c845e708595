package zkserver

// ensemble is the set of endpoints and of the links between them. It decides which
// endpoint leads and which endpoints follow. The server's mu guards it.
type ensemble struct {
	s         *Server
	endpoints []*Endpoint
	epoch     int64     // of the latest leader; 0 for a server that is no ensemble
	leader    *Endpoint // nil during an election and without a quorum
	election  *timer
	changed   chan struct{} // closed when the ensemble changes
	cutLinks  map[link]bool
	replicas  []*replica // those of the endpoints, and then those of single connections
}

func newEnsemble(s *Server) *ensemble { return &ensemble{s: s, cutLinks: map[link]bool{}} }
