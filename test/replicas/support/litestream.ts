import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { basename, dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { goTools } from "../../../scripts/go-tools.ts";
import { findFreePort } from "../../support/free-port.ts";

const run = promisify(execFile);

const POLL_MS = 50;
const MAX_POLLS = 400;

/** A place for copies. */
export interface CopyTarget {
  /** The value of `replica` in litestream's configuration. */
  readonly replica: { readonly path: string };
  readonly env: Readonly<Record<string, string>>;
}

/** A folder. */
export function folderTarget(path: string): CopyTarget {
  const replica = { type: "file", path };
  return { replica, env: {} };
}

/** A bucket of a server with S3's API, which ends with the test. */
export async function startBucket(): Promise<CopyTarget> {
  const program = await goTools.s3Server();
  const port = await findFreePort();
  const server = spawn(program, ["-backend", "memory", "-initialbucket", "parley", "-host", `127.0.0.1:${port}`], {
    stdio: "ignore",
  });
  onTestFinished(() => stop(server));
  await untilListening(port);
  const replica = {
    type: "s3",
    bucket: "parley",
    path: "parley",
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    "force-path-style": true,
  };
  return { replica, env: { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" } };
}

/** Litestream for one database. */
export interface Litestream {
  /** Starts to copy the database, which exists, until `kill`: without local state, and each time to a place of its own. */
  replicate(): void;
  /** Ends it at once (SIGKILL), as with its machine. */
  kill(): Promise<void>;
  /** Restores what was copied since the last `replicate` into a file, to a moment or to the latest state. */
  restore(file: string, atMs?: number): Promise<void>;
}

/** Litestream with the configuration of docs/operations/backup.md. It ends with the test. */
export async function openLitestream(
  database: string,
  { folder, target }: { readonly folder: string; readonly target: CopyTarget },
): Promise<Litestream> {
  const program = await goTools.litestream();
  const config = join(folder, "litestream.yml");
  const env = { PATH: process.env["PATH"], HOME: folder, ...target.env };
  let copying: ChildProcess | undefined;
  let starts = 0;
  const litestream: Litestream = {
    replicate() {
      rmSync(join(dirname(database), `.${basename(database)}-litestream`), { recursive: true, force: true });
      const replica = { ...target.replica, path: `${target.replica.path}-${++starts}` };
      // YAML accepts JSON.
      writeFileSync(config, JSON.stringify({ dbs: [{ path: database, replica }] }));
      copying = spawn(program, ["replicate", "-config", config], { env, stdio: "ignore" });
    },
    async kill() {
      if (copying !== undefined) await stop(copying);
    },
    async restore(file, atMs) {
      const moment = atMs === undefined ? [] : ["-timestamp", new Date(atMs).toISOString()];
      await run(program, ["restore", "-config", config, "-o", file, ...moment, database], { env });
    },
  };
  onTestFinished(() => litestream.kill());
  return litestream;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

async function untilListening(port: number): Promise<void> {
  for (let polls = 0; polls < MAX_POLLS; polls++) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "error").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isOpen) return;
    await delay(POLL_MS);
  }
  throw new Error(`nothing listens at port ${port}`);
}
