import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { TranslationLog } from "../wire/translation.ts";

const PREFIX = "anthropic.";
const BETAS = `${PREFIX}betas`;
const BILLING_TEXT = `${PREFIX}billing_text`;
const BETA = /^[A-Za-z0-9._-]{1,64}$/;
const MAX_BETAS = 64;

/** Fields that have a place in the contract: these options must not replace them. */
const OF_THE_CONTRACT: ReadonlySet<string> = new Set([
  "model",
  "max_tokens",
  "stream",
  "system",
  "tools",
  "tool_choice",
  "thinking",
  "output_config",
  "output_format",
  "temperature",
  "top_p",
  "top_k",
  "stop_sequences",
  "metadata",
  "service_tier",
  "cache_control",
  "messages",
]);

/** Fields, betas and text that `provider_options_json` adds to a request. */
export interface OtherFields {
  /** Fields of the body. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Names for the header `anthropic-beta`; undefined without any. */
  readonly betas: readonly string[] | undefined;
  /** First text of the system prompt, which the provider removes again; undefined without one. */
  readonly billingText: string | undefined;
}

/** Reads the options. Logs those of other dialects as omitted. Throws `invalid_request` for invalid JSON and invalid header values. */
export function toOtherFields({ providerOptionsJson }: CompletionRequest, log: TranslationLog): OtherFields {
  const fields: Record<string, unknown> = {};
  let betas: readonly string[] | undefined;
  let billingText: string | undefined;
  for (const name of Object.keys(providerOptionsJson).toSorted()) {
    const path = `provider_options_json.${name}`;
    const field = name.slice(PREFIX.length);
    if (!name.startsWith(PREFIX) || OF_THE_CONTRACT.has(field)) {
      log.omit(path);
      continue;
    }
    const value = log.verbatim(providerOptionsJson[name]!);
    if (value === undefined) throw invalidField(path, "must be JSON");
    if (name === BETAS) betas = toBetas(value);
    else if (name === BILLING_TEXT) billingText = toText(value);
    else fields[field] = value;
  }
  return { fields, betas, billingText };
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  throw invalidField(`provider_options_json.${BILLING_TEXT}`, "must be a JSON string");
}

function toBetas(value: unknown): readonly string[] {
  const isList = Array.isArray(value) && value.length <= MAX_BETAS;
  if (isList && value.every((name): name is string => typeof name === "string" && BETA.test(name))) return value;
  throw invalidField(
    `provider_options_json.${BETAS}`,
    `must be an array of at most ${MAX_BETAS} names, each of 1 to 64 letters, digits, ".", "_" or "-"`,
  );
}
