import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { createStop } from "../../src/access/stops.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Attribution } from "../../src/core/attribution.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { type Product, startProduct } from "../support/product.ts";
import { answerText, localModel, startUpstream, type Upstream } from "./support/upstream.ts";

let upstream: Upstream;
let core: Product;
/** The product, and a front before a core, by what they are. */
const products = {} as Record<"one process" | "a front and a core", Product>;
const stores = {} as Record<keyof typeof products, Store>;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hello"));
  const { providers } = localModel(upstream.url);
  const config = { providers, models: { [MODEL]: { ...UPSTREAM_MODEL, price: { input: 1, output: 2 } } } };
  products["one process"] = await startProduct({ config });
  core = await startProduct({ config, flags: ["--role", "core"] });
  const front = await startProduct({ flags: ["--role", "front", "--core", `127.0.0.1:${core.grpcPort}`] });
  products["a front and a core"] = { ...front, firstKey: core.firstKey, grpcPort: core.grpcPort };
  const openIn = ({ home }: Product) => openStore({ dataDir: join(home, "data"), databaseUrl: undefined });
  stores["one process"] = await openIn(products["one process"]);
  stores["a front and a core"] = await openIn(core);
});

afterAll(async () => {
  for (const store of Object.values(stores)) await store.close();
  for (const product of [...Object.values(products), core]) await product?.stop();
  await upstream?.close();
});

const MODEL = "m";
const UPSTREAM_MODEL = { provider: "local", upstream_model: "m", context_window: 100_000, max_output_tokens: 10_000 };
const CHAT = { messages: [{ role: "user", content: "hi" }] };
const SESSION = "8ba69d5a-59cd-4c9a-816f-e32cfae9a1ba";
const CLAUDE = JSON.stringify({ device_id: "device", account_uuid: "", session_id: SESSION });

interface Case {
  readonly path: string;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: Attribution;
}

const CASES: Readonly<Record<string, Case>> = {
  "chat completions": {
    path: "/v1/chat/completions",
    body: { model: MODEL, ...CHAT, user: "ann", metadata: { team: "a" } },
    headers: { "parley-session-id": "run 7", "parley-tags": "nightly", "user-agent": "OpenAI/JS 6.9.1" },
    expected: { endUser: "ann", session: "run 7", agent: "OpenAI", tags: ["nightly", "team=a"] },
  },
  "responses of Codex": {
    path: "/v1/responses",
    body: { model: MODEL, input: "hi", safety_identifier: "hash" },
    headers: { originator: "codex_exec", "session-id": SESSION, "user-agent": "codex_exec/0.169.0 (Debian)" },
    expected: { endUser: "hash", session: SESSION, agent: "codex_exec" },
  },
  "messages of Claude Code": {
    path: "/v1/messages",
    body: { model: MODEL, max_tokens: 9, ...CHAT, metadata: { user_id: CLAUDE } },
    headers: { "x-claude-code-session-id": SESSION, "user-agent": "claude-cli/2.1.197 (external, sdk-cli)" },
    expected: { endUser: "device", session: SESSION, agent: "claude-cli" },
  },
  gemini: {
    path: `/v1beta/models/${MODEL}:generateContent`,
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }], labels: { team: "b" } },
    headers: { "parley-end-user": "J%C3%B6rg", "user-agent": "GeminiCLI-tui/0.61.0/alpha" },
    expected: { endUser: "Jörg", agent: "GeminiCLI-tui", tags: ["team=b"] },
  },
  "the contract over Connect": {
    path: "/parley.v1.CompletionService/Create",
    body: {
      model: MODEL,
      messages: [{ role: "ROLE_USER", parts: [{ text: "hi" }] }],
      sessionId: "s-1",
      endUserId: "ann",
    },
    headers: { "user-agent": "connect-es/2" },
    expected: { endUser: "ann", session: "s-1", agent: "connect-es" },
  },
};

async function post({ url, firstKey }: Product, { path, body, headers = {} }: Case, requestId = "") {
  const response = await fetch(url + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${firstKey}`,
      "content-type": "application/json",
      "x-request-id": requestId,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, json: (await response.json()) as object };
}

describe.each(["one process", "a front and a core"] as const)("by %s", (name) => {
  it.each(Object.keys(CASES))("the ledger keeps whom and what a request is for: %s", async (of) => {
    const asked = CASES[of]!;
    const requestId = `req_${of.replaceAll(" ", "_")}`;
    const { status, json } = await post(products[name], asked, requestId);
    expect([status, JSON.stringify(json)]).toEqual([200, expect.stringContaining("hello")]);
    expect((await stores[name].ledger.find(requestId))?.attribution).toEqual(asked.expected);
  });

  it("calls of a stopped session and end user are refused in every format, and others are served", async () => {
    const product = products[name];
    const context = { stops: stores[name].stops, clock: systemClock, log: { record: async () => undefined } };
    const actor = { actorId: DEFAULT_ACCOUNT_ID, network: undefined };
    const stop = (kind: "session" | "end_user", value: string) =>
      createStop(context, { accountId: DEFAULT_ACCOUNT_ID, kind, value, actor });
    for (const value of ["run 7", SESSION]) await stop("session", value);
    for (const value of ["Jörg", "ann"]) await stop("end_user", value);
    const refusals: Record<string, object> = {
      "chat completions": { error: { type: "permission_error", code: "stopped" } },
      "responses of Codex": { error: { type: "permission_error", code: "stopped" } },
      "messages of Claude Code": { type: "error", error: { type: "permission_error" } },
      gemini: { error: { code: 403, status: "PERMISSION_DENIED" } },
      "the contract over Connect": { code: "permission_denied" },
    };
    for (const [of, asked] of Object.entries(CASES)) {
      await expect.poll(async () => (await post(product, asked)).status, { timeout: 20_000, interval: 250 }).toBe(403);
      const { json, headers } = await post(product, asked);
      expect(json).toMatchObject(refusals[of]!);
      expect(JSON.stringify(json)).toMatch(/This (session|end user) is stopped until 20/);
      expect(headers.get("x-should-retry") ?? "false").toBe("false");
    }
    const grpc = createClient(
      CompletionService,
      createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` }),
    );
    const request = {
      model: MODEL,
      messages: [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: "hi" } }] }],
    };
    const headers = { authorization: `Bearer ${product.firstKey}` };
    await expect(grpc.create({ ...request, endUserId: "ann" }, { headers })).rejects.toThrow(/stopped until/);
    await grpc.create({ ...request, endUserId: "ben" }, { headers });
    const { status } = await post(product, {
      path: "/v1/embeddings",
      body: { model: MODEL, input: "hi", user: "ann" },
      expected: {},
    });
    expect(status).toBe(403);
  });
});
