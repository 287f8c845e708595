//go:build race

package main

func init() { compileStep = 10 }
