import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { findFreePort } from "../../support/free-port.ts";
import { PASSWORD } from "../../support/postgres.ts";

const run = promisify(execFile);
const PACKAGES = "/usr/lib/postgresql";

/** PostgreSQL of the distribution with its tools, which the development dependency does not have. */
export interface DebianPostgres {
  readonly url: string;
  /** A folder that the server's user can write. */
  readonly folder: string;
  /** Runs a tool of PostgreSQL as the server's user, with the password in its environment. */
  tool(name: string, ...args: readonly string[]): Promise<string>;
  /** Ends it at once (SIGQUIT: no checkpoint), as with its machine, and removes its data. */
  lose(): Promise<void>;
  /** Stops the server in an orderly way, and starts one on a restored data folder, at the same address. */
  startOn(dataDir: string): Promise<void>;
}

/** Starts a server that archives its write-ahead log into `folder/archive`. It ends with the test. */
export async function startDebianPostgres(): Promise<DebianPostgres> {
  const bin = join(PACKAGES, newestVersion(), "bin");
  const folder = mkdtempSync(join(tmpdir(), "parley-debian-postgres-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const user = await serverUser();
  for (const path of [folder, join(folder, "archive")]) {
    mkdirSync(path, { recursive: true });
    chmodSync(path, 0o700);
    if (user !== undefined) chownSync(path, user.uid, user.gid);
  }
  const port = await findFreePort();
  const env = { PATH: process.env["PATH"], PGPASSWORD: PASSWORD, LC_ALL: "C" };
  const options = { cwd: folder, env, ...user };
  const tool = async (name: string, ...args: readonly string[]): Promise<string> =>
    (await run(join(bin, name), args, { ...options, maxBuffer: 64 * 1024 * 1024 })).stdout;
  const dataDir = join(folder, "data");
  const password = join(folder, "password");
  writeFileSync(password, PASSWORD);
  await tool("initdb", "-D", dataDir, "-U", "postgres", "-A", "scram-sha-256", `--pwfile=${password}`, "--no-sync");
  let running: string | undefined;
  const stop = async (mode: "immediate" | "fast"): Promise<void> => {
    if (running === undefined) return;
    await tool("pg_ctl", "-D", running, "-m", mode, "-w", "stop");
    running = undefined;
  };
  const startOn = async (data: string): Promise<void> => {
    await stop("fast");
    // As the page says, but for the switch to a new file, which is a minute there.
    const settings = `-p ${port} -k '' -c archive_mode=on -c archive_timeout=1 -c "archive_command=test ! -f ${folder}/archive/%f && cp %p ${folder}/archive/%f"`;
    // Not `run`: the server keeps the pipes of `pg_ctl` open.
    const log = `${data}.log`;
    const args = ["-D", data, "-l", log, "-w", "-t", "60", "-o", settings, "start"];
    const starting = spawn(join(bin, "pg_ctl"), args, { ...options, stdio: "ignore" });
    const [code] = await once(starting, "exit");
    if (code !== 0)
      throw new Error(`PostgreSQL does not start on ${data}:\n${readFileSync(log, "utf8").slice(-2_000)}`);
    running = data;
  };
  onTestFinished(() => stop("immediate"));
  await startOn(dataDir);
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    folder,
    tool,
    startOn,
    async lose() {
      await stop("immediate");
      rmSync(dataDir, { recursive: true });
    },
  };
}

function newestVersion(): string {
  try {
    const versions = readdirSync(PACKAGES).toSorted((a, b) => Number(b) - Number(a));
    if (versions[0] !== undefined) return versions[0];
  } catch {
    // As without a version.
  }
  throw new Error("this test needs PostgreSQL with its tools: apt-get install postgresql");
}

/** The user that runs the server, where this one is root, as whom it does not run. */
async function serverUser(): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = async (flag: string): Promise<number> => Number((await run("id", [flag, "postgres"])).stdout);
  return { uid: await idOf("-u"), gid: await idOf("-g") };
}
