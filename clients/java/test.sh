# Resolves the packed artifact from dist/ in a fresh project and runs the tests there, against the gateway at $PARLEY_GRPC.
set -euo pipefail

dist=$PWD/dist
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp -r test/. README.md "$project"
cd "$project"
# Maven would take the artifact of an earlier build from its cache.
mvn --batch-mode --no-transfer-progress -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
  org.apache.maven.plugins:maven-dependency-plugin:3.8.1:purge-local-repository \
  -DmanualInclude=dev.parley:parley-client -DreResolve=false test -Ddist="file://$dist"
