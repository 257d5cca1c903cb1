# Tests the packed module of dist/ as a fresh project uses it.
set -euo pipefail

app=$(mktemp -d)
trap 'rm -rf "$app"' EXIT
mkdir "$app/parley-go"
tar -xzf dist/parley-go-*.tar.gz -C "$app/parley-go" --strip-components=1
cp -R test/. "$app"
cd "$app"
go mod edit -replace=parley.dev/go=./parley-go
go vet ./...
# Most of the time is spent waiting.
output=$(go test -count=1 -parallel=8 ./... 2>&1) || { echo "$output" >&2; exit 1; }

bash stock-tools.sh
