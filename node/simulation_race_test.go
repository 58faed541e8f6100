//go:build race

package node

// Of a plain test run: the race detector makes each seed five times as dear.
const defaultSeeds, plantsTested = 50, 4
