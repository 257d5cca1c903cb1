import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished } from "vitest";
import { findFreePort } from "../../support/free-port.ts";
import { type Collector, startCollector } from "../../support/otlp.ts";
import { buildFolder, goProgram } from "./go-program.ts";

/** Version of the OpenTelemetry Collector; its stable modules have numbers of their own. */
const VERSION = "v0.165.0";
const STABLE_VERSION = "v1.71.0";
const BUILDER = `go.opentelemetry.io/collector/cmd/builder@${VERSION}`;
const PARTS = {
  receivers: [{ gomod: `go.opentelemetry.io/collector/receiver/otlpreceiver ${VERSION}` }],
  exporters: [{ gomod: `go.opentelemetry.io/collector/exporter/otlphttpexporter ${VERSION}` }],
  providers: [{ gomod: `go.opentelemetry.io/collector/confmap/provider/fileprovider ${STABLE_VERSION}` }],
  conf_resolver: { default_uri_scheme: "file" },
};

/** Path of the OpenTelemetry Collector, which its own builder makes once on a machine. */
export async function collectorProgram(): Promise<string> {
  const folder = buildFolder(`collector@${VERSION}`);
  const program = join(folder, "collector");
  if (existsSync(program)) return program;
  const builder = await goProgram(BUILDER);
  const manifest = join(folder, "manifest.yaml");
  // YAML accepts JSON.
  writeFileSync(manifest, JSON.stringify({ dist: { name: "collector", output_path: folder }, ...PARTS }));
  try {
    await promisify(execFile)(builder, ["--config", manifest]);
  } catch (cause) {
    throw new Error("this test needs Go 1.26 and its module proxy: the collector was not built", { cause });
  }
  return program;
}

/** A running Collector. */
export interface RealCollector {
  /** Addresses of its receiver by protocol. */
  readonly endpoints: Readonly<Record<"http" | "grpc", string>>;
  /** What it has received and handed on. */
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
