#!/usr/bin/env bash
# Installs the wheel of build.sh in a fresh environment and runs the tests.
set -euo pipefail
cd "$(dirname "$0")"

rm -rf .venv-test .connect
python3 -m venv --without-pip .venv-test
install() {
  .venv-build/bin/pip --python .venv-test --disable-pip-version-check \
    install --quiet --only-binary :all: --no-deps --no-warn-conflicts --no-compile "$@"
}
install dist/parley_client-*.whl -r requirements-test.txt

.venv-test/bin/pytest test/client

# The official Connect clients, which are two distributions of one import package.
for connect in connect-python==0.9.0 connectrpc==0.13.0; do
  install --target ".connect/$connect" "$connect"
  PYTHONPATH=".connect/$connect" .venv-test/bin/pytest test/connect
done
