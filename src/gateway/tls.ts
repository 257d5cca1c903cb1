import type { Config } from "../config/config.ts";
import { TlsEntrance } from "../net/tls-entrance.ts";
import { type TlsFiles, type TlsFilesReport, WatchedTlsFiles } from "../net/tls-files.ts";
import { atIntervals } from "../telemetry/at-intervals.ts";
import type { Logger } from "../telemetry/logger.ts";
import { createClientFinder } from "./connections.ts";
import type { ServerName } from "./starting.ts";

const PROTOCOLS = { http: ["h2", "http/1.1"], grpc: ["h2"], operations: ["http/1.1"] } as const;

/** Opens the TLS of a listener; undefined for plain TCP. Rejects with a message that names the file that cannot be used. */
export async function openTls(name: ServerName, config: Config, log: Logger): Promise<TlsEntrance | undefined> {
  const { tls } = config[name];
  if (tls === undefined) return undefined;
  const setting = `${name}.tls`;
  const { certFile, keyFile, clientCaFile: caFile, clientCrlFile: crlFile } = tls;
  const files = await openTlsFiles(setting, { certFile, keyFile, caFile, crlFile }, log);
  const tellRefused = atIntervals(log, "a client's certificate is missing or was not accepted");
  const tellAbused = atIntervals(
    log,
    "a connection was closed; its address may open few others for a minute, unless authenticated callers share it",
  );
  return new TlsEntrance({
    files,
    protocols: PROTOCOLS[name],
    clientCertificates: tls.clientCertificates,
    clientOf: createClientFinder(config),
    refused: (reason, address) => tellRefused((refusals) => ({ setting, reason, address, refusals })),
    abused: (reason, address) => tellAbused((closed) => ({ setting, reason, address, closed })),
  });
}

/** Opens files, and logs what becomes of changed ones. Rejects with a message that names the file that cannot be used. */
export async function openTlsFiles(setting: string, files: TlsFiles, log: Logger): Promise<WatchedTlsFiles> {
  return WatchedTlsFiles.open(files, reportTo(log, setting)).catch((error: unknown) => {
    throw new Error(`${setting}: ${(error as Error).message}`, { cause: error });
  });
}

/** Logs what becomes of changed files. */
function reportTo(log: Logger, setting: string): TlsFilesReport {
  return {
    loaded: (facts) => log.info({ setting, ...facts }, "TLS files loaded"),
    refused: (problem) => log.error({ setting, problem }, "TLS files cannot be used; those from before stay in use"),
    expired: (problem) => log.error({ setting, problem }, "a TLS file has expired"),
  };
}
