import { Client, credentials } from "@grpc/grpc-js";
import { generateApiKey } from "../../../src/access/api-key.ts";
import { createKey, type KeyContext, revokeKey } from "../../../src/access/keys.ts";
import type { Config } from "../../../src/config/config.ts";
import { startTestGateway, type TestGateway } from "../../support/gateway.ts";
import { startTestFront, type TestFront } from "../../support/front.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../../support/scripted-upstream.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import type { RunningCall } from "./reply.ts";
import type { Service } from "./run.ts";
import type { KeyName, ModelName, Scenario } from "./scenario.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** A closed port. */
const NOWHERE = "http://127.0.0.1:1/v1";

/** Shared surroundings of all scenarios: a gateway, its upstream, keys and a gRPC channel. */
export interface World {
  readonly gateway: TestGateway;
  /** A separate front for the same gateway. */
  readonly front: TestFront;
  readonly upstream: ScriptedUpstream;
  readonly grpc: Client;
  /** Calls whose connections the gateway has to close, which takes it a second: all are awaited together. */
  readonly closing: ClosingCall[];
  /** Value of the `authorization` header. */
  readonly authorization: Readonly<Record<KeyName, string | undefined>>;
  /**
   * Scripts the upstream for one scenario and returns the upstream names of its models: new names, so with closed
   * circuit breakers.
   */
  prepare(scenario: Scenario): Promise<Readonly<Record<ModelName, string>>>;
  close(): Promise<void>;
}

/** A call after its reply. */
interface ClosingCall {
  readonly requestId: string;
  readonly call: RunningCall;
}

/** Starts everything. `service`: what alpha, beta, local and gone serve. */
export async function startWorld(service: Service = "completions"): Promise<World> {
  const models = MODELS[service];
  const upstream = await startScriptedUpstream();
  const keys: Partial<Record<KeyName, string>> = {};
  const gateway = await startTestGateway({
    config: {
      grpc: { listen: "127.0.0.1:0", max_receive_mib: 1 },
      retries: { base_ms: 1, cap_ms: 1500 },
      breaker: { failures: 3, open_ms: 1000, max_open_ms: 2000 },
      // The scenarios exceed the default requests per minute of an account.
      limits: UNLIMITED,
      ...describeModels(upstream.url, { models }),
    },
    prepareKeys: (context) => makeKeys(context, keys),
  });
  const front = await startTestFront(`127.0.0.1:${gateway.grpcPort}`);
  const grpc = new Client(`127.0.0.1:${gateway.grpcPort}`, credentials.createInsecure());
  const closing: ClosingCall[] = [];
  let prepared = 0;
  const parsed = new Map<string, Config>();
  /** Parsed once for all scenarios with the same settings: to parse it takes as long as most scenarios. */
  const parse = (own: Scenario["models"]): Config => {
    const key = JSON.stringify(own ?? {});
    const config = parsed.get(key) ?? gateway.parse(describeModels(upstream.url, { models, own }));
    parsed.set(key, config);
    return config;
  };
  return {
    gateway,
    front,
    upstream,
    grpc,
    closing,
    authorization: {
      any: `Bearer ${gateway.key}`,
      "alpha only": `Bearer ${keys["alpha only"]}`,
      "chat only": `Bearer ${keys["chat only"]}`,
      "one request": `Bearer ${keys["one request"]}`,
      "one token": `Bearer ${keys["one token"]}`,
      "no money": `Bearer ${keys["no money"]}`,
      expired: `Bearer ${keys.expired}`,
      revoked: `Bearer ${keys.revoked}`,
      unknown: `Bearer ${generateApiKey()}`,
      misshapen: "Bearer sk_parley_short",
      "another scheme": `Basic ${gateway.key}`,
      none: undefined,
    },
    async prepare(scenario) {
      prepared += 1;
      const generation = String(prepared);
      const config = parse(scenario.models);
      const called = config.models.map((model) => ({ ...model, upstreamModel: upstreamName(model.id, generation) }));
      await gateway.apply({ ...config, models: called });
      const names = Object.keys(models) as ModelName[];
      for (const name of names) upstream.script(upstreamName(name, generation), scenario.upstream?.[name] ?? []);
      const entries = names.map((name) => [name, upstreamName(name, generation)] as const);
      return Object.fromEntries(entries) as Record<ModelName, string>;
    },
    async close() {
      for (const { call } of closing) call.leave();
      grpc.close();
      await front.close();
      await gateway.close();
      await upstream.close();
    },
  };
}

const painter = { provider: "generate", modalities: { input: ["text"], output: ["text", "image"] } };
const vectors = { modalities: { input: ["text"], output: ["embedding"] } };

const MODELS: Readonly<Record<Service, Readonly<Record<ModelName, object>>>> = {
  completions: {
    alpha: {
      provider: "messages",
      max_output_tokens: 1000,
      price: { input: 1, output: 1 },
      modalities: { input: ["text", "image"], output: ["text"] },
    },
    beta: { provider: "generate", max_output_tokens: 500 },
    local: { provider: "chat" },
    painter,
    gone: { provider: "nowhere" },
  },
  // Only two dialects have embeddings.
  embeddings: {
    alpha: { ...vectors, provider: "chat", price: { input: 1 } },
    beta: { ...vectors, provider: "generate" },
    local: { ...vectors, provider: "chat" },
    painter,
    gone: { ...vectors, provider: "nowhere" },
  },
};

/** How long a provider's response is read after its caller has left: a second and more would be most of the suite's time. */
const SETTLE_MS = 100;

const upstreamName = (name: string, generation: string): string => `${name}-${generation}`;

interface Described {
  readonly models: Readonly<Record<ModelName, object>>;
  /** Settings of a scenario. Default: none. */
  readonly own?: Scenario["models"] | undefined;
}

/** The configuration of these models; `prepare` names them upstream. */
function describeModels(url: string, { models, own: settings }: Described): object {
  const provider = { allow_private: true, api_keys: ["secret-of-the-gateway"] };
  return {
    providers: {
      messages: { ...provider, dialect: "anthropic", base_url: url },
      generate: { ...provider, dialect: "gemini", base_url: url },
      chat: { ...provider, dialect: "openai", base_url: `${url}/v1` },
      nowhere: { ...provider, dialect: "openai", base_url: NOWHERE },
    },
    models: Object.fromEntries(
      Object.entries(models).map(([name, model]) => {
        const own = settings?.[name as ModelName];
        const timeouts = { settle_ms: SETTLE_MS, ...own?.timeouts };
        return [name, { ...model, upstream_model: name, ...own, timeouts }];
      }),
    ),
  };
}

async function makeKeys(context: KeyContext, keys: Partial<Record<KeyName, string>>): Promise<void> {
  const alphaOnly = await createKey(context, { name: "alpha only", models: ["alpha"] });
  const chatOnly = await createKey(context, { name: "chat only", capabilities: ["chat"] });
  const expired = await createKey(context, { name: "expired", lifetimeMs: 1 });
  const revoked = await createKey(context, { name: "revoked" });
  await revokeKey(context, revoked.record.id);
  const limited = {
    "one request": { requestsPerMinute: 1 },
    "one token": { tokensPerMinute: 1 },
    "no money": { monthlyBudgetMicroUsd: 1 },
  } as const;
  for (const [name, limits] of Object.entries(limited))
    keys[name as keyof typeof limited] = (
      await createKey(context, { name, limits: { ...NO_LIMITS, ...limits } })
    ).secret;
  keys["alpha only"] = alphaOnly.secret;
  keys["chat only"] = chatOnly.secret;
  keys.expired = expired.secret;
  keys.revoked = revoked.secret;
}
