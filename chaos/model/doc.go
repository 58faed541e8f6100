// Package model holds two Promela models of the protocol and the searches that
// spin makes in them; there is no Go in it but the test that keeps them in step
// with the code.
//
//	claims.pml  the nodes' side: sessions, turns, claims, settlements, condemn,
//	            reclaim, audit, epochs, roll call, a rollback of Redis
//	calls.pml   the clients' side: senders and turns, kept outcomes, ages, chosen
//	            ids, unique keys, cancel, revive, purge, promotion
//
// Each script is one step, since Redis runs one at a time. Commands and replies
// get lost, late or copied, nodes and clients crash and pause at any step, the
// lock ends at any time. There is no time in them: what may last is any length.
//
// "make model" makes all searches of the file searches: with all protections on
// a search must end without a violation, with one of them off spin must find a
// history that goes wrong. "sh chaos/model/search.sh off-TURN" makes one, and
// SHOW=1 prints the steps of its counter-example.
//
// TestEachProtectionIsInTheCode says where each protection stands in the code
// and fails when that text changes: then read the model again.
//
// # Not promised
//
// Two nodes, two jobs, two clients and a few faults: what needs more of them to
// go wrong is not found here. What is modelled ahead of the code (unique keys,
// cancel, purge) is listed in the test. Bytes, batches, limits and Redis's memory
// are not modelled; the tests of package queue and the chaos runs have them.
package model
