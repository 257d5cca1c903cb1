import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { CompletionService } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import { generateApiKey } from "../../src/access/api-key.ts";
import { type Product, runProduct, startProduct } from "../support/product.ts";
import {
  begins,
  refuses,
  says,
  type ScriptedUpstream,
  sends,
  startScriptedUpstream,
} from "../support/scripted-upstream.ts";

/** Everything that was planted, by what it is. */
const planted = new Map<string, string>();

/** A secret that occurs nowhere else. */
function plant(what: string, secret = `planted-${planted.size}-${crypto.randomUUID()}`): string {
  planted.set(what, secret);
  return secret;
}

interface Asked {
  readonly authorization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | string;
}

describe("forty kinds of secrets", () => {
  let upstream: ScriptedUpstream;
  let product: Product;
  /** Bodies and headers of all answers, but for what callers must get. */
  const answers: string[] = [];

  beforeAll(async () => {
    upstream = await startScriptedUpstream();
    product = await startProduct({
      config: {
        log: { level: "trace" },
        providers: {
          local: {
            dialect: "openai",
            base_url: `${upstream.url}/v1`,
            allow_private: true,
            api_keys: [plant("a provider's credential")],
            headers: { "x-tenant": plant("a provider's header") },
          },
          other: {
            dialect: "anthropic",
            base_url: upstream.url,
            allow_private: true,
            api_keys: [plant("another one")],
          },
        },
        models: {
          m: { provider: "local", upstream_model: "m" },
          refusing: { provider: "local", upstream_model: "refusing" },
          unauthorized: { provider: "other", upstream_model: "unauthorized" },
          garbled: { provider: "local", upstream_model: "garbled" },
          cut: { provider: "local", upstream_model: "cut" },
        },
      },
    });
    upstream.script("m", [says(plant("an answer"))]);
    upstream.script("refusing", [refuses(400, plant("a provider's 400"))]);
    upstream.script("unauthorized", [refuses(401, plant("a provider's 401"))]);
    upstream.script("garbled", [sends(200, "application/json", `{"oops": "${plant("an unreadable answer")}`)]);
    upstream.script("cut", [begins(plant("an answer that breaks off"), "reset")]);
  });

  afterAll(async () => {
    await product?.stop();
    await upstream?.close();
  });

  const ask = async ({ authorization, headers = {}, body = {} }: Asked, path = "/v1/chat/completions") => {
    const response = await fetch(product.url + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: authorization ?? `Bearer ${product.firstKey}`,
        ...headers,
      },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await response.text().catch(() => "");
    if (!response.ok) answers.push(JSON.stringify([...response.headers]) + text);
    return response.status;
  };

  const message = (content: unknown, model = "m"): object => ({ model, messages: [{ role: "user", content }] });

  /** What callers may write, into every place there is. */
  async function plantRequests(): Promise<void> {
    const png = Buffer.from(plant("a picture")).toString("base64");
    planted.set("a picture in base64", png);
    const call = {
      id: plant("a call's ID"),
      type: "function",
      function: { name: "f", arguments: `{"a":"${plant("arguments")}"}` },
    };
    const parameters = { type: "object", properties: { [plant("a property's name")]: { type: "string" } } };
    await ask({
      body: {
        model: "m",
        messages: [
          { role: "system", content: plant("a system message") },
          {
            role: "user",
            name: plant("a speaker's name"),
            content: [{ type: "text", text: plant("a user's message") }],
          },
          {
            role: "assistant",
            content: plant("an earlier answer"),
            reasoning_content: plant("reasoning"),
            tool_calls: [call],
          },
          { role: "tool", tool_call_id: call.id, content: plant("a tool's result") },
          { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${png}` } }] },
        ],
        tools: [{ type: "function", function: { name: "f", description: plant("a tool's description"), parameters } }],
        response_format: {
          type: "json_schema",
          json_schema: { name: "s", schema: { description: plant("a schema") } },
        },
        user: plant("a user's name"),
        metadata: { m: plant("metadata") },
        stop: [plant("a stop sequence")],
        safety_identifier: plant("a safety identifier"),
        prompt_cache_key: plant("a cache key"),
        parley: { note: plant("an unknown field's value") },
      },
      headers: {
        cookie: `sid=${plant("a cookie")}`,
        "x-api-key": plant("a header of another service"),
        "user-agent": plant("a user agent"),
        "x-forwarded-for": plant("a forged address"),
        referer: plant("a referrer"),
      },
    });
    await ask({ body: { ...message(plant("a streamed prompt")), stream: true } });
    for (const model of ["refusing", "unauthorized", "garbled", "cut"]) {
      await ask({ body: message(plant(`a prompt to ${model}`), model) });
      await ask({ body: { ...message("hi", model), stream: true } });
    }
    await ask({
      body: message(plant("a prompt with a wrong value")),
      headers: { "x-request-timeout-ms": plant("a wrong header") },
    });
    await ask({ body: `{"broken": "${plant("an unreadable body")}` });
    await ask({ body: { ...message("hi"), temperature: plant("a wrong value") } });
    await ask({ body: {} }, `/v1/nothing?key=${plant("a query")}`);
  }

  /** Keys that are not valid: each is somebody's mistake, or was a key once. */
  async function plantCredentials(): Promise<void> {
    const unknown = plant("an unknown key", generateApiKey());
    for (const authorization of [
      `Bearer ${unknown}`,
      `Bearer ${plant("no key at all")}`,
      `Basic ${plant("a password")}`,
      `Bearer ${plant("a key of another service", `sk-ant-${crypto.randomUUID()}`)}`,
    ]) {
      expect(await ask({ authorization, body: message("hi") })).toBe(401);
    }
    const { output, ending } = runProduct(["keys", "create", "--name", "planted"], { home: product.home });
    await ending;
    const key = plant("a key", output.stdout.trim());
    expect(await ask({ authorization: `Bearer ${key}`, body: message("hi") })).toBe(200);
    plant("the first key", product.firstKey);
  }

  /** What people type in, and what they are given to come back with. */
  async function plantAccounts(): Promise<void> {
    let cookie = "";
    const call = async (method: string, body: object): Promise<Record<string, unknown>> => {
      const response = await fetch(`${product.url}/parley.console.v1.${method}`, {
        method: "POST",
        headers: { "content-type": "application/json", cookie },
        body: JSON.stringify(body),
      });
      cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? cookie;
      const text = await response.text();
      if (!response.ok) answers.push(text);
      return JSON.parse(text) as Record<string, unknown>;
    };
    const [email, password] = ["ada@example.com", plant("a password that is right")];
    await call("SessionService/SignUp", { email, password, name: "Ada" });
    plant("a session", cookie.slice("sid=".length));
    await call("SessionService/SignIn", { email, password: plant("a password that is wrong") });
    await call("SessionService/SignIn", { email: "nobody@example.com", password: plant("nobody's password") });
    await call("SessionService/SignIn", { email, password });
    plant("another session", cookie.slice("sid=".length));
    const next = plant("a new password");
    await call("SessionService/ChangePassword", {
      currentPassword: plant("a wrong current password"),
      newPassword: next,
    });
    await call("SessionService/ChangePassword", { currentPassword: password, newPassword: next });
    const { token } = await call("AccountService/CreateInvitation", {
      email: "bob@example.com",
      role: "ACCOUNT_ROLE_MEMBER",
    });
    plant("an invitation", String(token));
    await call("SessionService/SignUp", {
      email: "eve@example.com",
      password: next,
      invitationToken: plant("a guessed one"),
    });
    const { secret } = await call("KeyService/Create", { name: "from the dashboard" });
    plant("a key of the dashboard", String(secret));
    await call("KeyService/Revoke", { id: plant("a key in the place of an ID", generateApiKey()) });
  }

  async function plantGrpc(): Promise<void> {
    const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` });
    const client = createClient(CompletionService, transport);
    const headers = { authorization: `Bearer ${product.firstKey}`, "x-secret": plant("gRPC metadata") };
    const request = (text: string) => ({
      model: "m",
      messages: [{ role: Role.USER, content: [{ content: { case: "text" as const, value: text } }] }],
    });
    await client.create(request(plant("a gRPC prompt")), { headers });
    const refused = client.create(request(plant("a refused gRPC prompt")), {
      headers: { authorization: `Bearer ${plant("an unknown gRPC key", generateApiKey())}` },
    });
    await expect(refused).rejects.toThrow("not valid");
  }

  it("are in no log, no error, no metric and no table", async () => {
    await plantRequests();
    await plantCredentials();
    await plantGrpc();
    await plantAccounts();
    expect([...planted].filter(([, secret]) => secret.length < 20)).toEqual([]);
    const operations = await Promise.all(
      ["/metrics", "/readyz", "/healthz"].map(async (path) => (await fetch(product.operationsUrl + path)).text()),
    );
    // What the greeting shows is meant to be seen, once.
    const [greeting = "", ...printed] = product.output.stdout.split("\n\n{");
    expect(greeting).toContain(product.firstKey);
    const data = join(product.home, "data");
    const places = new Map([
      ["the log", product.output.stderr + printed.join("\n")],
      ["an error", answers.join("\n")],
      ["a metric or a state", operations.join("\n")],
      ...readdirSync(data).map((name) => [name, readFileSync(join(data, name), "latin1")] as const),
    ]);
    expect(places.get("the log")!.split("\n").length).toBeGreaterThan(15);
    expect(answers.length).toBeGreaterThan(10);
    expect(planted.size).toBeGreaterThanOrEqual(40);
    const found = [...planted].flatMap(([what, secret]) =>
      [...places].filter(([, text]) => text.includes(secret)).map(([place]) => `${what} in ${place}`),
    );
    expect(found).toEqual([]);
  });
});
