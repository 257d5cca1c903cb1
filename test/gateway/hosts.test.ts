import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { AnthropicVertex } from "@anthropic-ai/vertex-sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI, { AzureOpenAI } from "openai";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { EmbeddingRequestSchema } from "../../gen/parley/v1/embedding_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import type { Config, RemoteProvider } from "../../src/config/config.ts";
import { parseConfig } from "../../src/config/parse.ts";
import type { Model } from "../../src/core/model.ts";
import type { UpstreamCall } from "../../src/core/provider.ts";
import { buildCatalogue, type Catalogue } from "../../src/gateway/catalogue.ts";
import { adviceOn, testProvider } from "../../src/gateway/provider-test.ts";
import { Failure } from "../../src/core/failure.ts";
import { ReadScheduler } from "../../src/scheduling/read-scheduler.ts";
import { type Azure, AZURE_KEY, DEPLOYMENT, EMBEDDINGS, startAzure } from "../support/hosts/azure.ts";
import { CLIENT, type Entra, SECRET, startEntra, TENANT } from "../support/hosts/entra.ts";
import { type GoogleOAuth, serviceAccount, startGoogleOAuth } from "../support/hosts/google-oauth.ts";
import type { Received } from "../support/hosts/server.ts";
import { CLAUDE, GEMINI, PROJECT, REGION, startVertex, VECTORS, type Vertex } from "../support/hosts/vertex.ts";
import { toInputs } from "../support/embedding-inputs.ts";
import { foldStream } from "../support/fold.ts";
import { rejectionsOf } from "../support/errors.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-hosts-"));
const file = join(folder, "account.json");
writeFileSync(file, JSON.stringify(serviceAccount));
let [entra, oauth, azure, vertex]: [Entra?, GoogleOAuth?, Azure?, Vertex?] = [];
const opened: Catalogue[] = [];

beforeAll(async () => {
  entra = await startEntra();
  oauth = await startGoogleOAuth();
  azure = await startAzure(entra.tokens);
  vertex = await startVertex(oauth.tokens);
});
afterAll(async () => {
  await Promise.all(opened.map((catalogue) => catalogue.close()));
  for (const server of [azure, vertex, oauth, entra]) server?.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  vi.stubEnv("AZURE_AUTHORITY_HOST", entra!.url);
  vi.stubEnv("AZURE_TENANT_ID", TENANT);
  vi.stubEnv("AZURE_CLIENT_ID", CLIENT);
  vi.stubEnv("AZURE_CLIENT_SECRET", SECRET);
  vi.stubEnv("HTTPS_PROXY", oauth!.proxyUrl);
  vi.stubEnv("NO_PROXY", "localhost");
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", file);
});

/** A configuration with one provider and the model `m`. */
function configOf(provider: object, upstreamModel: string, model: object = {}): Config {
  const models = { m: { provider: "p", upstream_model: upstreamModel, ...model } };
  const text = JSON.stringify({ providers: { p: { allow_private: true, ...provider } }, models });
  return parseConfig({ file: "parley.yaml", text, env: {} });
}

function open(...parts: Parameters<typeof configOf>): Model {
  const catalogue = buildCatalogue(configOf(...parts), { simulatorUrl: undefined, readScheduler: new ReadScheduler() });
  opened.push(catalogue);
  return catalogue.models.find(({ id }) => id === "m")!;
}

function callOf({ provider, upstream }: Model, text: string, mode: "whole" | "stream"): UpstreamCall {
  const messages = [{ role: Role.USER, parts: [{ kind: { case: "text" as const, value: text } }] }];
  const request = create(CompletionRequestSchema, { model: "m", messages, maxOutputTokens: 64 });
  const translation = provider.translate(request, upstream, { mode });
  return { model: upstream, translation, signal: AbortSignal.timeout(30_000), idleMs: 10_000 };
}

async function ask(model: Model, text = "Hi"): Promise<string> {
  const { choices } = await model.provider.create(callOf(model, text, "whole"));
  return choices.map(({ message }) => JSON.stringify(message?.parts[0]?.kind.value)).join();
}

async function askStream(model: Model) {
  return foldStream((emit) => model.provider.stream(callOf(model, "Hi", "stream"), emit));
}

async function embed({ provider, upstream }: Model, texts: readonly string[]) {
  const translation = provider.embeddings!.translate(
    create(EmbeddingRequestSchema, { model: "m", inputs: toInputs(texts) }),
    upstream,
  );
  const call = { model: upstream, translation, signal: AbortSignal.timeout(30_000), idleMs: 10_000 };
  return provider.embeddings!.create(call, texts.length);
}

const failureOf = rejectionsOf(Failure);

/** What the operator reads of the provider's failed test. */
async function toldOf(...parts: Parameters<typeof configOf>): Promise<string> {
  const config = configOf(...parts);
  const failure = await failureOf(testProvider(config, "m"));
  const { host } = config.providers[0] as RemoteProvider;
  const cause = failure.cause instanceof Error ? failure.cause.message : "";
  return [failure.message, cause, adviceOn(failure, host) ?? ""].filter(Boolean).join(" | ");
}

/** Path and names of body fields, which a maker's client and Parley have to agree on. */
const shapeOf = ({ path, json }: Received): readonly [string, string[]] => [path, Object.keys(json ?? {}).toSorted()];
const last = (received: readonly Received[]): Received => received.at(-1)!;

describe("Azure OpenAI", () => {
  const v1 = (): object => ({ preset: "azure", base_url: `${azure!.url}/openai/v1`, api_keys: [AZURE_KEY] });
  const classic = (): object => ({ ...v1(), base_url: azure!.url, api_version: "2024-10-21" });
  const vectors = { modalities: { input: ["text"], output: ["embedding"] } };

  it.each([
    [
      "v1",
      v1,
      () =>
        new OpenAI({
          baseURL: `${azure!.url}/openai/v1`,
          apiKey: "unused-unused",
          defaultHeaders: { "api-key": AZURE_KEY, authorization: null },
        }),
    ],
    [
      "deployments",
      classic,
      () => new AzureOpenAI({ endpoint: azure!.url, apiKey: AZURE_KEY, apiVersion: "2024-10-21" }),
    ],
  ] as const)("is asked at the addresses of its makers' client: %s", async (_, provider, client) => {
    const messages = [{ role: "user", content: "Hi" }] as const;
    const theirs = await client().chat.completions.create({
      model: DEPLOYMENT,
      messages: [...messages],
      max_completion_tokens: 64,
    });
    const asked = last(azure!.received);
    expect(theirs.choices[0]!.message.content).toBe("Hej från Azure");

    const model = open(provider(), DEPLOYMENT);
    expect(await ask(model)).toBe('"Hej från Azure"');
    expect(shapeOf(last(azure!.received))).toEqual(shapeOf(asked));
    expect(last(azure!.received).headers["api-key"]).toBe(asked.headers["api-key"]);
    expect(last(azure!.received).headers.authorization).toBeUndefined();

    await client().embeddings.create({ model: EMBEDDINGS, input: ["a"], encoding_format: "base64" });
    const embedded = last(azure!.received);
    expect(await embed(open(provider(), EMBEDDINGS, vectors), ["a"])).toMatchObject({ vectors: [[0.5, -0.25]] });
    expect(shapeOf(last(azure!.received))).toEqual(shapeOf(embedded));
  });

  it("has the Responses API at the address of its makers' client", async () => {
    await new OpenAI({
      baseURL: `${azure!.url}/openai/v1`,
      apiKey: "unused-unused",
      defaultHeaders: { "api-key": AZURE_KEY, authorization: null },
    }).responses.create({ model: DEPLOYMENT, input: "Hi" });
    const { path, headers } = last(azure!.received);
    expect(await ask(open({ ...v1(), dialect: "openai-responses" }, DEPLOYMENT))).toBe('"Hej från Azure"');
    expect(last(azure!.received).path).toBe(path);
    expect(last(azure!.received).headers["api-key"]).toBe(headers["api-key"]);
    expect(last(azure!.received).headers.authorization).toBeUndefined();
  });

  it("may begin a stream with the filter's results and no choice", async () => {
    const { choices, usage } = await askStream(open(classic(), DEPLOYMENT));
    expect(choices.map(({ message }) => message?.parts[0]?.kind.value)).toEqual(["Hej från Azure"]);
    expect(usage).toMatchObject({ inputTokens: 9, outputTokens: 3 });
  });

  it("has errors of its own", async () => {
    const model = open(v1(), DEPLOYMENT);
    expect(await failureOf(ask(model, "something violent"))).toMatchObject({
      code: "upstream_rejected",
      upstreamStatus: 400,
      message: expect.stringContaining("content management policy") as string,
    });
    expect(await failureOf(ask(model, "busy"))).toMatchObject({ code: "upstream_rate_limited", retryAfterMs: 1_500 });
  });

  it("takes a token of Entra ID in place of a key, and a new one after the old one was refused", async () => {
    const model = open({ ...v1(), api_keys: [] }, DEPLOYMENT);
    expect(await ask(model)).toBe('"Hej från Azure"');
    expect(last(azure!.received).headers).toMatchObject({
      authorization: expect.stringMatching(/^Bearer issued-/) as string,
    });
    expect(last(azure!.received).headers["api-key"]).toBeUndefined();
    const issued = entra!.tokens.issued;
    await ask(model);
    expect(entra!.tokens.issued).toBe(issued);

    vi.setSystemTime(Date.now() + 60_000);
    try {
      entra!.tokens.revokeAll();
      expect(await ask(model)).toBe('"Hej från Azure"');
      expect(entra!.tokens.issued).toBe(issued + 1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("shows no token that the service repeats in an error", async () => {
    const failure = await failureOf(ask(open({ ...v1(), api_keys: [] }, DEPLOYMENT), "repeat"));
    const sent = last(azure!.received).headers.authorization!;
    expect(failure).toMatchObject({ code: "upstream_rejected", message: expect.stringContaining("wrong: ") as string });
    expect(failure.message).not.toContain(sent.slice("Bearer ".length));
  });

  it("shows the operator what is wrong", async () => {
    expect(await toldOf(v1(), "gpt-5")).toContain(
      "Check upstream_model: it is the name of a deployment of this resource",
    );
    expect(await toldOf({ ...classic(), api_version: "2019-01-01" }, DEPLOYMENT)).toContain("api_version");
    expect(await toldOf({ ...v1(), api_keys: ["another-key-0123456789"] }, DEPLOYMENT)).toContain("Check api_keys");
    vi.stubEnv("AZURE_CLIENT_SECRET", "wrong-secret-wrong-secret");
    const told = await toldOf({ ...v1(), api_keys: [] }, DEPLOYMENT);
    expect(told).toContain("Microsoft Entra ID refused the gateway's credential (AADSTS7000215");
    expect(told).not.toContain("api_keys");
    expect(told).not.toContain("wrong-secret");
  });
});

describe("Vertex AI", () => {
  const gemini = (): object => ({ preset: "vertex", project: PROJECT, region: REGION, base_url: vertex!.url });
  const claude = (): object => ({ ...gemini(), dialect: "anthropic" });

  it("is asked for Gemini's models as by its makers' client", async () => {
    const token = oauth!.tokens.issue(3_600);
    const client = new GoogleGenAI({
      vertexai: true,
      project: PROJECT,
      location: REGION,
      apiVersion: "v1",
      httpOptions: { baseUrl: vertex!.url, headers: { authorization: `Bearer ${token}` } },
    });
    const asked = { model: GEMINI, contents: "Hi", config: { maxOutputTokens: 64 } };
    expect((await client.models.generateContent(asked)).text).toBe("Hallo Vertex");
    const whole = shapeOf(last(vertex!.received));
    for await (const _ of await client.models.generateContentStream(asked));
    const streamed = shapeOf(last(vertex!.received));
    expect(await client.models.countTokens({ ...asked, config: {} })).toMatchObject({ totalTokens: 11 });
    const [countPath] = shapeOf(last(vertex!.received));
    await client.models.embedContent({ model: VECTORS, contents: ["a", "b"], config: { autoTruncate: false } });
    const embedded = shapeOf(last(vertex!.received));

    const model = open(gemini(), GEMINI);
    expect(await ask(model)).toBe('"Hallo Vertex"');
    expect(shapeOf(last(vertex!.received))).toEqual(whole);
    const { choices, usage } = await askStream(model);
    expect(choices.map(({ message }) => message?.parts[0]?.kind.value)).toEqual(["Hallo Vertex"]);
    expect(usage).toMatchObject({ inputTokens: 8, outputTokens: 3 });
    expect(shapeOf(last(vertex!.received))).toEqual(streamed);
    expect(await model.provider.count!(callOf(model, "Hi", "whole"))).toBe(11);
    expect(last(vertex!.received).path).toBe(countPath);
    const vectors = open(gemini(), VECTORS, { modalities: { input: ["text"], output: ["embedding"] } });
    expect(await embed(vectors, ["a", "b"])).toMatchObject({
      vectors: [
        [0.5, -0.25],
        [0.5, -0.25],
      ],
      usage: { inputTokens: 6 },
    });
    expect(shapeOf(last(vertex!.received))).toEqual(embedded);
  });

  it("is asked for Anthropic's models as by its makers' client", async () => {
    const token = oauth!.tokens.issue(3_600);
    const authClient = { getRequestHeaders: async () => new Headers({ authorization: `Bearer ${token}` }) };
    const client = new AnthropicVertex({
      baseURL: `${vertex!.url}/v1`,
      region: REGION,
      projectId: PROJECT,
      authClient: authClient as never,
    });
    const asked = { model: CLAUDE, max_tokens: 64, messages: [{ role: "user" as const, content: "Hi" }] };
    const theirs = await client.messages.create(asked);
    expect(theirs.content).toMatchObject([{ text: "Bonjour Vertex" }]);
    const whole = last(vertex!.received);
    for await (const _ of await client.messages.create({ ...asked, stream: true }));
    const streamed = last(vertex!.received);
    const { max_tokens: _, ...counted } = asked;
    expect(await client.messages.countTokens(counted)).toEqual({ input_tokens: 12 });
    const count = last(vertex!.received);

    const model = open(claude(), CLAUDE);
    expect(await ask(model)).toBe('"Bonjour Vertex"');
    expect(shapeOf(last(vertex!.received))).toEqual(shapeOf(whole));
    expect(last(vertex!.received).json!["anthropic_version"]).toBe("vertex-2023-10-16");
    expect(last(vertex!.received).headers["anthropic-version"]).toBe(whole.headers["anthropic-version"]);
    const { choices, usage } = await askStream(model);
    expect(choices.map(({ message }) => message?.parts[0]?.kind.value)).toEqual(["Bonjour Vertex"]);
    expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 4 });
    expect(shapeOf(last(vertex!.received))).toEqual(shapeOf(streamed));
    expect(await model.provider.count!(callOf(model, "Hi", "whole"))).toBe(12);
    expect(shapeOf(last(vertex!.received))).toEqual(shapeOf(count));
  });

  it("takes a new token after the old one was refused", async () => {
    const model = open({ ...gemini(), credential_file: file }, GEMINI);
    expect(await ask(model)).toBe('"Hallo Vertex"');
    const issued = oauth!.tokens.issued;
    vi.setSystemTime(Date.now() + 60_000);
    try {
      oauth!.tokens.revokeAll();
      expect(await ask(model)).toBe('"Hallo Vertex"');
      expect(oauth!.tokens.issued).toBe(issued + 1);
    } finally {
      vi.useRealTimers();
    }
  });

  it("shows the operator what is wrong", async () => {
    expect(await toldOf({ ...gemini(), region: "us-central1" }, GEMINI)).toContain("region");
    expect(await toldOf(gemini(), "gemini-9")).toContain("upstream_model");
    expect(await toldOf({ ...gemini(), project: "other-1" }, GEMINI)).toContain("project");
    expect(await toldOf({ ...gemini(), credential_file: "/none.json" }, GEMINI)).toContain("cannot be read (ENOENT)");
  });
});
