package main

import (
	"fmt"
	"slices"
	"strings"
)

// A measure has the results of the rounds of one contender in one row.
type measure struct {
	Contender string   `json:"contender"`
	Samples   []sample `json:"samples,omitempty"`
	Median    float64  `json:"median"`
	// Low and High are the quartiles of the rounds.
	Low     float64            `json:"low"`
	High    float64            `json:"high"`
	Extra   map[string]float64 `json:"extra,omitempty"` // medians
	Missing string             `json:"missing,omitempty"`
}

// A result is a row of the table.
type result struct {
	Title    string    `json:"title"`
	Unit     string    `json:"unit"`
	Measures []measure `json:"measures"`
	Verdicts []verdict `json:"goals,omitempty"`
}

// A verdict is how far we are from a goal.
type verdict struct {
	Goal    string  `json:"goal"`
	Value   float64 `json:"value"`
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least,omitempty"`
	Than    string  `json:"than,omitempty"`
	Met     bool    `json:"met"`
	Unknown string  `json:"unknown,omitempty"`
}

func summarize(name string, value func(sample) float64, samples []sample) measure {
	m := measure{Contender: name, Samples: samples, Extra: make(map[string]float64)}
	m.Low, m.Median, m.High = quartiles(samples, value)
	for key := range samples[0].Extra {
		_, m.Extra[key], _ = quartiles(samples, extra(key))
	}
	return m
}

func quartiles(samples []sample, value func(sample) float64) (low, median, high float64) {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	slices.Sort(values)
	at := func(q float64) float64 {
		x := q * float64(len(values)-1)
		i := int(x)
		if i+1 == len(values) {
			return values[i]
		}
		return values[i] + (x-float64(i))*(values[i+1]-values[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

func (r result) of(name string) (measure, bool) {
	i := slices.IndexFunc(r.Measures, func(m measure) bool { return m.Contender == name && m.Missing == "" })
	if i < 0 {
		return measure{}, false
	}
	return r.Measures[i], true
}

// judge compares a row with its goals; all are the rows so far.
func judge(goals []goal, r result, all []result) []verdict {
	var verdicts []verdict
	for _, g := range goals {
		v := verdict{Goal: g.text, Bound: g.bound, AtLeast: g.atLeast}
		mine, ok := r.of(ours)
		switch {
		case !ok:
			v.Unknown = "we did not run"
		case len(g.than) == 0 && g.in == "":
			v.Value, v.Met = mine.Median, mine.Median <= g.bound
		case len(g.than) == 0:
			v.Value, v.Met = mine.Extra[g.in], mine.Extra[g.in] <= g.bound
		default:
			v.compare(g, mine.Median, r, all)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func (v *verdict) compare(g goal, mine float64, r result, all []result) {
	other := r
	if g.in != "" {
		i := slices.IndexFunc(all, func(r result) bool { return r.Title == g.in })
		if i < 0 {
			v.Unknown = fmt.Sprintf("%q did not run", g.in)
			return
		}
		other = all[i]
	}
	best := 0.0
	for _, name := range g.than {
		if m, ok := other.of(name); ok && (v.Than == "" || m.Median < best) {
			v.Than, best = name, m.Median
		}
	}
	if v.Than == "" {
		v.Unknown = strings.Join(g.than, ", ") + " did not run"
		return
	}
	if g.atLeast {
		v.Value = best / mine
		v.Met = v.Value >= g.bound
		return
	}
	v.Value = mine / best
	v.Met = v.Value <= g.bound
}

func (v verdict) String() string {
	switch {
	case v.Unknown != "":
		return fmt.Sprintf("?  %s: %s", v.Goal, v.Unknown)
	case v.Met:
		return fmt.Sprintf("✓  %s: %s", v.Goal, number(v.Value))
	}
	return fmt.Sprintf("✗  %s: %s", v.Goal, number(v.Value))
}

// number is a value with three digits that mean something.
func number(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x == 0:
		return "0"
	}
	return fmt.Sprintf("%.2f", x)
}
