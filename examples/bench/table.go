package main

import (
	"fmt"
	"io"
	"strings"
)

// writeTable writes the results as Markdown: values, how they compare with
// ours, and what became of the goals.
func writeTable(w io.Writer, rep report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What it costs\n\n%s\n\n", rep.Machine)
	fmt.Fprintf(&b, "Medians over the rounds, their quartiles, and how many times as much that is as with %s. Less is better.\n", ours)
	for _, r := range rep.Results {
		fmt.Fprintf(&b, "\n## %s\n\n| | %s | quartiles | x %s | requests |\n|---|---:|---:|---:|---:|\n", r.Title, r.Unit, ours)
		mine, ran := r.of(ours)
		for _, m := range r.Measures {
			if m.Missing != "" {
				fmt.Fprintf(&b, "| %s | %s | | | |\n", m.Contender, m.Missing)
				continue
			}
			ratio, requests := "", ""
			if ran && mine.Median > 0 {
				ratio = number(m.Median / mine.Median)
			}
			if n, ok := m.Extra["requests"]; ok {
				requests = number(n)
			}
			fmt.Fprintf(&b, "| %s | %s | %s to %s | %s | %s |\n", m.Contender, number(m.Median), number(m.Low), number(m.High), ratio, requests)
		}
		for i, v := range r.Verdicts {
			if i == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "- %s\n", v)
		}
	}
	if len(rep.LeftOut) > 0 {
		b.WriteString("\nLeft out:\n\n")
		for _, line := range rep.LeftOut {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
