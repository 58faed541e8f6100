// Package server starts Redis servers of a run's own, and hurts them.
package server
