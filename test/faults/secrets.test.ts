import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { runProduct, startProduct } from "../support/product.ts";
import { startRedis } from "../support/redis.ts";
import { says } from "../support/scripted-upstream.ts";
import { plantAccounts, plantCommands } from "./secrets/people.ts";
import { Planted } from "./secrets/planted.ts";
import { ask, plantCredentials, plantGrpc, plantRequests } from "./secrets/requests.ts";
import { openScene, type Scene } from "./secrets/scene.ts";
import { figure } from "./support/figures.ts";
import { timeLimit } from "../support/scale.ts";

const planted = new Planted();
const artefacts = new Map<string, string>();
let scene: Scene;

beforeAll(async () => {
  scene = await openScene(planted);
});
afterAll(() => scene?.close());

const question = (content: string, model = "m"): object => ({ model, messages: [{ role: "user", content }] });

/** All files of the product except its configuration. */
function keepFiles(name: string): void {
  const { home } = scene.product;
  for (const path of readdirSync(home, { recursive: true, encoding: "utf8" })) {
    if (path === "parley.yaml" || !statSync(join(home, path)).isFile()) continue;
    artefacts.set(`${path} ${name}`, readFileSync(join(home, path), "latin1"));
  }
}

describe("secrets of forty kinds and more", { timeout: timeLimit(180, 180) }, () => {
  it("are used in successes, every failure, timeouts, the dashboard and the command line", async () => {
    await plantRequests(scene);
    expect(await plantCredentials(scene)).toEqual([401, 401, 401, 401]);
    expect(await plantGrpc(scene)).toContain("not valid");
    await plantAccounts(scene);
    artefacts.set("what commands print", await plantCommands(scene));
    const asked = JSON.stringify(scene.upstream.calls("m"));
    for (const what of [
      "a user's message",
      "a tool's result",
      "a streamed prompt",
      "a provider's credential",
      "a gRPC prompt",
    ])
      expect(asked).toContain(planted.secretOf(what));
    expect(scene.errors.length).toBeGreaterThan(25);
    artefacts.set("errors", scene.errors.join("\n"));
  });

  it("are searched for in metrics, states and a backup", async () => {
    const { product } = scene;
    for (const path of ["/metrics", "/readyz", "/healthz"]) {
      artefacts.set(`${path} for operators`, await (await fetch(product.operationsUrl + path)).text());
    }
    artefacts.set("/readyz for everybody", await (await fetch(`${product.url}/readyz`)).text());
    const { ending } = runProduct(["backup", "backup.db"], { ...scene.run, home: product.home });
    expect(await ending).toEqual({ code: 0, signal: null });
    keepFiles("while it runs");
    expect([...artefacts.keys()]).toContain("backup.db while it runs");
  });

  it("are searched for in the output of a crash", async () => {
    const { product, upstream } = scene;
    // Waits for the end of earlier calls, which are counted late.
    const before = upstream.calls("silent").length;
    const cutOff = ask(scene, {
      body: { ...question(planted.plant("a prompt during a fault"), "silent"), stream: true },
    });
    await expect.poll(() => upstream.calls("silent").length).toBeGreaterThan(before);
    product.signal("SIGUSR2");
    await cutOff;
    expect(await product.ending).toEqual({ code: 1, signal: null });
    expect(product.output.stderr).toContain("unexpected fault");
    artefacts.set("the log", product.output.stderr + product.output.stdout);
    expect(product.output.stderr.split("\n").length).toBeGreaterThan(40);
    keepFiles("after a fault");
  });

  it("are searched for in entries that could not be written", async () => {
    const { home, firstKey: key } = scene.product;
    const config = JSON.parse(readFileSync(join(home, "parley.yaml"), "utf8")) as object;
    const again = await startProduct({ ...scene.run, home, config });
    try {
      scene.upstream.script("m", [says("an answer")]);
      // Cached by the process before the database is locked.
      expect(await ask({ ...scene, product: again }, { authorization: `Bearer ${key}`, body: question("hi") })).toBe(
        200,
      );
      const database = new DatabaseSync(join(home, "data/parley.db"));
      database.exec("BEGIN IMMEDIATE");
      const body = question(planted.plant("a prompt while the database is locked"));
      const status = await ask({ ...scene, product: again }, { authorization: `Bearer ${key}`, body });
      again.signal("SIGTERM");
      expect(await again.ending).toEqual({ code: 0, signal: null });
      database.close();
      expect(status).toBe(200);
      expect(readdirSync(join(home, "data")).some((name) => /^unwritten-ledger-.*\.jsonl$/.test(name))).toBe(true);
      artefacts.set("the log of a process without its database", again.output.stderr);
      keepFiles("after a stop without the database");
    } finally {
      await again.stop();
    }
  });

  it("occur in none of these", () => {
    figure({ name: "kinds of planted secrets", value: planted.count, unit: "", atLeast: 40 });
    figure({ name: "searched artefacts", value: artefacts.size, unit: "", atLeast: 15 });
    const found = planted.findIn(artefacts);
    expect(found).toEqual([]);
    // What the ledger keeps is in the searched database.
    expect(planted.placesOf("a user's name", artefacts)).toContain("backup.db while it runs");
    figure({ name: "planted secrets in any of them", value: found.length, unit: "", atMost: 0 });
  });
});

it(
  "secrets do not occur in PostgreSQL or Redis",
  async () => {
    const shared = new Planted();
    const password = shared.plant("Redis' password");
    const redis = await startRedis(["--requirepass", password, "--rdbcompression", "no"]);
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const redisUrl = redis.url.replace("//", `//default:${password}@`);
    const asked = await openScene(shared, { databaseUrl, redisUrl });
    const held = new Map<string, string>();
    try {
      await plantRequests(asked);
      await plantCredentials(asked);
      await plantGrpc(asked);
      await plantAccounts(asked);
      // Rates are shared at intervals.
      await expect.poll(() => askRedis(DUMP_ALL), { timeout: 10_000 }).toMatch(/parley:\{acct_/);
      held.set("Redis", await askRedis(DUMP_ALL));
      held.set("the log", asked.product.output.stderr);
      expect(held.get("the log")).not.toContain("redis is away");
    } finally {
      await asked.close();
    }
    const tables = await queryPostgres(
      databaseUrl,
      "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    for (const { name } of tables) {
      const rows = await queryPostgres(databaseUrl, `select row::text from "${String(name)}" row`);
      held.set(`PostgreSQL's ${String(name)}`, rows.map(({ row }) => String(row)).join("\n"));
    }
    expect(held.get("PostgreSQL's completions")?.split("\n").length).toBeGreaterThan(15);
    expect(shared.findIn(held)).toEqual([]);
    expect(shared.placesOf("a user's name", held)).toContain("PostgreSQL's completions");

    async function askRedis(script: string): Promise<string> {
      return (await redis.ask(["-a", password, "eval", script, "0"])).join("\n");
    }
  },
  timeLimit(90, 90),
);

/** Lists all keys of a Redis with their serialized values. */
const DUMP_ALL = `
local all = {}
for _, key in ipairs(redis.call('keys', '*')) do
  all[#all + 1] = key
  all[#all + 1] = redis.call('dump', key)
end
return all`;
