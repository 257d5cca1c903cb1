import { explainRoute } from "../gateway/explain-route.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, readStandardInput, UsageError, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";
import { withStore } from "./with-store.ts";

type Plan = Awaited<ReturnType<typeof explainRoute>>;

export const routeExplain: Command = {
  name: "route explain",
  summary: "say which models a request on standard input would go to, and why, without sending it",
  positionals: [],
  flags: {
    key: { value: "ID", help: "the key whose permissions, limits, tags and required labels count (required)" },
    model: { value: "ID", help: "the model or name to ask for (default: that of the request)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withStore(invocation, context, async (store, config) => {
      const { key: keyId, model } = invocation.flags;
      if (keyId === undefined) throw new UsageError("--key is required: --key ID");
      if (!keyId.startsWith("key_"))
        throw new UsageError("--key is the ID of a key, such as key_4kJ…; parley keys list shows them");
      const input = await (context.readInput?.() ?? readStandardInput(MAX_BYTES, "the request"));
      const json = readRequest(input, model);
      const plan = await explainRoute(config, store, { keyId, json });
      if (invocation.switches.has("json")) writeJson(context.stdout, plan);
      else context.stdout.write(`${formatPlan(plan)}\n`);
    }),
};

/** As for a request over HTTP. */
const MAX_BYTES = 32 * 1024 * 1024;

/** The request with the model of the flag. Throws UsageError for a text that is no JSON object. */
function readRequest(input: string, model: string | undefined): object {
  const request: unknown = parseJson(input);
  if (typeof request !== "object" || request === null || Array.isArray(request))
    throw new UsageError(
      "standard input must be the JSON of a chat completion, such as POST /v1/chat/completions gets",
    );
  return model === undefined ? request : { ...request, model };
}

function parseJson(input: string): unknown {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}

/** A plan for people. */
function formatPlan(plan: Plan): string {
  const { policy, affinity, steps, left_out: leftOut, refusals } = plan;
  const keeps = affinity ? ", conversations stay at their target" : "";
  const rows = [
    ...steps.map((step, index) => toRow(String(index + 1), step)),
    ...leftOut.map((model) => toRow("-", { ...model, ...UNKNOWN })),
  ];
  const held = plan.reserved_usd === null ? "a model has no price" : `a budget holds ${plan.reserved_usd} USD`;
  return [
    ...plan.aliases.map((alias) => `${alias.name} stands for ${alias.model}`),
    `${plan.model}${policy === null ? "" : `: ${policy}${keeps}`}`,
    formatTable([["", "MODEL", "REASON", "REGION", "RETENTION", "LOSES", "AT MOST", "WHY"], ...rows]),
    `About ${plan.prompt_tokens} tokens of prompt, ${plan.reserved_tokens} with the answer; ${held}.`,
    ...refusals.map(({ reason, message }) => `It would be refused now, as ${reason}: ${message}`),
  ].join("\n");
}

/** Facts that are not known of a model that would not be tried. */
const UNKNOWN = { omitted: [], clamped: [], refusal: null, worst_case_usd: null };

function toRow(place: string, step: Plan["steps"][number]): string[] {
  const { model, reason, region, retention, omitted, clamped, refusal, worst_case_usd: cost } = step;
  const loses = [...omitted, ...clamped.map(({ field }) => field)].join(",");
  const why = refusal === null ? step.message : `${step.message}; it cannot take the request: ${refusal}`;
  return [
    place,
    model,
    reason,
    region ?? "-",
    retention ?? "-",
    loses || "-",
    cost === null ? "-" : `${cost} USD`,
    why,
  ];
}
