import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it } from "vitest";
import { buildContract } from "../../../../scripts/reference/contract.ts";
import { DIALECTS } from "../../../../src/config/dialects.ts";
import { Failure, type FailureCode } from "../../../../src/core/failure.ts";
import { RANGES, validate } from "../../../../src/core/validate.ts";
import { renameFields } from "../../../../src/inbound/http/completion.ts";
import { readChatRequest } from "../../../../src/formats/openai-chat/request.ts";
import { toErrorBody } from "../../../../src/formats/openai-error.ts";
import { FAILURE_TABLE, type FailureRow } from "../../../../src/inbound/failure-table.ts";
import type { JsonSchema } from "../../../../src/inbound/http/openapi/components.ts";
import { openApiDocument } from "../../../../src/inbound/http/openapi/document.ts";
import { readProtoComments } from "../../../../src/inbound/http/openapi/proto-schemas.ts";
import { CONNECT_SERVICES, createCors, findRoute } from "../../../../src/inbound/http/routes.ts";
import { ANSWER_SAMPLES } from "../../../compatibility/answer-samples.ts";
import { asCompletion, asEvents } from "../../../compatibility/answers.ts";
import { REQUEST_SAMPLES } from "../../../compatibility/request-samples.ts";
import { schemasOf } from "../../../support/document-schemas.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../../../support/scripted-provider.ts";

interface Operation {
  readonly security?: readonly object[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}
interface Document {
  readonly info: { readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly headers: Readonly<Record<string, object>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
  };
}

const document = JSON.parse(JSON.stringify(openApiDocument())) as Document;
const { schemas } = document.components;
const open = schemasOf(document);
const strict = schemasOf(document, "strict");
const chat = document.paths["/v1/chat/completions"]!["post"]!;
const text = modelOf("a", new ScriptedProvider(new FakeClock(), {}));
const CODES = Object.keys(FAILURE_TABLE) as FailureCode[];

const base = { model: "a", messages: [{ role: "user", content: "Hi" }] };

/** The field that the server names when it refuses a request with these fields; undefined when it takes it. */
function refusedField(fields: object): string | undefined {
  let nameOf = (path: string): string => path;
  try {
    const read = readChatRequest({ ...base, ...fields });
    ({ nameOf } = read);
    validate(read.request, text, () => []);
  } catch (reason) {
    if (reason instanceof Failure) return renameFields(reason, nameOf).param;
    throw reason;
  }
  return undefined;
}

describe("the OpenAPI document", () => {
  it("is one, by the specification's own schema", async () => {
    expect(await new Validator().validate(structuredClone(document) as never)).toEqual({ valid: true });
  });

  it("is the same each time", () => {
    expect(JSON.stringify(openApiDocument())).toBe(JSON.stringify(document));
  });

  it("says of everything in the contract what it means, where the descriptors are built", async () => {
    const { descriptors } = await buildContract();
    const explained = openApiDocument({ comments: readProtoComments(descriptors) }) as Document;
    expect(await new Validator().validate(structuredClone(explained) as never)).toEqual({ valid: true });
    const messages = Object.entries(explained.components.schemas).filter(([name]) => name.startsWith("parley.v1."));
    const fields = messages.flatMap(([name, { properties = {} }]) =>
      Object.entries(properties).map(([field, schema]) => [`${name}.${field}`, schema] as const),
    );
    expect(fields.length).toBeGreaterThan(150);
    expect([...messages, ...fields].filter(([, schema]) => !("description" in schema)).map(([name]) => name)).toEqual(
      [],
    );
    const values = explained.components.schemas["parley.v1.FinishReason"] as { enum: string[] };
    expect(values).toHaveProperty(
      "x-enumDescriptions",
      Object.fromEntries(values.enum.map((name) => [name, expect.any(String)])),
    );
    const calls = Object.entries(explained.paths).filter(([path]) => path.startsWith("/parley.v1."));
    expect(calls.filter(([, { post }]) => !("description" in post!))).toEqual([]);
  });

  it("shows a request that the server takes", () => {
    const { example } = (chat as unknown as { requestBody: { content: Record<string, { example: object }> } })
      .requestBody.content["application/json"]!;
    expect(open.at("components", "schemas", "ChatCompletionRequest")(example)).toEqual([]);
    expect(refusedField(example)).toBeUndefined();
  });

  it("has a section about every failure", () => {
    const titles = [...document.info.description.matchAll(/^## (\w+)$/gm)].map(([, title]) => title);
    expect(titles).toEqual(CODES);
    expect(document.info.description).not.toMatch(/undefined|\bnull\b|NaN/);
  });

  it("has only routes that there are, with their methods", () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods)) {
        expect(findRoute(path.replace(/\{\w+\}/, "x"), method.toUpperCase()), path).toHaveProperty("route");
      }
    }
  });

  it("has every route", () => {
    const openai = [
      "/v1/chat/completions",
      "/v1/responses",
      "/v1/responses/input_tokens",
      "/v1/responses/{id}",
      "/v1/responses/{id}/input_items",
      "/v1/embeddings",
      "/v1/images/generations",
      "/v1/images/edits",
      "/v1/route",
      "/v1/models",
      "/v1/models/{id}",
    ];
    const gemini = [
      "/v1beta/models/{model}:generateContent",
      "/v1beta/models/{model}:streamGenerateContent",
      "/v1beta/models/{model}:countTokens",
      "/v1beta/models/{model}:embedContent",
      "/v1beta/models/{model}:batchEmbedContents",
      "/v1beta/models",
      "/v1beta/models/{id}",
    ];
    const messages = ["/v1/messages", "/v1/messages/count_tokens"];
    const ours = [...openai, ...gemini, ...messages, "/healthz", "/readyz"];
    const connect = CONNECT_SERVICES.flatMap(({ typeName, methods }) =>
      methods.map(({ name }) => `/${typeName}/${name}`),
    );
    expect(Object.keys(document.paths)).toEqual([...ours, ...connect]);
  });

  it("asks for a key wherever the server does", () => {
    const free = Object.entries(document.paths).filter(([, { get, post }]) => (get ?? post)?.security !== undefined);
    expect(free.map(([path]) => path)).toEqual(["/healthz", "/readyz"]);
  });

  it("gives every schema, response and operation a name of its own", () => {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map((operation) => (operation as { operationId?: string }).operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).not.toContain(undefined);
  });
});

describe("the documented request", () => {
  const isRequest = open.at("components", "schemas", "ChatCompletionRequest");

  it.each(Object.keys(REQUEST_SAMPLES))("takes %s, as the server does", (name) => {
    const { given, without } = REQUEST_SAMPLES[name]!;
    const request = { ...base, ...without, ...given };
    readChatRequest(request);
    expect(isRequest(request)).toEqual([]);
  });

  // The schemas of requests stand before those of answers.
  const names = Object.keys(schemas);
  it.each(names.slice(0, names.indexOf("ChatCompletion")))("says of every field of %s what it means", (name) => {
    const unsaid = fieldsOf(schemas[name]!).filter(([path, { description }]) => {
      return description === undefined && !/(^|\.)type$/.test(path);
    });
    expect(unsaid.map(([path]) => path)).toEqual([]);
  });

  it.each(fieldsOf(schemas["ChatCompletionRequest"]!).filter(([, { minimum }]) => minimum !== undefined))(
    "has the server's range of %s",
    (field, { minimum, maximum }) => {
      const [min, max] = [Number(minimum), Number(maximum)];
      const isSafe = Number.isSafeInteger(max + 1);
      const beside = field === "top_logprobs" ? { logprobs: true } : {};
      expect(refusedField({ [field]: min, ...beside })).toBeUndefined();
      // What a model can do at most is its own.
      const most = field.startsWith("max_") ? text.upstream.maxOutputTokens : max;
      expect(refusedField({ [field]: most, ...beside })).toBeUndefined();
      if (!isSafe) return;
      for (const value of [min - 1, max + 1]) {
        expect(refusedField({ [field]: value, ...beside }), `${value}`).toMatch(
          new RegExp(`^${field.replace("max_completion_tokens", "max_(completion_)?tokens")}$`),
        );
        expect(isRequest({ ...base, [field]: value })).not.toEqual([]);
      }
    },
  );

  it("has every range that the server checks", () => {
    const documented = JSON.stringify(schemas["ChatCompletionRequest"]);
    const { nameOf } = readChatRequest(base);
    for (const [path, [min, max]] of Object.entries(RANGES)) {
      const field = nameOf(path);
      expect(documented, field).toMatch(new RegExp(`"${field}":\\{.*?"minimum":${min},"maximum":${max}`));
    }
  });

  it.each<[string, object]>([
    ["fallback_models", { fallback_models: Array.from({ length: 9 }, (_, index) => `m${index}`) }],
    ["metadata", { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, "v"])) }],
    ["metadata", { metadata: { ["k".repeat(65)]: "v" } }],
    ["metadata.k", { metadata: { k: "v".repeat(513) } }],
    ["safety_identifier", { safety_identifier: "x".repeat(129) }],
    ["logit_bias.1", { logit_bias: { 1: 101 } }],
    ["messages", { messages: [] }],
    ["tools[0].function.name", { tools: [{ type: "function", function: { name: "a b" } }] }],
    ["reasoning_effort", { reasoning_effort: "all" }],
    ["messages[0].role", { messages: [{ role: "nobody", content: "Hi" }] }],
    ["stream", { stream: "yes" }],
  ])("refuses %s where the server does", (field, fields) => {
    expect(refusedField(fields)).toBe(field);
    expect(isRequest({ ...base, ...fields })).not.toEqual([]);
  });

  it("permits unknown fields, as the server does", () => {
    expect(isRequest({ ...base, frobnicate: 1 })).toEqual([]);
    expect(readChatRequest({ ...base, frobnicate: 1 }).unrecognized).toEqual(["frobnicate"]);
  });
});

describe("the documented answer", () => {
  it.each(DIALECTS)("is what answers of the dialect %s become, with no field more", (dialect) => {
    const findFaults = strict.at("components", "schemas", "ChatCompletion");
    for (const sample of ANSWER_SAMPLES[dialect]) expect(findFaults(asCompletion(dialect, sample))).toEqual([]);
  });

  it.each(DIALECTS)("is what streams of the dialect %s become, with no field more", (dialect) => {
    const findFaults = strict.at("components", "schemas", "ChatCompletionChunk");
    for (const event of ANSWER_SAMPLES[dialect].flatMap((sample) => asEvents(dialect, sample))) {
      expect(findFaults(event)).toEqual([]);
    }
  });

  it.each(CODES.filter((code) => code !== "cancelled" && code !== "response_too_large"))(
    "to %s is among those of its status",
    (code) => {
      const body = JSON.parse(JSON.stringify(toErrorBody(new Failure(code, "no")))) as object;
      expect(strict.at("components", "schemas", "Error")(body)).toEqual([]);
      if (code === "not_found" || code === "conflict") return;
      const status = String(FAILURE_TABLE[code].http);
      expect(chat.responses[status]?.description).toContain(`\`${code}\``);
      const place = ["paths", "/v1/chat/completions", "post", "responses", status, "content", "application/json"];
      expect(strict.at(...place, "schema")(body)).toEqual([]);
    },
  );

  it("has no status that no failure has", () => {
    const statuses = Object.values<FailureRow>(FAILURE_TABLE).map(({ http }) => String(http));
    expect(Object.keys(chat.responses).filter((status) => !["200", ...statuses].includes(status))).toEqual([]);
  });

  it("has every header that clients may read", () => {
    const cors = createCors(["*"])({ headers: { origin: "https://example.com" }, method: "POST" } as never);
    const exposed = cors.find(([name]) => name === "access-control-expose-headers")?.[1].split(", ") ?? [];
    // The status is of gRPC-Web; Anthropic's format has names of its own.
    const documented = exposed.filter((name) => !/^(grpc-|anthropic-|request-id$)/.test(name));
    expect(Object.keys(document.components.headers).toSorted()).toEqual(documented.toSorted());
  });
});

/** Every field of a schema and of the objects inside it that have no name of their own, by its path. */
function fieldsOf(schema: JsonSchema, path = ""): [path: string, schema: JsonSchema][] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([key, inner]): [string, JsonSchema][] => {
    const at = path === "" ? key : `${path}.${key}`;
    return [[at, inner], ...fieldsOf(inner, at)];
  });
  return [...own, ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((each) => fieldsOf(each, path))];
}
