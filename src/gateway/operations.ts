import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { type OperationsOptions, startOperationsServer } from "../inbound/http/operations.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createOperationsConnections } from "./connections.ts";
import { startListening } from "./starting.ts";
import { openTls } from "./tls.ts";

export type { Readiness } from "../inbound/http/operations.ts";

/** The operations port of a program, listening. */
export interface Operations {
  readonly port: number;
  /** Reads the files of its TLS again. */
  reload(): Promise<void>;
  close(): void;
}

/** Starts the operations port, of which a program has one. */
export async function startOperations(
  config: Config,
  { log, metrics, readiness }: Pick<OperationsOptions, "metrics" | "readiness"> & { readonly log: Logger },
): Promise<Operations> {
  const tls = await openTls("operations", config, log);
  const { listen } = config.operations;
  const connections = createOperationsConnections(config);
  const server = await startListening("operations", config, () =>
    startOperationsServer({ ...listen, metrics, readiness, connections, clock: systemClock, tls }),
  );
  return {
    port: server.port,
    reload: async () => tls?.check(),
    close: () => server.close(),
  };
}
