# Stock gRPC tools against the gateway at $PARLEY_GRPC. By reflection they need no files of the contract.
set -euo pipefail

GOBIN=$PWD/bin go -C tools install tool
# ghz needs a grpc-go of 2020, so it cannot be a tool of the module.
GOBIN=$PWD/bin go install github.com/bojand/ghz/cmd/ghz@v0.93.0
key="authorization: Bearer $PARLEY_API_KEY"
question='"messages":[{"role":"ROLE_USER","parts":[{"text":"Tell me about tides."}]}]'

grpcurl() { bin/grpcurl -plaintext -H "$key" "$@"; }

# Runs a command, whatever its exit code, and fails unless its output contains the text.
prints() {
  local text=$1 output
  shift
  output=$("$@" 2>&1) || true
  [[ $output == *"$text"* ]] || { printf '%.2000s\nis what this printed, without %s: %s\n' "$output" "$text" "$*" >&2; exit 1; }
}

prints parley.v1.CompletionService grpcurl "$PARLEY_GRPC" list
prints 'returns ( stream .parley.v1.CompletionChunk )' grpcurl "$PARLEY_GRPC" describe parley.v1.CompletionService
prints ATTEMPT_OUTCOME_SERVED \
  grpcurl -d "{\"model\":\"alpha-haiku-4.5\",$question}" "$PARLEY_GRPC" parley.v1.CompletionService/Create
prints '"reason": "INVALID_REQUEST"' \
  grpcurl -format-error -d "{\"model\":\"alpha-haiku-4.5\",\"temperature\":9,$question}" "$PARLEY_GRPC" parley.v1.CompletionService/Create
# A picture of 6 MiB, with the tool's limit of 4 MiB for a message.
prints '"report"' \
  grpcurl -d "{\"model\":\"painter\",\"modalities\":[\"MODALITY_TEXT\",\"MODALITY_IMAGE\"],$question}" "$PARLEY_GRPC" parley.v1.CompletionService/Stream
prints 'status: SERVING' bin/grpc-health-probe -addr "$PARLEY_GRPC" -service parley.v1.CompletionService
prints 'NotFound' bin/grpc-health-probe -addr "$PARLEY_GRPC" -service other.Service
prints '[OK]   40 responses' \
  bin/ghz --insecure --call parley.v1.CompletionService/Create -m "{\"authorization\":\"Bearer $PARLEY_API_KEY\"}" \
  -d "{\"model\":\"alpha-haiku-4.5\",$question}" --total 40 --concurrency 4 "$PARLEY_GRPC"
