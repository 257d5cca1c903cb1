// Gateways whose programs are built by hand: Busbar (github.com/GetBusbar/busbar, `cargo build --release -p busbar`) and
// GoModel (github.com/ENTERPILOT/GoModel, `go build ./cmd/gomodel`).
import { randomBytes } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SERVER_CORE, startPinned } from "../children.ts";
import { findFreePort, untilListening } from "../contestants/ports.ts";
import type { RunningServer, Setting } from "../contestants/server.ts";
import { CHAT_LAST_WORDS } from "../load/formats.ts";

export const BUSBAR = "Busbar";
export const GOMODEL = "GoModel";
/** GoModel with its audit log, without bodies and headers. */
export const GOMODEL_WITH_LOG = `${GOMODEL} with log`;

/** Environment variables with the paths of the programs. */
const PROGRAMS = { [BUSBAR]: "BENCH_BUSBAR", [GOMODEL]: "BENCH_GOMODEL" } as const;

const START_MS = 20_000;

/** The start function of Busbar: signed keys, usage in memory, nothing durable. */
export async function findBusbar(): Promise<(setting: Setting) => Promise<RunningServer>> {
  const program = programOf(BUSBAR);
  return async ({ load, upstreamPort, folder }) => {
    const [port, adminPort] = [await findFreePort(), await findFreePort()];
    const home = mkdtempSync(join(folder, "busbar-"));
    const admin = randomBytes(32).toString("hex");
    // JSON documents are YAML documents.
    const write = (name: string, value: object): string => {
      writeFileSync(join(home, name), JSON.stringify(value));
      return join(home, name);
    };
    const signing = join(home, "signing.key");
    writeFileSync(signing, `${randomBytes(32).toString("hex")}\n`);
    const upstream = { protocol: "anthropic", base_url: `http://127.0.0.1:${upstreamPort}`, error_map: {} };
    const config = write("config.yaml", {
      listen: `127.0.0.1:${port}`,
      admin_listen: `127.0.0.1:${adminPort}`,
      providers_file: write("providers.yaml", { bench: upstream }),
      "identity-providers": { "admin-tokens": { module: "admin-tokens", token: { env: "BUSBAR_ADMIN_TOKEN" } } },
      auth: { chain: ["keys"], admin_auth: ["admin-tokens"], signing_key: { file: signing } },
      providers: { bench: { api_key: { env: "BENCH_KEY" } } },
      models: { [load.model]: { provider: "bench", max_concurrent: 100_000, max_requests: -1 } },
    });
    const child = startPinned({
      core: SERVER_CORE,
      program,
      args: [],
      stdio: "ignore",
      env: { BUSBAR_CONFIG: config, BENCH_KEY: "bench", BUSBAR_ADMIN_TOKEN: admin, RUST_LOG: "error" },
    });
    await untilListening(child, { port: adminPort, limitMs: START_MS, name: BUSBAR });
    const response = await fetch(`http://127.0.0.1:${adminPort}/api/v1/admin/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "bench" }),
    });
    const { token } = (await response.json()) as { readonly token: string };
    return { name: BUSBAR, process: child, port, key: token, lastWords: CHAT_LAST_WORDS };
  };
}

/** The start function of GoModel: a master key; usage in SQLite every 5 s (its default). */
export function findGoModel(): Promise<(setting: Setting) => Promise<RunningServer>> {
  return goModel(GOMODEL, false);
}

/** The same with an entry of its audit log for each request, the nearest to a ledger. */
export function findGoModelWithLog(): Promise<(setting: Setting) => Promise<RunningServer>> {
  return goModel(GOMODEL_WITH_LOG, true);
}

async function goModel(name: string, hasLog: boolean): Promise<(setting: Setting) => Promise<RunningServer>> {
  const program = programOf(GOMODEL);
  return async ({ load, upstreamPort, folder }) => {
    const port = await findFreePort();
    const home = mkdtempSync(join(folder, "gomodel-"));
    const key = randomBytes(32).toString("hex");
    const child = startPinned({
      core: SERVER_CORE,
      program,
      args: [],
      stdio: "ignore",
      env: {
        PORT: `${port}`,
        HOST: "127.0.0.1",
        GOMODEL_MASTER_KEY: key,
        GOMODEL_CACHE_DIR: join(home, "cache"),
        SQLITE_PATH: join(home, "gomodel.db"),
        MODEL_LIST_URL: "",
        ANTHROPIC_API_KEY: "bench",
        ANTHROPIC_BASE_URL: `http://127.0.0.1:${upstreamPort}/v1`,
        ANTHROPIC_MODELS: load.model,
        CONFIGURED_PROVIDER_MODELS_MODE: "allowlist",
        LOGGING_ENABLED: `${hasLog}`,
        LOGGING_LOG_BODIES: "false",
        LOGGING_LOG_HEADERS: "false",
        METRICS_ENABLED: "false",
        LOG_LEVEL: "error",
      },
    });
    await untilListening(child, { port, limitMs: START_MS, name });
    return { name, process: child, port, key, lastWords: CHAT_LAST_WORDS };
  };
}

function programOf(name: keyof typeof PROGRAMS): string {
  const program = process.env[PROGRAMS[name]];
  if (program === undefined) throw new Error(`${PROGRAMS[name]} does not name its program`);
  return program;
}
