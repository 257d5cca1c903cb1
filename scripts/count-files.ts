// node scripts/run.mjs scripts/count-files.ts [--list]: how many files of src/ one HTTP unary call, one HTTP stream and one
// gRPC unary call enter together, by V8's precise coverage: those of which a function runs during the calls. All call
// the first of the default models, in the Anthropic dialect. Its provider is the simulator, which is not counted.
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { CompletionService } from "../gen/parley/v1/completion_pb.js";
import { Role } from "../gen/parley/v1/message_pb.js";
import { createKey } from "../src/access/keys.ts";
import { parseConfig } from "../src/config/parse.ts";
import { systemClock } from "../src/core/clock.ts";
import { startGateway } from "../src/gateway/gateway.ts";
import { openStore } from "../src/store/store.ts";
import { withLines } from "../src/telemetry/logger.ts";

/** Warm-up calls, so that one-time initialisation is not counted. */
const WARM_UP = 20;
/** Pause in milliseconds, until the background work of earlier calls has ended. */
const SETTLING_MS = 500;

const { values } = parseArgs({ options: { list: { type: "boolean", default: false } } });
const src = new URL("../src/", import.meta.url).href;
const dataDir = mkdtempSync(join(tmpdir(), "parley-count-"));
const inspector = new Session();
try {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  const { secret } = await createKey({ store: store.keys, clock: systemClock }, { name: "count" });
  await store.close();
  const listen = { listen: "127.0.0.1:0" };
  const text = JSON.stringify({ http: listen, grpc: listen, operations: listen });
  const config = { ...parseConfig({ file: "parley.yaml", text, env: {} }), dataDir };
  const silent = { write: () => undefined };
  const gateway = await startGateway(config, withLines(pino({ level: "error" }, silent), { lines: silent }));
  const model = config.models[0]!.id;

  const authorization = `Bearer ${secret}`;
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${gateway.grpcPort}` });
  const grpc = createClient(CompletionService, transport);
  const http = async (stream: boolean): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], stream }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(answer);
  };
  const callAll = async (): Promise<void> => {
    await http(false);
    await http(true);
    const parts = [{ kind: { case: "text" as const, value: "Hello" } }];
    await grpc.create({ model, messages: [{ role: Role.USER, parts }] }, { headers: { authorization } });
  };

  for (let count = 0; count < WARM_UP; count++) await callAll();
  await wait(SETTLING_MS);
  inspector.connect();
  await inspector.post("Profiler.enable");
  await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await callAll();
  await wait(SETTLING_MS);
  const { result } = await inspector.post("Profiler.takePreciseCoverage");
  const files = result
    .filter(({ url, functions }) => url.startsWith(src) && functions.some(({ ranges }) => ranges[0]!.count > 0))
    .map(({ url }) => fileURLToPath(url).slice(fileURLToPath(src).length))
    .filter((file) => !file.startsWith("simulator/"));
  if (values.list) for (const file of files.toSorted()) console.log(file);
  console.log(`${files.length} files`);
  await gateway.close();
} finally {
  inspector.disconnect();
  rmSync(dataDir, { recursive: true, force: true });
}
