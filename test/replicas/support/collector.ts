import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { findFreePort } from "../../support/free-port.ts";
import { type Collector, startCollector } from "../../support/otlp.ts";

/** A running Collector. */
export interface RealCollector {
  /** Addresses of its receiver by protocol. */
  readonly endpoints: Readonly<Record<"http" | "grpc", string>>;
  /** What it has received and exported. */
  readonly received: Pick<Collector, "spans" | "metrics">;
}

/** Starts one, which ends with the test. */
export async function startRealCollector(program: string): Promise<RealCollector> {
  const folder = mkdtempSync(join(tmpdir(), "parley-collector-"));
  const received = await startCollector();
  const [http, grpc] = [await findFreePort(), await findFreePort()];
  const pipeline = { receivers: ["otlp"], exporters: ["otlphttp"] };
  const config = {
    receivers: {
      otlp: { protocols: { http: { endpoint: `127.0.0.1:${http}` }, grpc: { endpoint: `127.0.0.1:${grpc}` } } },
    },
    exporters: { otlphttp: { endpoint: received.url, encoding: "json", compression: "none" } },
    service: { telemetry: { metrics: { level: "none" } }, pipelines: { traces: pipeline, metrics: pipeline } },
  };
  writeFileSync(join(folder, "config.yaml"), JSON.stringify(config));
  const running = spawn(program, ["--config", join(folder, "config.yaml")], { stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  running.stderr.on("data", (text: Buffer) => (log += text.toString()));
  onTestFinished(async () => {
    const ended = once(running, "exit");
    if (running.exitCode === null && running.kill("SIGTERM")) await ended;
    await received.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await expect.poll(() => log, { timeout: 30_000 }).toContain("Everything is ready");
  return { endpoints: { http: `http://127.0.0.1:${http}`, grpc: `http://127.0.0.1:${grpc}` }, received };
}
