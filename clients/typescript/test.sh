# Installs the packed package in a fresh project and runs the tests there, against the gateway at $PARLEY_GRPC.
package=$PWD
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
cp -r test/. README.md "$project"
cd "$project"
npm install --silent --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline "$package"/parley-client-*.tgz
"$package/node_modules/.bin/tsc" --project .
# The time limit is for a process that does not end by itself too.
node --test --test-reporter=dot --test-timeout=30000 built/*.test.js
