package enumeration_test

import "slices"

// A defect is known, and waits to be fixed. Cases that it explains do not fail the
// enumeration.
type defect struct {
	what      string
	scenarios []string // any if empty
	faults    []string // any if empty
	skip      bool     // the cases are not even run, because they do not end
}

var defects = []*defect{
	{what: "a throttled request (-127) is final", faults: []string{"throttle"}},
	{what: "the cause of the caller's context is taken for an answer: an endless loop", faults: []string{"cancel-lost", "cancel-nonode"}, skip: true},
	{what: "the loss of an outer lock is taken for the loss of an inner one: an endless loop", scenarios: []string{"mutex-do"}, skip: true},
}

// explains reports whether a case may fail because of the defect.
func (d *defect) explains(c faultCase) bool {
	return (len(d.scenarios) == 0 || slices.Contains(d.scenarios, c.scenario.name)) &&
		(len(d.faults) == 0 || slices.ContainsFunc(c.strikes, func(k strike) bool { return slices.Contains(d.faults, k.fault.name) }))
}

// knownAs returns the known defect that explains a case, or nil.
func (c faultCase) knownAs() *defect {
	i := slices.IndexFunc(defects, func(d *defect) bool { return d.explains(c) })
	if i < 0 {
		return nil
	}
	return defects[i]
}

// skipped reports whether a case is not run.
func (c faultCase) skipped() bool {
	return !*knownFlag && slices.ContainsFunc(defects, func(d *defect) bool { return d.skip && d.explains(c) })
}
