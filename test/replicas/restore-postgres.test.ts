import { execFile } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { builtProgram } from "../support/built-program.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { startDebianPostgres } from "./support/debian-postgres.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { startLoad } from "./support/load.ts";
import { idsIn } from "./support/written-ids.ts";

const CALLERS = 8;
const LOAD_MS = 4_000;
/** The server switches to a new file of the log each second, so this is in the archive. */
const ARCHIVED_MS = 4_000;
const TIMEOUT_MS = 300_000;

async function startCompletions(databaseUrl: string) {
  const program = await builtProgram();
  const deployment = await startDeployment({ replicas: 1, databaseUrl, redisUrl: undefined, program });
  onTestFinished(() => deployment.close());
  deployment.upstream.script(MODEL, [says("one two three")]);
  const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "restored" });
  const load = () => startLoad({ callers: CALLERS, key, pick: () => deployment.products[0]!.url });
  return { deployment, load };
}

/** Waits for the end of the recovery, during which the server answers and takes no writes. Rejects after a minute. */
async function untilWritable(databaseUrl: string): Promise<void> {
  const recovering = "select 1 where pg_is_in_recovery()";
  for (let polls = 0; (await queryPostgres(databaseUrl, recovering)).length > 0; polls++) {
    if (polls > 600) throw new Error("the recovery does not end");
    await delay(100);
  }
}

it(
  "a database of PostgreSQL is restored after a loss of its disk, to the end of the archive or to a moment",
  async () => {
    const server = await startDebianPostgres();
    const databaseUrl = await createDatabase(server.url);
    const { deployment, load } = await startCompletions(databaseUrl);
    const { port } = new URL(server.url);
    const base = join(server.folder, "base");
    const connection = ["-h", "127.0.0.1", "-p", port, "-U", "postgres"];
    await server.tool("pg_basebackup", ...connection, "-D", base, "-X", "none", "-c", "fast");
    const loadFor = async (): Promise<readonly string[]> => {
      const running = load();
      await delay(LOAD_MS);
      await running.stop();
      expect(running.failures).toEqual([]);
      return running.ended;
    };
    const first = await loadFor();
    deployment.products[0]!.signal("SIGKILL");
    await deployment.restart(0);
    await delay(1_000);
    const moment = new Date().toISOString().replace("Z", "+00");
    await delay(1_000);
    const second = await loadFor();
    await delay(ARCHIVED_MS);
    const last = load();
    await delay(LOAD_MS);
    await server.lose();
    deployment.products[0]!.signal("SIGKILL");
    await last.stop();

    const restore = async (name: string, target: string): Promise<readonly string[]> => {
      const data = join(server.folder, name);
      // Keeps the owner, who runs the server.
      await promisify(execFile)("cp", ["-a", base, data]);
      const settings = `restore_command = 'cp ${server.folder}/archive/%f %p'\n${target}recovery_target_action = 'promote'\n`;
      appendFileSync(join(data, "postgresql.auto.conf"), settings);
      appendFileSync(join(data, "recovery.signal"), "");
      await server.startOn(data);
      await untilWritable(databaseUrl);
      return idsIn("/nowhere", databaseUrl);
    };
    const atEnd = await restore("latest", "");
    expect(new Set(atEnd).size).toBe(atEnd.length);
    expect([...first, ...second].filter((id) => !atEnd.includes(id))).toEqual([]);
    const lost = last.ended.filter((id) => !atEnd.includes(id)).length;
    console.log(`${lost} of the last ${last.ended.length} completions are not in the archive; ${atEnd.length} are`);
    const atMoment = await restore("moment", `recovery_target_time = '${moment}'\n`);
    expect(atMoment.toSorted()).toEqual(first.toSorted());
    await deployment.restart(0);
    expect((await loadFor()).length).toBeGreaterThan(0);
  },
  TIMEOUT_MS,
);

it(
  "a dump of PostgreSQL that is made under load is restored into another database, and served",
  async () => {
    const server = await startDebianPostgres();
    const databaseUrl = await createDatabase(server.url);
    const { deployment, load } = await startCompletions(databaseUrl);
    const running = load();
    await delay(LOAD_MS);
    const before = [...running.ended];
    const dump = join(server.folder, "parley.dump");
    await server.tool("pg_dump", "-Fc", "-f", dump, databaseUrl);
    await running.stop();
    expect(running.failures).toEqual([]);
    const restoredUrl = await createDatabase(server.url);
    await server.tool("pg_restore", "--no-owner", "--exit-on-error", "-d", restoredUrl, dump);
    const restored = await idsIn("/nowhere", restoredUrl);
    expect(before.filter((id) => !restored.includes(id))).toEqual([]);
    expect(restored.filter((id) => !running.ended.includes(id))).toEqual([]);
    await deployment.products[0]!.stop();
    const again = await startCompletions(restoredUrl);
    const more = again.load();
    await delay(1_000);
    await more.stop();
    expect(more.failures).toEqual([]);
  },
  TIMEOUT_MS,
);
