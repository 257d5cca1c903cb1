import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { type Product, startProduct } from "../support/product.ts";
import { answerJson, answerText, startUpstream, type Upstream } from "./support/upstream.ts";
import { postChat, postJson } from "../support/post-json.ts";
import { runBeside } from "../support/cli.ts";

const OPERATORS = "operators-key-at-the-provider";
const BOBS = "bobs-own-key-at-the-provider";
const WRONG = "refused-key-at-the-provider";
const LIMITED = "limited-key-at-the-provider";

let upstream: Upstream;
let product: Product;
let front: Product;
let [adasKey, bobsKey]: [string, string] = ["", ""];

const allowed = (url: string) => ({
  dialect: "openai",
  base_url: `${url}/v1`,
  allow_private: true,
  account_credentials: "allowed",
  api_keys: [OPERATORS],
});

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { authorization } = exchange.request.headers;
    if (authorization === `Bearer ${WRONG}`)
      return answerJson(exchange.response, 401, { error: { message: `wrong key ${WRONG}` } });
    if (authorization === `Bearer ${LIMITED}`)
      return answerJson(exchange.response, 429, { error: { message: "slow down" } }, { "retry-after": "60" });
    if (exchange.body.includes("refuse"))
      return answerJson(exchange.response, 400, { error: { message: `not with ${authorization}` } });
    if (exchange.request.url === "/v1/embeddings")
      return answerJson(exchange.response, 200, { data: [{ index: 0, embedding: [1] }], usage: { prompt_tokens: 1 } });
    return answerText(exchange, "hi");
  });
  const { providers, models } = {
    providers: {
      local: allowed(upstream.url),
      closed: { dialect: "openai", base_url: `${upstream.url}/v1`, allow_private: true, api_keys: [OPERATORS] },
    },
    models: {
      tiny: { provider: "local", upstream_model: "t", price: { input: 1_000, output: 1_000 } },
      other: { provider: "closed", upstream_model: "t", price: { input: 1_000, output: 1_000 } },
      both: { targets: [{ model: "tiny" }, { model: "other" }] },
      vectors: {
        provider: "local",
        upstream_model: "v",
        modalities: { input: ["text"], output: ["embedding"] },
        price: { input: 1_000 },
      },
    },
  };
  // One failure opens a breaker.
  const breaker = { failures: 1 };
  product = await startProduct({ config: { providers, models, breaker, aliases: { "gpt-*": "other" } } });
  front = await startProduct({ flags: ["--role", "front", "--core", `127.0.0.1:${product.grpcPort}`] });
  for (const [name, role] of [
    ["ada", "owner"],
    ["bob", "developer"],
  ])
    await cli(
      `accounts create --email ${name}@example.com --role ${role} --password-stdin`,
      "four unrelated words here",
    );
  const keyOf = async (name: string): Promise<string> => {
    const text = await cli(`keys create --name ${name} --account ${name}@example.com --json`);
    return (JSON.parse(text) as { key: string }).key;
  };
  [adasKey, bobsKey] = [await keyOf("ada"), await keyOf("bob")];
});
afterAll(async () => {
  await front?.stop();
  await product?.stop();
  await upstream?.close();
});
beforeEach(() => void upstream.exchanges.splice(0));

const cli = (command: string, input?: string): Promise<string> => runBeside(product, command, input);
const setBobs = (secret: string): Promise<string> =>
  cli("credentials set bob@example.com --provider local --secret-stdin", secret);

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask(key: string, body: object = {}, { url }: Product = product): Promise<Answer> {
  const response = await postChat(url, key, { model: "tiny", ...body });
  return { status: response.status, text: await response.text() };
}

/** The credentials that have reached the provider since the last time. */
const used = (): (string | undefined)[] =>
  upstream.exchanges.splice(0).map(({ request }) => request.headers.authorization?.replace("Bearer ", ""));

/** More than the five seconds within which another process's change of the database is in force. */
const IN_FORCE_MS = 20_000;

/** Asks until a change of the database is in force. */
async function asksWith(key: string, secret: string, asked: object = {}): Promise<Answer> {
  for (const endMs = performance.now() + IN_FORCE_MS; ;) {
    const answer = await ask(key, asked);
    if (used().at(-1) === secret) return answer;
    if (performance.now() > endMs) throw new Error(`not in use: ${answer.text}`);
    await delay(100);
  }
}

describe("an account's own credential", () => {
  it("is used for its keys only, in place of the operator's, over HTTP, gRPC and a front", async () => {
    expect((await ask(bobsKey)).status).toBe(200);
    expect(used()).toEqual([OPERATORS]);
    await setBobs(BOBS);
    const { text } = await asksWith(bobsKey, BOBS);
    expect(JSON.parse(text)).toMatchObject({ parley: { attempts: [{ model: "tiny", own_credential: true }] } });
    const own = await ask(adasKey);
    expect(JSON.parse(own.text).parley.attempts[0]).not.toHaveProperty("own_credential");
    expect(used()).toEqual([OPERATORS]);
    // Without a key in its cache.
    await asksWith(bobsKey, BOBS, { stream: true });
    await asksWith(bobsKey, BOBS, { model: "both" });
    await ask(bobsKey, { model: "other" });
    expect(used()).toEqual([OPERATORS]);
    expect((await ask(bobsKey, {}, front)).status).toBe(200);
    expect((await ask(adasKey, {}, front)).status).toBe(200);
    expect(used()).toEqual([BOBS, OPERATORS]);
    const client = createClient(
      CompletionService,
      createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` }),
    );
    const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }];
    const { report } = await client.create(
      { model: "tiny", messages },
      { headers: { authorization: `Bearer ${bobsKey}` } },
    );
    expect(report?.attempts).toMatchObject([{ model: "tiny", ownCredential: true }]);
    const embedded = await postJson(`${product.url}/v1/embeddings`, bobsKey, { model: "vectors", input: "hi" });
    expect(embedded.status).toBe(200);
    expect(used()).toEqual([BOBS, BOBS]);
  });

  it("is encrypted at rest, and shown nowhere", async () => {
    await setBobs(BOBS);
    await asksWith(bobsKey, BOBS);
    const { status, text } = await ask(bobsKey, { messages: [{ role: "user", content: "refuse" }] });
    expect([status, text]).toEqual([400, expect.stringContaining("not with [key]")]);
    const listed = await cli("credentials list bob@example.com --json");
    expect(JSON.parse(listed)).toEqual([{ provider: "local", set: expect.any(String), set_by: null }]);
    const folder = join(product.home, "data");
    const files = readdirSync(folder).map((name) => readFileSync(join(folder, name), "latin1"));
    expect(files.length).toBeGreaterThan(1);
    const { stdout, stderr } = product.output;
    expect(stderr).toContain('"own_credential":true');
    for (const content of [...files, stdout, stderr, listed])
      for (const form of [BOBS, Buffer.from(BOBS).toString("base64")]) expect(content.includes(form)).toBe(false);
  });

  it("that is refused affects its account only: no calls of others fail, and no breaker of others opens", async () => {
    await setBobs(WRONG);
    const refused = await asksWith(bobsKey, WRONG);
    expect(refused.status).toBe(500);
    expect(refused.text).toContain("The provider local refused this account's own credential.");
    expect(refused.text).not.toContain(WRONG);
    expect((await ask(adasKey)).status).toBe(200);
    // Of a name with several models the next one serves.
    expect((await ask(bobsKey, { model: "both" })).status).toBe(200);
    const { breakers } = (await (await fetch(`${product.operationsUrl}/readyz`)).json()) as { breakers: object };
    expect(breakers).toMatchObject({ "local/t": "closed" });
    expect(Object.keys(breakers).filter((key) => key.includes(" "))).toEqual([]);
    const errors = product.output.stderr.split("\n").filter((line) => line.includes('"level":"error"'));
    expect(errors).toEqual([]);
    used();
    // A new one is used at once: the breaker was that of the old one.
    await setBobs(BOBS);
    expect((await asksWith(bobsKey, BOBS)).status).toBe(200);
  });

  it("that is limited opens the breaker of its account only", async () => {
    await setBobs(LIMITED);
    expect((await asksWith(bobsKey, LIMITED)).status).toBe(429);
    used();
    expect((await ask(bobsKey)).status).toBe(429);
    expect(used()).toEqual([]);
    expect((await ask(adasKey)).status).toBe(200);
  });

  it("cannot be that of another account or provider: without the right place there is no plaintext, and no other is used", async () => {
    await setBobs(BOBS);
    await asksWith(bobsKey, BOBS);
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(join(product.home, "data", "parley.db"));
    database.exec(
      "update accounts set credentials = (select credentials from accounts where email = 'bob@example.com') where email = 'ada@example.com'",
    );
    database.exec(
      `update accounts set credentials = replace(credentials, '"id":"', '"id":"copied-') where email = 'ada@example.com'`,
    );
    database.close();
    await expect
      .poll(async () => (await ask(adasKey)).text, { timeout: IN_FORCE_MS, interval: 100 })
      .toContain("This account's own credential for local cannot be decrypted. Set it again.");
    used();
    expect((await ask(adasKey)).status).toBe(503);
    expect(used()).toEqual([]);
    await cli("credentials remove ada@example.com --provider local");
    expect((await asksWith(adasKey, OPERATORS)).status).toBe(200);
  });

  it("is no name of a file, and only for providers that the operator has released", async () => {
    await expect(cli("credentials set bob@example.com --provider closed --secret-stdin", BOBS)).rejects.toThrow(
      "is not a provider for which accounts may have credentials (these are: local)",
    );
    await expect(setBobs("two words of a key")).rejects.toThrow("must be one word of ASCII characters");
    await expect(setBobs("short")).rejects.toThrow("must have 8 to 2048 characters");
    await setBobs("file:/etc/passwd");
    await asksWith(bobsKey, "file:/etc/passwd");
  });

  it("has its cost in the ledger and in reports, marked", async () => {
    const report = async () =>
      (JSON.parse(await cli("usage --by account --json")) as { usage: { own_cost_micro_usd: number }[] }).usage;
    const before = await report();
    await setBobs(BOBS);
    await asksWith(bobsKey, BOBS);
    await ask(adasKey);
    const after = await report();
    const costs = (rows: typeof before): number => rows.reduce((sum, row) => sum + row.own_cost_micro_usd, 0);
    // Three tokens of prompt and two of the answer.
    expect(costs(after) - costs(before)).toBeGreaterThanOrEqual(5_000);
    expect(await cli("usage --by account")).toContain("OF IT OWN");
    expect(after.filter(({ own_cost_micro_usd: own }) => own > 0)).toHaveLength(1);
  });

  it("is counted by budgets like the operator's", async () => {
    const created = await cli("keys create --name poor --account bob@example.com --budget 0.1 --json");
    const { key } = JSON.parse(created) as { key: string };
    await setBobs(BOBS);
    await asksWith(bobsKey, BOBS);
    // Five tokens, 0.005 USD, are booked for each; the whole of a prompt's bound is held before.
    const statuses: number[] = [];
    do statuses.push((await ask(key, { max_tokens: 5 })).status);
    while (statuses.at(-1) === 200 && statuses.length <= 20);
    expect(statuses.length).toBeGreaterThan(2);
    expect(statuses.at(-1)).toBe(429);
    expect(new Set(used())).toEqual(new Set([BOBS]));
  });

  it("ends with its removal", async () => {
    await setBobs(BOBS);
    await asksWith(bobsKey, BOBS);
    await cli("credentials remove bob@example.com --provider local");
    await asksWith(bobsKey, OPERATORS);
    await expect(cli("credentials remove bob@example.com --provider local")).rejects.toThrow(
      "has no credential of its own for local",
    );
  });
});

describe("an account's aliases", () => {
  it("are its own, come before those of the configuration, and give no permission", async () => {
    const limited = await cli("keys create --name limited --account bob@example.com --models other --json");
    const limitedKey = (JSON.parse(limited) as { key: string }).key;
    await cli("accounts aliases bob@example.com --set gpt-5=tiny,claude-*=both");
    const served = async (key: string, model: string, at = product): Promise<string> => {
      const { status, text } = await ask(key, { model }, at);
      return status === 200 ? (JSON.parse(text) as { model: string }).model : String(status);
    };
    await expect.poll(() => served(bobsKey, "gpt-5"), { timeout: IN_FORCE_MS, interval: 100 }).toBe("tiny");
    expect(await served(bobsKey, "gpt-4")).toBe("other");
    expect(await served(bobsKey, "claude-1")).toBe("tiny");
    expect(await served(bobsKey, "gpt-5", front)).toBe("tiny");
    expect(await served(adasKey, "gpt-5")).toBe("other");
    expect(await served(adasKey, "claude-1")).toBe("404");
    expect(await served(limitedKey, "gpt-5")).toBe("403");
    const headers = { authorization: `Bearer ${bobsKey}` };
    const found = await fetch(`${product.url}/v1/models/gpt-5`, { headers });
    expect(await found.json()).toMatchObject({ id: "tiny" });
    await expect(cli("accounts aliases bob@example.com --set tiny=other")).rejects.toThrow(
      "tiny is the ID of a model already",
    );
    await expect(cli("accounts aliases bob@example.com --set a=b")).rejects.toThrow("there is no model b");
    expect(await cli("accounts aliases bob@example.com")).toContain("gpt-5");
    await cli("accounts aliases bob@example.com --set none");
    expect(JSON.parse(await cli("accounts aliases bob@example.com --json"))).toEqual([]);
  });
});
