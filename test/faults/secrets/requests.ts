import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { Role } from "../../../gen/parley/v1/message_pb.js";
import { generateApiKey } from "../../../src/access/api-key.ts";
import { FAILING, type Scene } from "./scene.ts";

/** The body; an object is sent as JSON. */
export interface Asked {
  readonly authorization?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | string;
}

/** Sends an HTTP request, keeps error responses, and returns the status; 0 for a broken connection. */
export async function ask(
  { product, errors }: Scene,
  { authorization = `Bearer ${product.firstKey}`, headers = {}, body = {} }: Asked,
  path = "/v1/chat/completions",
): Promise<number> {
  const response = await fetch(product.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization, ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  const text = await response.text().catch(() => "");
  // Text before the error in a broken stream is for its caller.
  const told = response.ok ? text.split("\n\n").filter((event) => event.includes('"error":')) : [text];
  if (told.length > 0) errors.push(`${JSON.stringify([...response.headers])}\n${told.join("\n")}`);
  return response.status;
}

const message = (content: unknown, model = "m"): object => ({ model, messages: [{ role: "user", content }] });

const STRAY_KEY = `sk_parley_${crypto.randomUUID().replaceAll("-", "")}`;

/** Sends secrets in every field that callers can write, with success and with each failure. */
export async function plantRequests(scene: Scene): Promise<void> {
  const plant = (what: string): string => scene.planted.plant(what);
  const png = Buffer.from(plant("a picture")).toString("base64");
  const call = {
    id: plant("a call's ID"),
    type: "function",
    function: { name: "f", arguments: `{"a":"${plant("arguments")}"}` },
  };
  const parameters = { type: "object", properties: { [plant("a property's name")]: { type: "string" } } };
  await ask(scene, {
    body: {
      model: "m",
      messages: [
        { role: "system", content: plant("a system message") },
        { role: "user", name: plant("a speaker's name"), content: [{ type: "text", text: plant("a user's message") }] },
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
      "x-service-token": plant("a header of another service"),
      // The program's name itself is kept in the ledger.
      "user-agent": `crawler/1.0 ${scene.planted.plant("a key in a user agent", STRAY_KEY)}`,
      "x-forwarded-for": plant("a forged address"),
      referer: plant("a referrer"),
    },
  });
  await plantKeysInAttribution(scene);
  await ask(scene, { body: { ...message(plant("a streamed prompt")), stream: true } });
  for (const model of FAILING) {
    await ask(scene, { body: message(plant(`a prompt to ${model}`), model) });
    await ask(scene, { body: { ...message("hi", model), stream: true } });
  }
  await ask(scene, {
    body: message(plant("a prompt without time"), "silent"),
    headers: { "x-request-timeout-ms": "50" },
  });
  const wrongHeader = { "x-request-timeout-ms": plant("a wrong header") };
  await ask(scene, { body: message(plant("a prompt with a wrong value")), headers: wrongHeader });
  await ask(scene, { body: `{"broken": "${plant("an unreadable body")}` });
  await ask(scene, { body: { ...message("hi"), temperature: plant("a wrong value") } });
  await ask(scene, { body: {} }, `/v1/nothing?key=${plant("a query")}`);
  await ask(scene, { body: { id: plant("a wrong Connect message"), nothing: 1 } }, "/parley.v1.ModelService/Get");
}

/** Sends API keys by mistake in everything that says whom and what a request is for: the ledger keeps those texts without the keys. */
async function plantKeysInAttribution(scene: Scene): Promise<void> {
  const key = (where: string): string => scene.planted.plant(`a key in ${where}`, generateApiKey());
  const byFields = { user: `u-1 ${key("a user's name")}`, metadata: { run: key("metadata"), [key("a label")]: "run" } };
  const sent = [
    {
      fields: byFields,
      headers: { "x-claude-code-session-id": key("a program's session"), originator: key("a program") },
    },
    {
      fields: { safety_identifier: key("a safety identifier") },
      headers: { session_id: key("another program's session") },
    },
    {
      fields: {},
      headers: {
        "parley-end-user": `J%C3%B6rg ${key("an end user")}`,
        "parley-session-id": key("a session"),
        "parley-agent": key("an agent"),
        "parley-tags": `nightly,key=${key("a tag")}`,
      },
    },
  ];
  for (const { fields, headers } of sent) {
    const status = await ask(scene, { body: { ...message("hi"), ...fields }, headers });
    if (status !== 200) throw new Error(`keys in attribution were answered with ${status}`);
  }
}

/** Sends invalid keys: typing errors and former keys. Returns the statuses. */
export async function plantCredentials(scene: Scene): Promise<number[]> {
  const { planted } = scene;
  const statuses: number[] = [];
  for (const authorization of [
    `Bearer ${planted.plant("an unknown key", generateApiKey())}`,
    `Bearer ${planted.plant("no key at all")}`,
    `Basic ${planted.plant("a password")}`,
    `Bearer ${planted.plant("a key of another service", `sk-ant-${crypto.randomUUID()}`)}`,
  ])
    statuses.push(await ask(scene, { authorization, body: message("hi") }));
  planted.plant("the first key", scene.product.firstKey);
  return statuses;
}

/** Does the same over gRPC: a prompt, metadata and an unknown key. Returns the last status. */
export async function plantGrpc({ planted, product, errors }: Scene): Promise<string> {
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${product.grpcPort}` });
  const client = createClient(CompletionService, transport);
  const headers = { authorization: `Bearer ${product.firstKey}`, "x-secret": planted.plant("gRPC metadata") };
  const request = (text: string, model = "m") => ({
    model,
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: text } }] }],
  });
  await client.create(request(planted.plant("a gRPC prompt")), { headers });
  const failing = client.create(request(planted.plant("a failing gRPC prompt"), "garbled"), { headers });
  await failing.catch((error: unknown) => errors.push(inspectError(error)));
  const refused = client.create(request(planted.plant("a refused gRPC prompt")), {
    headers: { authorization: `Bearer ${planted.plant("an unknown gRPC key", generateApiKey())}` },
  });
  const told = await refused.then(() => "", inspectError);
  errors.push(told);
  return told;
}

function inspectError(error: unknown): string {
  const { message: said, metadata } = error as { message: string; metadata: Headers };
  return `${said}\n${JSON.stringify([...metadata])}`;
}
