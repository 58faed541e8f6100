#!/bin/sh
# make chaos, chaos-short and chaos-selftest: builds what is needed, finds or
# installs a redis-server, and runs
#
#   selftest ARGS...       the self-test of the judge
#   NAME ARGS...           the scenario of that name
#
# NO_INSTALL=1 installs nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
what=$1
shift

found=$(KELPIE_TEST_BACKEND=process KELPIE_TEST_FOR="make chaos" sh chaos/redistest/find.sh) || exit 1
PATH=$(dirname "${found#process }"):$PATH
export PATH

# The outcome must not hang on the caller's settings.
for name in $(env | sed -n 's/^\(KELPIE_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$name"; done

case $what in
selftest)
	go build -o bin/selftest ./chaos/selftest || exit 1
	exec bin/selftest "$@" ;;
esac
CGO_ENABLED=0 go build -o bin/kelpie ./cmd/kelpie || exit 1
exec bin/kelpie chaos run --scenario "$what" "$@"
