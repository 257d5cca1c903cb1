# Generates code from the contract in $PARLEY_CONTRACT, and compiles it with the checks.
set -euo pipefail

cargo test --no-run --locked --quiet --tests --examples
