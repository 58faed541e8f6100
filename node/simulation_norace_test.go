//go:build !race

package node

// Of a plain test run.
const defaultSeeds, plantsTested = 300, 8
