import { create } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import type { Config } from "../config/config.ts";
import type { Host } from "../config/hosts.ts";
import { Failure, type FailureCode } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { UpstreamCall } from "../core/provider.ts";
import { ReadScheduler } from "../scheduling/read-scheduler.ts";
import { buildCatalogue } from "./catalogue.ts";

/** Time in which the provider must answer. */
const LIMIT_MS = 30_000;

/** Answer of a provider. */
export interface ProviderTest {
  /** The provider's own name of the model. */
  readonly upstreamModel: string;
  readonly durationMs: number;
  /** Undefined when the provider counted none. */
  readonly tokens: { readonly input: number; readonly output: number } | undefined;
}

/**
 * Asks the provider of a model for one token of a completion. Throws the Failure of the provider or the network. Costs what
 * the provider charges for that. `ending` ends it. Default: nothing does.
 */
export async function testProvider(config: Config, modelId: string, ending?: AbortSignal): Promise<ProviderTest> {
  const models = config.models.filter(({ id }) => id === modelId);
  // Other providers, whose files may be missing, are not needed.
  const providers = config.providers.filter(({ name }) => name === models[0]!.provider);
  const alone = { ...config, providers, models, routes: [] };
  const catalogue = buildCatalogue(alone, { simulatorUrl: undefined, readScheduler: new ReadScheduler() });
  try {
    return await testModel(catalogue.models[0]!, ending);
  } finally {
    await catalogue.close();
  }
}

/** As `testProvider`, over the connections that the model has. */
export async function testModel(model: Model, ending?: AbortSignal): Promise<ProviderTest> {
  const timer = new AbortController();
  const timeout = setTimeout(
    () => timer.abort(new Failure("upstream_timeout", `There was no answer in ${LIMIT_MS / 1000} s.`)),
    LIMIT_MS,
  );
  try {
    const beganMs = performance.now();
    const usage = await askOneToken(model, AbortSignal.any([timer.signal, ...(ending === undefined ? [] : [ending])]));
    return {
      upstreamModel: model.upstream.name,
      durationMs: Math.round(performance.now() - beganMs),
      tokens: usage && { input: usage.inputTokens, output: usage.outputTokens },
    };
  } finally {
    clearTimeout(timeout);
  }
}

/** Refuses large answers: one token needs none. */
const SHORT_ANSWERS: NonNullable<UpstreamCall["share"]> = {
  work: (run) => run(),
  keepAnswers: () => undefined,
  openAnswer: () => ({
    take: () =>
      Promise.reject(new Failure("upstream_protocol", "The upstream provider's answer is too long for one token.")),
    pause: () => undefined,
    resume: () => undefined,
    emitting: () => undefined,
    passed: () => undefined,
    drop: () => undefined,
    read: () => undefined,
  }),
};

/** Asks a model for one token; returns what the provider counted. */
export async function askOneToken(model: Model, signal: AbortSignal) {
  const { provider, upstream, timeouts } = model;
  const request = create(CompletionRequestSchema, {
    model: model.id,
    messages: [{ role: Role.USER, parts: [{ kind: { case: "text", value: "Say hi." } }] }],
    maxOutputTokens: 1,
  });
  const translation = provider.translate(request, upstream, { mode: "whole" });
  const call: UpstreamCall = {
    model: upstream,
    translation,
    signal,
    idleMs: timeouts.firstContentMs,
    share: SHORT_ANSWERS,
  };
  if (!translation.streamed) return (await provider.create(call)).usage;
  let usage: Awaited<ReturnType<typeof provider.create>>["usage"];
  await provider.stream(call, (batch) => {
    for (const { event } of batch) if (event.case === "usage") usage = event.value;
    return undefined;
  });
  return usage;
}

/** Advice after a failed test, by the failure's code. */
const ADVICE: Partial<Record<FailureCode, string>> = {
  upstream_refused_us: "Check api_keys: the key may be wrong, expired, or not allowed to use this model.",
  upstream_unavailable: "Check base_url, the network, and whether the server runs.",
  upstream_timeout: "Check base_url and the network.",
  upstream_protocol:
    "Check dialect and base_url: an address of the dialect openai usually ends in /v1, those of the others do not.",
  upstream_rejected: "Check upstream_model, and base_url: an address of the dialect openai usually ends in /v1.",
  upstream_rate_limited: "The key works; its limit or quota at the provider is used up.",
  invalid_request: "Check the model's capabilities.",
};

/** Advice for hosts, by the status of their answers. */
const HOST_ADVICE: Readonly<Record<Host["kind"], Readonly<Record<number, string>>>> = {
  azure: {
    401: "Check api_keys and base_url: a key belongs to one resource. Without api_keys, give the identity the role Cognitive Services OpenAI User at the resource.",
    403: "Give the identity the role Cognitive Services OpenAI User at the resource, and let its network rules pass this machine.",
    404: "Check upstream_model: it is the name of a deployment of this resource, not of a model. Then check base_url, and api_version if it is set.",
  },
  bedrock: {
    400: "Check upstream_model and region: most models are only served by the ID of an inference profile, such as eu.amazon.nova-lite-v1:0, and each region has its own.",
    403: "Check the credential, its region and this machine's clock, that the identity may call bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream, and that the account has access to the model.",
    404: "Check upstream_model and region: the region may not have the model. Models of some makers need a form about their use, once for each account.",
  },
  vertex: {
    401: "Check the credential: the service account may be disabled.",
    403: "Check project, that its Vertex AI API is enabled, and that the service account has the role roles/aiplatform.user in it.",
    404: "Check upstream_model and region: a model is in some regions, most are in global. Models of partners have to be enabled in Model Garden.",
  },
};

/** A sentence that says what to do about a failed test; undefined for a failure that is none of the provider's. */
export function adviceOn({ code, upstreamStatus = 0 }: Failure, host?: Host): string | undefined {
  // For a token that could not be read, the failure itself says what to do.
  if (host !== undefined && code === "upstream_refused_us" && upstreamStatus === 0) return undefined;
  const ofHost = host && HOST_ADVICE[host.kind][upstreamStatus];
  // Servers answer 404 for a wrong path and for an unknown model.
  return ofHost ?? ADVICE[upstreamStatus === 404 ? "upstream_rejected" : code];
}
