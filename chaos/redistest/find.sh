#!/bin/sh
# Finds a Redis for the tests, or installs one. Prints one line:
#
#   process PATH    a redis-server or valkey-server, 6.2 or later
#   container       a Docker engine that answers; testcontainers-go does the rest
#
# What it does and why goes to stderr; exit 1 when there is none. In this order:
# KELPIE_TEST_BACKEND and KELPIE_TEST_REDIS, the PATH, .cache/bin, a
# redis-check-rdb on the PATH (the same program, which acts by its name), a
# Docker engine, the package manager. NO_INSTALL=1 stops before the last one.
# No daemon is started, port 6379 is not looked at, and sudo never asks.
# KELPIE_TEST_FOR names who asks, in messages (default: make test).
set -u

root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
bin=${KELPIE_TEST_BIN:-$root/.cache/bin}
asker=${KELPIE_TEST_FOR:-make test}

say() { echo "$*" >&2; }
fail() { say "$asker: $*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# new_enough PROGRAM: is it a server of 6.2 or later? Sets $version.
new_enough() {
	[ -x "$1" ] && [ ! -d "$1" ] || return 1
	version=$("$1" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\.[0-9]*\).*/\1/p')
	[ -n "$version" ] || return 1
	major=${version%%.*} minor=${version#*.}
	[ "$major" -gt 6 ] || { [ "$major" -eq 6 ] && [ "$minor" -ge 2 ]; }
}

# look prints the first server on the PATH or in .cache/bin that is new enough.
look() {
	old_ifs=$IFS IFS=:
	set -f
	for dir in $PATH $bin; do
		for name in redis-server valkey-server; do
			case $dir in /*) ;; *) continue ;; esac
			version=
			if new_enough "$dir/$name"; then
				IFS=$old_ifs
				echo "process $dir/$name"
				return 0
			fi
			[ -z "$version" ] || say "$dir/$name is $version, which is too old: 6.2 is needed."
		done
	done
	set +f
	IFS=$old_ifs
	return 1
}

# link puts the server under its own name into .cache/bin, where the package
# has it under another one only (Debian's redis-tools: no daemon, no service).
link() {
	for name in redis valkey; do
		check=$(command -v "$name-check-rdb") || continue
		mkdir -p "$bin" && ln -sf "$check" "$bin/$name-server" || return 1
		version=
		if new_enough "$bin/$name-server"; then
			echo "process $bin/$name-server"
			return 0
		fi
		rm -f "$bin/$name-server"
		[ -z "$version" ] || say "$check is of Redis $version, which is too old: 6.2 is needed."
	done
	return 1
}

# within SECONDS COMMAND...: runs it, silently, no longer than that.
within() {
	left=$1
	shift
	"$@" >/dev/null 2>&1 &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		[ "$left" -gt 0 ] || { kill -9 "$pid" 2>/dev/null; return 1; }
		left=$((left - 1))
		sleep 1
	done
	wait "$pid"
}

docker_answers() {
	if has docker; then
		within 5 docker version
	elif [ -S /var/run/docker.sock ] && has curl; then
		within 5 curl -fs -m 5 --unix-socket /var/run/docker.sock http://docker/_ping
	else
		return 1
	fi
}

# recipe sets $install to the command that installs a server here.
recipe() {
	if has apt-get; then
		install="apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-tools"
	elif has dnf; then
		install="dnf install -y valkey || dnf install -y redis"
	elif has apk; then
		install="apk add valkey || apk add redis"
	elif has pacman; then
		install="pacman -S --needed --noconfirm valkey"
	elif has zypper; then
		install="zypper --non-interactive install valkey || zypper --non-interactive install redis"
	elif has brew; then
		install="brew install redis"
	else
		return 1
	fi
}

# become_root puts into $as what runs the command as root without a question,
# and into $typed what a human would type; brew wants to be run by its owner.
become_root() {
	as= typed=$install
	case $install in brew*) return 0 ;; esac
	[ "$(id -u)" -ne 0 ] || return 0
	has sudo || return 1
	as="sudo -n" typed="sudo sh -c '$install'"
	sudo -n true 2>/dev/null
}

none="no redis-server or valkey-server >= 6.2 on the PATH"
[ "${KELPIE_TEST_BACKEND:-}" = process ] || none="$none, and no Docker engine answers"

install_one() {
	recipe || fail "$none; install one of them."
	become_root
	may=$?
	[ "${NO_INSTALL:-}" != 1 ] || fail "$none; NO_INSTALL=1 forbids to install one, which would be: $typed"
	[ "$may" -eq 0 ] || fail "$none; I may not install one, so let root do it: $typed"
	say "$asker: $none. Installing one: $typed"
	$as sh -c "$install" >&2 || fail "could not install a Redis: $typed"
	look || link || fail "what $typed installed is not a Redis of 6.2 or later: start a Docker engine, or see https://redis.io/docs/latest/operate/oss_and_stack/install/"
}

main() {
	case ${KELPIE_TEST_BACKEND:-} in
	container)
		docker_answers || fail "KELPIE_TEST_BACKEND=container, but no Docker engine answers within 5 s."
		echo container
		return ;;
	'' | process) ;;
	*) fail "KELPIE_TEST_BACKEND=$KELPIE_TEST_BACKEND: must be process or container." ;;
	esac
	if [ -n "${KELPIE_TEST_REDIS:-}" ]; then
		new_enough "$KELPIE_TEST_REDIS" || fail "KELPIE_TEST_REDIS=$KELPIE_TEST_REDIS is not a redis-server or valkey-server of 6.2 or later."
		echo "process $KELPIE_TEST_REDIS"
		return
	fi
	look || link && return
	if [ "${KELPIE_TEST_BACKEND:-}" != process ] && docker_answers; then
		echo container
		return
	fi
	install_one
}

main
