// Package api serves a node's HTTP: /livez (the process runs), /readyz (it takes
// jobs: Redis answers, it is registered and not draining) and /metrics for
// Prometheus. It has no password: bind it to loopback or to a private network.
// Neither health check depends on gossip, nor /livez on Redis, so an outage of
// Redis restarts no fleet.
package api
