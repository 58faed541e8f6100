// Package check judges the history of a chaos run: it replays the log of
// transitions against the model of a job's life, and holds what producers were
// told, what handlers wrote and what broke against it.
package check
