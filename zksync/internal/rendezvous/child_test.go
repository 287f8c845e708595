package rendezvous

import "testing"

// The children of participants of every client are recognised by their names, and other children are not.
func TestIsParticipant(t *testing.T) {
	for name, want := range map[string]bool{
		"_c_0f8fad5b-d9cb-469f-a165-70867728950e-": true, // of this package
		"member-node-1":                        true,
		"0f8fad5b-d9cb-469f-a165-70867728950e": true, // of Curator
		"0f8fad5bd9cb469fa16570867728950e":     true, // of kazoo
		ReadyName:                              false,
		"_c_0f8fad5b-":                         false,
		"0f8fad5b-d9cb-469f-a165-7086772895":   false,
		"config":                               false,
	} {
		if IsParticipant(name) != want {
			t.Errorf("IsParticipant(%q) = %v", name, !want)
		}
	}
}
