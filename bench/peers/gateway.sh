#!/usr/bin/env bash
# Manifest of Parley for the comparison of gateways at github.com/GetBusbar/benchmarking: copy it to gateways/parley/.
# That comparison sets CORES, MOCK_PORT and GW_DIR; PARLEY_HOME is a checkout of Parley, and has to be set.
# Parley runs as `npm start` runs it: keys, limits that are counted and never reached, the ledger in SQLite.
GW_KIND=native
GW_DISPLAY="Parley"
GW_LANG=Node
GW_CLASS="Completion gateway"
GW_PORT=8080
GW_PATH=/v1/chat/completions
GW_MODEL=gpt-4o-mini

: "${PARLEY_HOME:?a checkout of Parley}"
GW_DATA="$GW_DIR/data"
GW_CONFIG="$GW_DIR/parley.yaml"

gw_configure() {
  cat >"$GW_CONFIG" <<YAML
http: { listen: "127.0.0.1:$GW_PORT" }
grpc: { listen: "127.0.0.1:0" }
operations: { listen: "127.0.0.1:0" }
data_dir: "$GW_DATA"
limits: { requests_per_minute: 1000000000, tokens_per_minute: 1000000000, concurrent_requests: 1000000 }
providers:
  mock: { dialect: openai, base_url: "http://127.0.0.1:${MOCK_PORT:-8000}/v1", allow_private: true, api_keys: [bench] }
models:
  $GW_MODEL:
    provider: mock
    upstream_model: $GW_MODEL
    context_window: 128000
    max_output_tokens: 16384
    price: { input: 0.15, output: 0.6 }
YAML
}

gw_build() {
  (cd "$PARLEY_HOME" && npm ci && npm run build) || return 1
  gw_configure
  (cd "$PARLEY_HOME" && npx parley keys create --name bench --config "$GW_CONFIG") >"$GW_DIR/key"
}

# The key of gw_build, which is shown once.
GW_AUTH="$(cat "$GW_DIR/key" 2>/dev/null)"

gw_launch() {
  gw_configure
  setsid taskset -c "$CORES" bash -c 'cd "$1" && exec npm start -- --config "$2"' _ "$PARLEY_HOME" "$GW_CONFIG" \
    </dev/null >"$GW_DIR/parley.log" 2>&1 &
  echo $! >"$GW_DIR/pid"
  for _ in $(seq 100); do
    curl -fsS -o /dev/null "http://127.0.0.1:$GW_PORT/healthz" 2>/dev/null && return 0
    sleep 0.1
  done
  return 1
}

# Parley and its launcher are the session that gw_launch has begun.
gw_memory() {
  local kib=0 pid
  for pid in $(pgrep -s "$(cat "$GW_DIR/pid")"); do
    kib=$((kib + $(awk -v field="$1:" '$1 == field { print $2 }' "/proc/$pid/status" 2>/dev/null || echo 0)))
  done
  awk -v kib="$kib" 'BEGIN { printf "%.1f", kib / 1024 }'
}
gw_rss() { gw_memory VmRSS; }
gw_hwm() { gw_memory VmHWM; }
gw_version() { git -C "$PARLEY_HOME" describe --always; }
gw_diag() { tail -n 20 "$GW_DIR/parley.log" 2>/dev/null; }
gw_stop() { [ -f "$GW_DIR/pid" ] && kill -TERM -- "-$(cat "$GW_DIR/pid")" 2>/dev/null; }
