import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { type OperationsOptions, type Readiness, startOperationsServer } from "../inbound/http/operations.ts";
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

/** Facts for `/readyz`, with the latest version of the stored configuration beside the one in force. */
export function withLatest(facts: Readiness, latestStored: (() => number | undefined) | undefined): Readiness {
  const { stored_configuration: stored, ...others } = facts as Readiness & { readonly stored_configuration?: object };
  if (stored === undefined || latestStored === undefined) return facts;
  return { ...others, stored_configuration: { ...stored, latest: latestStored() } };
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
