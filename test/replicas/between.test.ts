import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { PostgresConnections } from "../../src/store/postgres/pool.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { demand } from "../store/contracts/demands.ts";
import { entry } from "../store/contracts/entries.ts";
import { findFreePort } from "../support/free-port.ts";
import { createDatabase, PASSWORD, queryPostgres } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { startLoad } from "./support/load.ts";

/* HAProxy in front of replicas, and PgBouncer in front of PostgreSQL. */

/** Starts a program with a configuration file, and stops it after the test. */
async function start(program: string, config: string, flags: (file: string) => string[]): Promise<ChildProcess> {
  const folder = await mkdtemp(join(tmpdir(), "parley-between-"));
  const file = join(folder, "config");
  await writeFile(file, config);
  // Some programs drop root privileges and read it as another user.
  await chmod(folder, 0o755);
  const child = spawn(program, flags(file), { stdio: "ignore" });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  });
  return child;
}

describe("HAProxy in front of replicas", () => {
  it("finds them healthy by its own check, and a rolling restart fails no request", async () => {
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const ports = [await findFreePort(), await findFreePort()];
    const config = { shutdown: { delay_ms: 1_500 } };
    const deployment = await startDeployment({ replicas: 2, databaseUrl, redisUrl: undefined, config, ports });
    onTestFinished(() => deployment.close());
    deployment.upstream.script(MODEL, [(call) => void setTimeout(() => says("one two")(call), 100)]);
    const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "balanced" });
    const port = await findFreePort();
    const servers = ports.map((each, index) => `  server r${index} 127.0.0.1:${each}`);
    await start(
      "haproxy",
      [
        "defaults",
        "  mode http",
        "  timeout connect 2s",
        "  timeout client 30s",
        "  timeout server 30s",
        "frontend callers",
        `  bind 127.0.0.1:${port}`,
        "  default_backend parley",
        "backend parley",
        // As in its manual, with HTTP/1.0.
        "  option httpchk GET /readyz",
        "  option redispatch",
        "  retries 3",
        "  default-server check inter 200 fall 2 rise 1",
        ...servers,
        "",
      ].join("\n"),
      (file) => ["-db", "-f", file],
    );
    const url = `http://127.0.0.1:${port}`;
    await expect.poll(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status).toBe(200);
    const load = startLoad({ callers: 8, key, pick: () => url });
    for (const index of [0, 1]) {
      const product = deployment.products[index]!;
      product.signal("SIGTERM");
      expect(await product.ending).toEqual({ code: 0, signal: null });
      await deployment.restart(index);
      // Wait until HAProxy has detected the restarted replica.
      await expect.poll(async () => (await fetch(`${deployment.products[index]!.url}/readyz`)).status).toBe(200);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.ended.length).toBeGreaterThan(50);
  }, 60_000);
});

describe("PgBouncer in front of PostgreSQL", () => {
  async function startBouncer(more: string): Promise<string> {
    const direct = new URL(await createDatabase(inject("postgresUrl")));
    const port = await findFreePort();
    const config = [
      "[databases]",
      `* = host=127.0.0.1 port=${direct.port} user=postgres password=${PASSWORD}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
      more,
      "",
    ].join("\n");
    await start("pgbouncer", config, (file) => [...(process.getuid?.() === 0 ? ["-u", "nobody"] : []), file]);
    direct.port = String(port);
    return direct.href;
  }

  it("that refuses the connection's parameters is reported as the cause, with the remedy", async () => {
    const databaseUrl = await startBouncer("pool_mode = session");
    const open = (): Promise<string> =>
      openStore({ dataDir: "/nowhere", databaseUrl }).then(
        () => "opened",
        (error: Error) => error.message,
      );
    await expect.poll(open).toContain("ignore_startup_parameters = statement_timeout");
  });

  it.each(["session", "transaction"])("in %s mode ends reports that take too long in PostgreSQL, too", async (mode) => {
    const url = await startBouncer(`pool_mode = ${mode}\nignore_startup_parameters = statement_timeout`);
    const pool = new PostgresConnections({ url, limitMs: 1_000, connections: 1, limitsEach: true });
    onTestFinished(() => pool.end());
    const ask = async (sql: string): Promise<unknown> => {
      const client = await pool.connect();
      try {
        return (await client.query<object>(sql, [])).rows;
      } finally {
        client.release();
      }
    };
    await expect.poll(() => ask("select 1 as one").catch(() => undefined)).toEqual([{ one: 1 }]);
    await expect(ask("select pg_sleep(30)")).rejects.toMatchObject({ code: "57014", isTimeLimit: true });
    const running =
      "select count(*)::int as running from pg_stat_activity where query like '%pg_sleep(30)' and state = 'active'";
    expect(await queryPostgres(inject("postgresUrl"), running)).toEqual([{ running: 0 }]);
    expect(await ask("select 1 as one")).toEqual([{ one: 1 }]);
  });

  it("in session mode works with these parameters ignored, and delivers key change notifications", async () => {
    const databaseUrl = await startBouncer("pool_mode = session\nignore_startup_parameters = statement_timeout");
    await expect
      .poll(() => openStore({ dataDir: "/nowhere", databaseUrl }).then((store) => store.close()))
      .toBe(undefined);
    const stores = await Promise.all([1, 2].map(() => openStore({ dataDir: "/nowhere", databaseUrl })));
    onTestFinished(async () => {
      for (const store of stores) await store.close();
    });
    const heard: (string | undefined)[] = [];
    stores[0]!.keyChanges.subscribe((hash) => void heard.push(hash));
    await expect.poll(() => stores[0]!.health()).toEqual({ up: true, listening: true });
    const keys = { store: stores[1]!.keys, clock: systemClock };
    await createKey(keys, { name: "bounced" });
    await expect.poll(() => heard.length).toBeGreaterThan(1);
  });

  it("in transaction mode works, with notifications by an address of their own or without any", async () => {
    const databaseUrl = await startBouncer("pool_mode = transaction\nignore_startup_parameters = statement_timeout");
    const direct = new URL(databaseUrl);
    direct.port = new URL(inject("postgresUrl")).port;
    const open = (databaseListenUrl: string): Promise<Store> =>
      openStore({ dataDir: "/nowhere", databaseUrl, databaseListenUrl });
    await expect.poll(() => open("none").then((store) => store.close())).toBe(undefined);
    const [listening, deaf] = await Promise.all([open(direct.href), open("none")]);
    onTestFinished(async () => {
      for (const store of [listening, deaf]) await store.close();
    });
    const heard: (string | undefined)[] = [];
    listening.keyChanges.subscribe((hash) => void heard.push(hash));
    deaf.keyChanges.subscribe(() => undefined);
    await expect.poll(() => listening.health()).toEqual({ up: true, listening: true });
    expect(deaf.health()).toEqual({ up: true, listening: undefined });
    const { record, secret } = await createKey({ store: deaf.keys, clock: systemClock }, { name: "bounced" });
    await expect.poll(() => heard.length).toBeGreaterThan(1);

    const authenticator = createAuthenticator({ store: deaf.keys, clock: systemClock });
    const isKnown = () =>
      authenticator.authenticate(secret).then(
        () => true,
        () => false,
      );
    expect(await isKnown()).toBe(true);
    await revokeKey({ store: listening.keys, clock: systemClock }, record.id);
    await expect.poll(isKnown, { timeout: 5_000 }).toBe(false);

    const holds = [{ subject: "key:k", limitMicroUsd: 1_000 }];
    const stores = [listening, deaf];
    const decisions = await Promise.all(
      Array.from({ length: 40 }, (_, index) => stores[index % 2]!.budgets.hold(demand({ holds }))),
    );
    expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(10);
    const begun = entry({ outcome: "process_lost" });
    await listening.ledger.begin({ id: "gone/1", process: "gone", entries: [begun] }, []);
    // Its ten holds too: no process of the test has a lease.
    expect(await deaf.ledger.settleLost()).toBe(11);
    expect(await listening.ledger.find(begun.completionId)).toMatchObject({ outcome: "process_lost" });
  });
});
