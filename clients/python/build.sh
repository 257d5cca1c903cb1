#!/usr/bin/env bash
# Generates the code of the contract in $PARLEY_CONTRACT and builds the wheel in dist/.
set -euo pipefail
cd "$(dirname "$0")"

python3 -m venv .venv-build
bin="$PWD/.venv-build/bin"
"$bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r requirements-build.txt

src="$PWD/src"
rm -rf dist src/parley/v1/*_pb2*
(
  cd "$PARLEY_CONTRACT"
  # protoc starts its plugins by name. Those of mypy-protobuf copy the contract's comments, which editors show.
  export PATH="$bin:$PATH"
  python -m grpc_tools.protoc -I . --python_out="$src" --mypy_out="quiet:$src" parley/v1/*.proto
  services=$(grep -l '^service ' parley/v1/*.proto)
  python -m grpc_tools.protoc -I . --grpc_python_out="$src" --mypy_grpc_out="quiet:$src" $services
  cp parley/v1/service_config.json "$src/parley/v1/"
)

"$bin/hatchling" build --target wheel > build.log 2>&1 || { cat build.log; exit 1; }
