import { describe, expect, it } from "vitest";
import { adviseOn, type FoundRoute, findRoute, formatOf } from "../../../src/inbound/http/routes.ts";

/** The route in short: a format's by the names of format and operation. */
function short({ route }: FoundRoute): object | undefined {
  if (route?.name !== "format") return route;
  const { format, operation } = route;
  return { name: operation.name, format: format.name, ...(operation.name === "model" && { id: operation.id }) };
}

describe("a path and a method have a route", () => {
  it.each([
    ["POST", "/v1/chat/completions", { name: "completion", format: "openai-chat" }],
    ["POST", "/v1/messages", { name: "completion", format: "anthropic" }],
    ["POST", "/v1/messages/", { name: "completion", format: "anthropic" }],
    ["POST", "/v1/messages/count_tokens", { name: "count", format: "anthropic" }],
    ["OPTIONS", "/v1/messages", { name: "preflight" }],
    ["POST", "/v1/embeddings", { name: "embedding", format: "openai-embeddings" }],
    ["POST", "/v1/images/generations", { name: "completion", format: "openai-images" }],
    ["POST", "/v1/images/edits", { name: "completion", format: "openai-images" }],
    ["POST", "/v1beta/models/a/b:generateContent", { name: "completion", format: "gemini" }],
    ["POST", "/v1/models/a%3Ab:streamGenerateContent", { name: "completion", format: "gemini" }],
    ["POST", "/models/a:countTokens", { name: "count", format: "gemini" }],
    ["POST", "/v1beta/models/a:embedContent", { name: "embedding", format: "gemini" }],
    ["GET", "/v1beta/models", { name: "models", format: "gemini" }],
    ["GET", "/v1beta/models/a/b", { name: "model", format: "gemini", id: "a/b" }],
    ["GET", "/v1/models", { name: "models", format: "openai-chat" }],
    ["GET", "/v1/models/alpha-opus-4.5", { name: "model", format: "openai-chat", id: "alpha-opus-4.5" }],
    ["GET", "/v1/models/family%2Fx", { name: "model", format: "openai-chat", id: "family/x" }],
    ["GET", "/v1/models/family/x", { name: "model", format: "openai-chat", id: "family/x" }],
    ["GET", "/v1/models/%F0%9F%91%8B", { name: "model", format: "openai-chat", id: "👋" }],
    ["HEAD", "/v1/models", { name: "models", format: "openai-chat" }],
    ["GET", "/healthz", { name: "health" }],
    ["HEAD", "/healthz", { name: "health" }],
    ["GET", "/readyz", { name: "ready" }],
    ["GET", "/openapi.json", { name: "document" }],
    ["HEAD", "/openapi.json", { name: "document" }],
    ["GET", "/proto/parley/v1/completion.proto", { name: "document" }],
    ["POST", "/v1/responses", { name: "completion", format: "openai-responses" }],
    ["POST", "/v1/route", { name: "explain", format: "openai-chat" }],
    ["POST", "/v1/responses/input_tokens", { name: "count", format: "openai-responses" }],
    ["OPTIONS", "/v1/chat/completions", { name: "preflight" }],
    ["OPTIONS", "/v1/responses", { name: "preflight" }],
    ["OPTIONS", "/v1/models", { name: "preflight" }],
    ["OPTIONS", "/v1/models/x", { name: "preflight" }],
  ])("%s %s", (method, path, route) => {
    expect(short(findRoute(path, method))).toEqual(route);
  });
});

describe("the models of a caller that names a version of the Messages API", () => {
  it.each([
    ["/v1/models", { name: "models", format: "anthropic" }],
    ["/v1/models/family/x", { name: "model", format: "anthropic", id: "family/x" }],
  ])("%s", (path, route) => {
    expect(short(findRoute(path, "GET", { "anthropic-version": "2023-06-01" }))).toEqual(route);
  });

  it("are not asked for by a key in x-api-key alone", () => {
    const route = findRoute("/v1/models", "GET", { "x-api-key": "sk_x" });
    expect(short(route)).toEqual({ name: "models", format: "openai-chat" });
  });
});

describe("the format of an error", () => {
  it.each([
    ["/v1/messages", {}, "anthropic"],
    ["/v1/messages/batches", {}, "anthropic"],
    ["/v1/messages/batches/x", {}, "anthropic"],
    ["/v1/messagesx", {}, "openai-chat"],
    ["/v1/files", { "anthropic-version": "2026-10-21" }, "anthropic"],
    ["/v1/files", {}, "openai-chat"],
    ["/v1beta/files", { "anthropic-version": "2026-10-21" }, "gemini"],
    ["/v1/models/x", { "anthropic-version": "2023-06-01" }, "anthropic"],
  ])("at %s with %j is that of %s", (path, headers, name) => {
    expect(formatOf(path, headers).name).toBe(name);
  });
});

describe("the lists of models under /v1", () => {
  it.each([["x-goog-api-key"], ["x-goog-api-client"]])("are Gemini's for requests with %s", (header) => {
    const headers = { [header]: "x" };
    expect(short(findRoute("/v1/models", "GET", headers))).toEqual({ name: "models", format: "gemini" });
    expect(short(findRoute("/v1/models/a", "GET", headers))).toEqual({ name: "model", format: "gemini", id: "a" });
    expect(formatOf("/v1/files/a", headers).name).toBe("gemini");
    expect(formatOf("/v1/chat/completions", headers).name).toBe("openai-chat");
  });
});

describe("a known path with another method says which one it has", () => {
  it.each([
    ["GET", "/v1/chat/completions", "POST"],
    ["GET", "/v1/messages", "POST"],
    ["DELETE", "/v1/messages/count_tokens", "POST"],
    ["DELETE", "/v1/chat/completions", "POST"],
    ["GET", "/v1/responses", "POST"],
    ["GET", "/v1/responses/input_tokens", "POST"],
    ["POST", "/v1/models", "GET"],
    ["HEAD", "/v1/chat/completions", "POST"],
    ["DELETE", "/v1/models/x", "GET"],
    ["POST", "/healthz", "GET"],
    ["OPTIONS", "/healthz", "GET"],
    ["OPTIONS", "/readyz", "GET"],
    ["POST", "/openapi.json", "GET"],
    ["OPTIONS", "/openapi.json", "GET"],
    ["DELETE", "/proto/parley.binpb", "GET"],
    ["post", "/v1/chat/completions", "POST"],
  ])("%s %s", (method, path, allow) => {
    expect(findRoute(path, method)).toEqual({ allow });
  });
});

describe("a path that only some headers have a route at", () => {
  it("is refused at once as a WebSocket of the Responses API", () => {
    const { route } = findRoute("/v1/responses", "GET", { upgrade: "WebSocket" });
    expect(route).toMatchObject({ operation: { name: "fixed", status: 426 } });
  });
});

describe("an unknown path has none", () => {
  it.each([
    "",
    "/",
    "*",
    "/v1",
    "/v1/",
    "/v1/chat/completions//",
    "/V1/chat/completions",
    "//v1/chat/completions",
    "/v1//chat/completions",
    "/v1/./chat/completions",
    "/v1/x/../chat/completions",
    "/v1/chat%2Fcompletions",
    "/v1/models/%zz",
    "/v1/models/%ff",
    "/v1/completions",
    "/__proto__",
    "/constructor",
  ])("%j", (path) => {
    for (const method of ["GET", "POST", "OPTIONS"]) expect(findRoute(path, method)).toEqual({});
  });
});

describe("one slash at the end of an API's path", () => {
  it.each([
    ["POST", "/v1/chat/completions/", "completion"],
    ["GET", "/v1/models/", "models"],
    ["POST", "/v1/embeddings/", "embedding"],
  ])("is ignored: %s %s", (method, path, name) => {
    expect(short(findRoute(path, method))).toMatchObject({ name });
  });
});

describe("advice on a path that does not exist", () => {
  it.each([
    ["/v1", " This is the base URL of the API: GET /v1/models lists the models."],
    ["/v1/", " This is the base URL of the API: GET /v1/models lists the models."],
    ["/chat/completions", " Did you mean /v1/chat/completions? Set the client's base URL to one that ends in /v1."],
    ["/v1/v1/chat/completions", " Did you mean /v1/chat/completions? The base URL ends in /v1 once."],
    ["/messages", " Did you mean /v1/messages? Set the client's base URL to one that ends in /v1."],
    ["/v1/v1/messages", " Did you mean /v1/messages? The base URL ends in /v1 once."],
    ["/embeddings", " Did you mean /v1/embeddings? Set the client's base URL to one that ends in /v1."],
    ["/responses", " Did you mean /v1/responses? Set the client's base URL to one that ends in /v1."],
    ["/nonsense", ""],
  ])("%s", (path, advice) => {
    expect(adviseOn(path)).toBe(advice);
  });
});
