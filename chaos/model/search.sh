#!/bin/sh
# Searches the models with spin, as the file "searches" lists them, two at a time.
#
#   search.sh [--short] [PATTERN]   only the short part; only names that match
#
# Prints one line for each search, and the steps of a counter-example. Ends with
# 1 if a search came out otherwise than its line says, 2 if it could not be made.
# LIMIT (seconds for a search that "seems", 50) and JOBS (2) may be set.
set -u
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" = --one ]; then # NAME MODEL EXPECTATION OPTIONS...
	name=$2 model=$3 expected=$4
	shift 4
	dir=$(mktemp -d) || exit 2
	trap 'rm -rf "$dir"' EXIT
	cp "$here/$model.pml" "$dir" && cd "$dir" || exit 2
	how=-DSAFETY limit=600 hash=25
	case $expected in
	found) how="-DSAFETY -DBFS" ;; # the shortest one
	seems) how="-DSAFETY -DBITSTATE" limit=${LIMIT:-50} hash=33 ;;
	esac
	spin -a "$@" "$model.pml" >spin.out 2>&1 || { echo "$name: spin: $(tail -n 1 spin.out)"; exit 2; }
	# shellcheck disable=SC2086 # a list of flags
	cc -O2 -w $how -DNOREDUCE -DVECTORSZ=2048 -DMEMLIM=6000 -o pan pan.c || exit 2
	timeout -s INT -k 5 "$limit" ./pan -m200000 -w"$hash" >pan.out 2>&1
	ended=$?
	states=$(awk '/states, stored/ { print $1; exit }' pan.out)
	what=holds
	[ "$ended" = 0 ] && ! grep -q 'Search not completed' pan.out || what=seems
	if ls ./*.trail >/dev/null 2>&1; then what=found; fi
	[ "$expected" = seems ] && [ $what = holds ] && what=seems
	[ -n "$states" ] || { echo "$name: pan: $(tail -n 1 pan.out)"; exit 2; }
	verdict=ok
	[ $what = "$expected" ] || verdict="WRONG, expected: $expected"
	{
		echo "$name: $what, $states states: $verdict"
		if [ $what = found ] && { [ "$verdict" != ok ] || [ -n "${SHOW:-}" ]; }; then
			spin -t "$@" "$model.pml" 2>/dev/null | grep -E '^ *\*|text of failed' | sed 's/^ */    /' | head -n 60
		fi
	} >said
	cat said # in one piece, as others print too
	[ "$verdict" = ok ]
	exit
fi

command -v spin >/dev/null && command -v cc >/dev/null ||
	{ echo "search.sh: spin and a C compiler are needed (Debian: apt-get install spin gcc libc6-dev)" >&2; exit 2; }
short=
[ "${1:-}" != --short ] || { short=1; shift; }
chosen=$(awk -v short="$short" -v only="${1:-.}" '
	/^#/ || NF == 0 { next }
	$1 == "scene" { name = $2; $1 = $2 = ""; scene[name] = $0; next }
	{
		quick = sub(/^\+/, "", $1)
		if ((short && !quick) || $1 !~ only) next
		for (i = 4; i <= NF; i++) if ($i in scene) $i = scene[$i]
		print
	}' "$here/searches")
[ -n "$chosen" ] || { echo "search.sh: no search is called like ${1:-.}" >&2; exit 2; }
echo "$chosen" |
	xargs -P "${JOBS:-2}" -I '{}' sh -c 'exec sh "$0" --one $1' "$here/search.sh" '{}'
case $? in
0) ;;
123) exit 1 ;; # some search ended with an error
*) exit 2 ;;
esac
