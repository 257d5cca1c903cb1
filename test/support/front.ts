import { pino } from "pino";
import { withLines } from "../../src/telemetry/logger.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { startFrontGateway } from "../../src/gateway/front-gateway.ts";
import type { LogLine } from "./gateway.ts";

/** A front in this process, on free loopback ports. */
export interface TestFront {
  readonly httpPort: number;
  /** All log lines so far. */
  readonly log: readonly LogLine[];
  activeCalls(): Promise<number>;
  close(): Promise<void>;
}

const FREE_PORT = { listen: "127.0.0.1:0" };

/** Starts a front for the cores at `core`, with `config` beside its addresses. */
export async function startTestFront(core: string, config: object = {}): Promise<TestFront> {
  const text = JSON.stringify({ http: FREE_PORT, operations: FREE_PORT, ...config });
  const log: LogLine[] = [];
  const lines = { write: (line: string) => void log.push(JSON.parse(line) as LogLine) };
  const logger = withLines(pino({ level: "info" }, lines), { lines });
  const gateway = await startFrontGateway(parseConfig({ file: "parley.yaml", text, env: {} }), logger, core);
  return {
    httpPort: gateway.httpPort,
    log,
    activeCalls: async () => gateway.activeCalls(),
    close: () => gateway.close(),
  };
}
