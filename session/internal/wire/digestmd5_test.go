package wire

import "testing"

// A server that does not prove that it knows the password is refused. Breaks if Next does
// not compare rspauth.
func TestDigestMD5WantsTheServersProof(t *testing.T) {
	for name, proof := range map[string]func(e *DigestMD5) string{
		"right": func(e *DigestMD5) string { return "rspauth=" + e.expected },
		"wrong": func(*DigestMD5) string { return "rspauth=00000000000000000000000000000000" },
		"none":  func(*DigestMD5) string { return "" },
	} {
		e := &DigestMD5{User: "bob", Password: "secret", Cnonce: "c"}
		if _, done, err := e.Next([]byte(`realm="r",nonce="n",charset=utf-8,algorithm=md5-sess,qop="auth"`)); err != nil || done {
			t.Fatal(done, err)
		}
		if _, done, err := e.Next([]byte(proof(e))); done != (name == "right") || (err == nil) != (name == "right") {
			t.Errorf("%s: done %v, error %v", name, done, err)
		}
	}
}
