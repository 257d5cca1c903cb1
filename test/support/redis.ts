import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { findFreePort } from "./free-port.ts";

/** A Redis server for a test, without persistence. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Resolves when it responds; after `kill`, starts an empty one at the same address. */
  start(): Promise<void>;
  /** Kills it (SIGKILL). */
  kill(): Promise<void>;
  /** Stops it (SIGSTOP) with open connections, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Sends a command with redis-cli, and returns the output lines. */
  ask(command: readonly string[]): Promise<string[]>;
  /** Ends it permanently. */
  stop(): Promise<void>;
}

export interface RedisLaunch {
  /** Path of the server's program. Default: `redis-server`. */
  readonly program?: string | undefined;
  /** Password of `ask`. */
  readonly password?: string | undefined;
  /** A configuration file, which a Sentinel rewrites. Default: none. */
  readonly config?: string | undefined;
  /** Files for TLS on its only port and on its connections to other servers. Clients need a certificate. Default: no TLS. */
  readonly tls?: RedisTlsFiles | undefined;
}

/** A certificate for `localhost`, and the authority of all. */
export interface RedisTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

/** Starts a server that ends with the test. `options` are command-line options. */
export async function startRedis(options: readonly string[] = [], launch?: RedisLaunch): Promise<RedisServer> {
  const server = await launchRedis(options, launch);
  onTestFinished(() => server.stop());
  return server;
}

/** Time limit of `ask`: the server may hang. */
const ASK_MS = 10_000;

/** Starts a shared server; the caller stops it. */
export async function launchRedis(
  options: readonly string[] = [],
  { program = "redis-server", password, config, tls }: RedisLaunch = {},
): Promise<RedisServer> {
  const port = await findFreePort();
  const folder = await mkdtemp(join(tmpdir(), "parley-redis-"));
  const file = join(folder, "config");
  if (config !== undefined) await writeFile(file, config);
  let running: ChildProcess | undefined;
  const server: RedisServer = {
    url: tls === undefined ? `redis://127.0.0.1:${port}` : `rediss://localhost:${port}`,
    port,
    async start() {
      const args = [
        ...portOptions(port, tls),
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--save",
        "",
        "--appendonly",
        "no",
      ];
      running = spawn(program, [...(config === undefined ? [] : [file]), ...args, ...options], { stdio: "ignore" });
      const failed = once(running, "error").then(([reason]: unknown[]) => {
        throw new Error(`${program} is needed for this test: apt-get install redis-server (brew install redis)`, {
          cause: reason,
        });
      });
      failed.catch(() => undefined);
      await Promise.race([failed, waitForPort(port, tls)]);
    },
    async kill() {
      const ended = running;
      running = undefined;
      if (ended === undefined || ended.exitCode !== null || ended.signalCode !== null) return;
      const exit = once(ended, "exit");
      ended.kill("SIGKILL");
      await exit;
    },
    freeze: () => void running?.kill("SIGSTOP"),
    thaw: () => void running?.kill("SIGCONT"),
    async ask(command) {
      const env = { ...process.env, ...(password !== undefined && { REDISCLI_AUTH: password }) };
      const place = ["-p", String(port), ...clientOptions(tls)];
      const { stdout } = await promisify(execFile)("redis-cli", [...place, ...command], { env, timeout: ASK_MS });
      return stdout.split("\n").filter((line) => line !== "");
    },
    async stop() {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;
}

/** Options of redis-cli for a server with TLS. */
export function clientOptions(tls: RedisTlsFiles | undefined): string[] {
  if (tls === undefined) return [];
  return ["--tls", "--cacert", tls.caFile, "--cert", tls.certFile, "--key", tls.keyFile];
}

function portOptions(port: number, tls: RedisTlsFiles | undefined): string[] {
  if (tls === undefined) return ["--port", String(port)];
  const files = ["--tls-cert-file", tls.certFile, "--tls-key-file", tls.keyFile, "--tls-ca-cert-file", tls.caFile];
  const others = ["--tls-replication", "yes", "--tls-cluster", "yes"];
  return ["--port", "0", "--tls-port", String(port), ...files, ...others];
}

/** Waits for PONG: it accepts connections before it can respond. */
async function waitForPort(port: number, tls: RedisTlsFiles | undefined): Promise<void> {
  const untilMs = performance.now() + 20_000;
  while (performance.now() < untilMs) {
    if (await answersPing(port, tls)) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("redis-server did not start within 20 s");
}

function answersPing(port: number, tls: RedisTlsFiles | undefined): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const ping = (): void => void socket.write("PING\r\n");
  const socket =
    tls === undefined
      ? connect(port, "127.0.0.1", ping)
      : connectTls({ port, host: "localhost", ...readTls(tls) }, ping);
  socket.on("error", () => resolve(false));
  socket.on("close", () => resolve(false));
  socket.on("data", (data) => {
    // Also when it requires a password.
    resolve(/^(\+PONG|-NOAUTH)/.test(data.toString()));
    socket.destroy();
  });
  socket.setTimeout(1000, () => socket.destroy());
  return promise;
}

function readTls({ certFile, keyFile, caFile }: RedisTlsFiles) {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), ca: readFileSync(caFile) };
}
