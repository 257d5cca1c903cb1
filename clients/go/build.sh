# Generates code from the contract in $PARLEY_CONTRACT, and packs the module into dist/. Needs Go and buf on the PATH.
set -euo pipefail

version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' client.go)
package=parley-go-$version

GOBIN=$PWD/bin go -C tools install tool
rm -rf parley dist
buf generate "$PARLEY_CONTRACT" --path "$PARLEY_CONTRACT/parley"
cp "$PARLEY_CONTRACT/parley/v1/service_config.json" .

unformatted=$(gofmt -l ./*.go test)
[ -z "$unformatted" ] || { echo "not formatted by gofmt: $unformatted" >&2; exit 1; }
go vet ./...

mkdir -p "dist/$package"
cp -R go.mod go.sum ./*.go LICENSE README.md service_config.json parley "dist/$package"
tar -czf "dist/$package.tar.gz" -C dist "$package"
rm -r "dist/$package"
