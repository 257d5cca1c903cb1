import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Config } from "../../src/config/config.ts";
import type { ConfigSource } from "../../src/config/parse.ts";
import { ModelImports } from "../../src/gateway/model-imports.ts";
import { withLines } from "../../src/telemetry/logger.ts";
import { startTestGateway } from "../support/gateway.ts";
import { FakeClock } from "../support/fake-clock.ts";

const KEY = "credential-of-the-provider";
const MINUTE_MS = 60_000;

let server: Server;
/** Answers the list. */
let answer: (response: ServerResponse) => void;
let asked: unknown[] = [];
let clock: FakeClock;
let lines: Record<string, unknown>[];
let imports: ModelImports;

const lists =
  (...names: readonly string[]) =>
  (response: ServerResponse): void =>
    void response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ data: names.map((id) => ({ id })) }));
const fails = (response: ServerResponse): void => void response.writeHead(503).end();

beforeEach(async () => {
  asked = [];
  server = createServer((request, response) => {
    asked.push([request.method, request.url, request.headers.authorization]);
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  clock = new FakeClock();
  lines = [];
  const to = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  imports = new ModelImports({ clock, log: withLines(pino({}, to), { lines: to }), random: () => 0 });
});
afterEach(() => {
  imports.close();
  server.closeAllConnections();
  server.close();
});

function sourceOf(models: object = { "*": "import" }, path = "/v1"): ConfigSource {
  const { port } = server.address() as AddressInfo;
  const local = {
    dialect: "openai",
    base_url: `http://127.0.0.1:${port}${path}`,
    allow_private: true,
    api_keys: [KEY],
  };
  return { file: "parley.yaml", text: JSON.stringify({ providers: { local }, models }), env: {} };
}

const idsOf = (config: Config | undefined): string[] | undefined => config?.models.map(({ id }) => id);
const never = async (): Promise<void> => expect.unreachable("nothing has changed");

describe("models that are imported", () => {
  it("are in the configuration that the gateway starts with", async () => {
    answer = lists("a", "b");
    expect(idsOf(await imports.use(sourceOf(), never))).toEqual(["a", "b"]);
    expect(asked).toEqual([["GET", "/v1/models", `Bearer ${KEY}`]]);
    expect(lines).toMatchObject([{ provider: "local", models: 2, without_price: 2, msg: "models imported" }]);
  });

  it("delay a start by five seconds at most", async () => {
    answer = () => undefined;
    const started = imports.use(sourceOf(), never);
    await expect.poll(() => asked).toHaveLength(1);
    await clock.pass(4_999);
    expect(lines).toEqual([]);
    await clock.pass(1);
    expect(idsOf(await started)).toEqual([]);
    expect(lines[0]).toMatchObject({ level: 40, provider: "local", reason: "There was no list in 5 s.", kept: 0 });
  });

  it("do not delay a change of the stored configuration: known ones are used at once, and others are asked for then", async () => {
    answer = () => undefined;
    const applied: Config[] = [];
    const apply = async (config: Config): Promise<void> => void applied.push(config);
    expect(idsOf(await imports.use(sourceOf(), apply, { waits: false }))).toEqual([]);
    expect(asked).toEqual([]);
    answer = lists("a");
    clock.advance(0);
    await expect.poll(() => applied.map(idsOf)).toEqual([["a"]]);
    expect(idsOf(await imports.use(sourceOf(), apply, { waits: false }))).toEqual(["a"]);
    expect(asked).toHaveLength(1);
  });

  it("change with the list, which is looked at every 15 minutes", async () => {
    answer = lists("a");
    const applied: Config[] = [];
    await imports.use(sourceOf(), async (config) => void applied.push(config));
    await clock.pass(15 * MINUTE_MS);
    await expect.poll(() => [asked.length, clock.pending]).toEqual([2, 1]);
    expect(applied).toEqual([]);
    answer = lists("a", "b");
    await clock.pass(15 * MINUTE_MS);
    await expect.poll(() => applied.map(idsOf)).toEqual([["a", "b"]]);
  });

  it("do not change with the order of the list", async () => {
    answer = lists("a", "b");
    const applied: Config[] = [];
    await imports.use(sourceOf(), async (config) => void applied.push(config));
    answer = lists("b", "a");
    await clock.pass(15 * MINUTE_MS);
    await expect.poll(() => [asked.length, clock.pending]).toEqual([2, 1]);
    expect(applied).toEqual([]);
  });

  it("stay while the provider is unavailable, which is asked again a minute later", async () => {
    answer = lists("a");
    const applied: Config[] = [];
    const apply = async (config: Config): Promise<void> => void applied.push(config);
    await imports.use(sourceOf(), apply);
    answer = fails;
    // Another configuration of the same provider keeps what is known.
    const other = { "*": "import", own: { provider: "local", upstream_model: "own" } };
    expect(idsOf(await imports.use(sourceOf(other), apply))).toEqual(["own", "a"]);
    expect(lines.at(-2)).toMatchObject({ status: 503, kept: 1, msg: "a provider's models not listed" });
    answer = lists("b");
    await clock.pass(MINUTE_MS);
    await expect.poll(() => applied.map(idsOf)).toEqual([["own", "b"]]);
  });

  it("are forgotten with the address that they are from", async () => {
    answer = lists("a");
    await imports.use(sourceOf(), never);
    answer = fails;
    const { text } = sourceOf();
    const moved = text.replace("127.0.0.1", "localhost");
    expect(idsOf(await imports.use({ ...sourceOf(), text: moved }, never))).toEqual([]);
  });

  it("are those of the last of two configurations that come together", async () => {
    answer = lists("a");
    const first = imports.use(sourceOf(), never);
    const second = imports.use(sourceOf({ "local/*": "import" }), never);
    expect([await first, idsOf(await second)]).toEqual([undefined, ["local/a"]]);
    expect(clock.pending).toBe(1);
  });

  it("are those of the configuration before when a later one was not put in force", async () => {
    answer = lists("a");
    const applied: Config[] = [];
    const apply = async (config: Config): Promise<void> => void applied.push(config);
    await imports.use(sourceOf(), apply);
    imports.keep();
    await imports.use(sourceOf({ "local/*": "import" }), apply);
    imports.revert(apply);
    answer = lists("a", "b");
    await clock.pass(MINUTE_MS);
    await expect.poll(() => applied.map(idsOf)).toEqual([["a", "b"]]);
    await expect.poll(() => clock.pending).toBe(1);
    const invalid = { ...sourceOf(), text: "{" };
    await expect(imports.use(invalid, apply)).rejects.toThrow("parley.yaml");
    imports.revert(apply);
    expect(clock.pending).toBe(1);
  });

  it("are not looked at any more when they are no longer imported", async () => {
    answer = lists("a");
    await imports.use(sourceOf(), never);
    expect(idsOf(await imports.use(sourceOf({ own: { provider: "local", upstream_model: "own" } }), never))).toEqual([
      "own",
    ]);
    expect(clock.pending).toBe(0);
  });

  it("leave the circuit breakers as they are, as the stored configuration does of providers that stay, and a changed file does not", async () => {
    answer = fails;
    const { providers } = JSON.parse(sourceOf().text) as { providers: object };
    const models = { a: { provider: "local", upstream_model: "a" } };
    const gateway = await startTestGateway({ config: { providers, models, breaker: { failures: 1 } } });
    try {
      const request = [
        `http://127.0.0.1:${gateway.httpPort}/v1/chat/completions`,
        {
          method: "POST",
          headers: { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "a", messages: [{ role: "user", content: "hi" }] }),
        },
      ] as const;
      await fetch(...request);
      expect((await gateway.readiness()).breakers).toMatchObject({ "local/a": "open" });
      for (const changed of ["lists", "stored"] as const) {
        await gateway.configure({}, changed);
        expect((await gateway.readiness()).breakers).toMatchObject({ "local/a": "open" });
      }
      const local = { ...(providers as { local: object }).local, api_keys: ["another-credential-of-the-provider"] };
      await gateway.configure({ providers: { local } }, "stored");
      expect((await gateway.readiness()).breakers).not.toHaveProperty("local/a", "open");
      await fetch(...request);
      expect((await gateway.readiness()).breakers).toMatchObject({ "local/a": "open" });
      await gateway.configure({});
      expect((await gateway.readiness()).breakers).not.toHaveProperty("local/a", "open");
    } finally {
      await gateway.close();
    }
  });
});
