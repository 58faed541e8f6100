#!/bin/sh
# make test: all tests, with a Redis of their own. Arguments go to "go test"
# (default ./...).
#
#   RACE=1        insists on the race detector; else it is on where it works
#   NO_INSTALL=1  installs nothing
#   KELPIE_TEST_LONG=1  full sizes: Redis away for a minute, two million jobs
set -u
cd "$(dirname "$0")/.." || exit 1

# The tests' outcome must not hang on the caller's settings.
for name in $(env | sed -n 's/^\(KELPIE_[A-Za-z0-9_]*\)=.*/\1/p'); do
	case $name in KELPIE_TEST_*) ;; *) unset "$name" ;; esac
done

found=$(sh chaos/redistest/find.sh) || exit 1
KELPIE_TEST_BACKEND=${found%% *}
export KELPIE_TEST_BACKEND
case $found in
"process "*)
	KELPIE_TEST_REDIS=${found#process }
	PATH=$(dirname "$KELPIE_TEST_REDIS"):$PATH # kelpie finds it there
	export KELPIE_TEST_REDIS PATH
	echo "Redis: $("$KELPIE_TEST_REDIS" --version)" ;;
container)
	echo "Redis: ${KELPIE_TEST_IMAGE:-redis:7-alpine}, in a container" ;;
esac

# runtime/cgo is what the race detector needs a C compiler for; on macOS, where
# it needs none, the package still tells whether there is one.
race=
if why=$(go build -race runtime/cgo 2>&1); then
	race=-race
elif [ "${RACE:-}" = 1 ]; then
	echo "make test: RACE=1, but the race detector does not work here: $(echo "$why" | tail -n 1)" >&2
	exit 1
else
	echo "Without the race detector, which needs a C compiler: $(echo "$why" | tail -n 1)"
fi

[ $# -gt 0 ] || set -- ./...
exec go test $race -timeout 10m "$@"
