#!/bin/sh
# Says in one line when there is no Go that could build this, and fails. From
# 1.21 on, Go fetches by itself the version that go.mod asks for.
want="install Go 1.21 or later (it fetches the version that go.mod asks for): https://go.dev/dl"

command -v go >/dev/null 2>&1 || { echo "Go is missing: $want" >&2; exit 1; }
version=$(cd / && GOTOOLCHAIN=local go env GOVERSION) # away from go.mod, which an old Go does not understand
minor=$(echo "$version" | sed -n 's/.*go1\.\([0-9][0-9]*\).*/\1/p')
[ "${minor:-0}" -ge 21 ] || { echo "Go is too old (${version:-of unknown version}): $want" >&2; exit 1; }
