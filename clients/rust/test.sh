# Runs the checks and the example against the gateway at $PARLEY_GRPC.
set -euo pipefail

output=$(cargo test --locked --quiet 2>&1) || { printf '%s\n' "$output" >&2; exit 1; }
answer=$(cargo run --locked --quiet --example tides)
[[ $answer == *"Tell me about tides."* ]] || { printf 'The example printed: %s\n' "$answer" >&2; exit 1; }
