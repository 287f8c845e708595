package enumeration_test

import (
	"fmt"
	"strings"
	"testing"
)

// replay runs one case and prints all its details.
func replay(t *testing.T, name string) {
	c, err := parseCase(name)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{settings: []setting{c.setting}, faults: faults, report: true}
	defer e.workers.guard(nil, nil)()
	e.traceAll(t)
	out := e.try(t, c)
	t.Logf("frames until the scenario had ended:\n%s", lines(frames(out)))
	t.Logf("requests to the server:\n%s", lines(requests(out)))
	t.Logf("the server's tree at the end:\n%s", out.dump)
	t.Logf("what happened:\n%s", lines(out.said))
	if out.struck < len(c.strikes) {
		t.Errorf("%d of %d faults have struck", out.struck, len(c.strikes))
	}
	if out.nothing != "" {
		t.Log("a fault found nothing to harm: ", out.nothing)
	}
	for _, wrong := range out.wrong {
		t.Error(wrong)
	}
}

func lines(all []string) string { return "  " + strings.Join(all, "\n  ") }

func frames(out *outcome) (all []string) {
	for _, f := range out.frames {
		all = append(all, fmt.Sprintf("%10.6f: %s, %d bytes", f.At.Sub(out.from).Seconds(), description(f), f.Size))
	}
	return all
}

func requests(out *outcome) (all []string) {
	for _, op := range out.ops {
		line := fmt.Sprintf("%10.6f: endpoint %d %v", op.Time.Sub(out.from).Seconds(), op.Endpoint, op)
		for _, sub := range op.Sub {
			line += fmt.Sprintf(" [%v %s %d]", sub.Code, sub.Path, sub.Err)
		}
		all = append(all, line)
	}
	return all
}
