package zkserver

import (
	"slices"
	"strings"
	"testing"
)

// The lines of a zoo.cfg are parsed as java.util.Properties parses them.
func TestProperties(t *testing.T) {
	for text, want := range map[string][]property{
		"":                              nil,
		"\n \t\f\n":                     nil,
		"# a=b\n  ! c=d \\\ne=f":        {{3, "e", "f"}},
		"a=b":                           {{1, "a", "b"}},
		"a = b ":                        {{1, "a", "b"}},
		"a:b":                           {{1, "a", "b"}},
		"a b c":                         {{1, "a", "b c"}},
		"a  = = b":                      {{1, "a", "= b"}},
		"a":                             {{1, "a", ""}},
		"=b":                            {{1, "", "b"}},
		"a=b\r\nc=d\re=f":               {{1, "a", "b"}, {2, "c", "d"}, {3, "e", "f"}},
		"a=1,\\\n  2,\\\n  3\nb=4":      {{1, "a", "1,2,3"}, {4, "b", "4"}},
		`a=\\` + "\nb=c":                {{1, "a", `\`}, {2, "b", "c"}},
		`a=b\`:                          {{1, "a", "b"}},
		`a\=b\:c\ d=e`:                  {{1, "a=b:c d", "e"}},
		`a=\u00e4\tb\q`:                 {{1, "a", "ä\tbq"}},
		"server.1=a:1:2;3\nserver.1=ä#": {{1, "server.1", "a:1:2;3"}, {2, "server.1", "ä#"}},
	} {
		if got, err := parseProperties(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`a=\u12`, `a=\uxyz1`, "\n\n" + `\u=b`, `a=\u+123`} {
		if got, err := parseProperties(text); err == nil || !strings.Contains(err.Error(), "hexadecimal") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
