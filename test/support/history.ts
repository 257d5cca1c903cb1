import type { Attempt } from "../../src/core/attempt.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import type { FailureCode } from "../../src/core/failure.ts";
import { type LedgerEntry, NO_TOKENS } from "../../src/core/ledger.ts";
import type { LedgerStore } from "../../src/ledger/ledger-store.ts";
import { attemptOf } from "./attempt.ts";

const DAY_MS = 86_400_000;
const BATCH = 500;

/** The models of the history, the most used first. */
export const HISTORY_MODELS = [
  "alpha-haiku-4.5",
  "beta-3-pro-preview",
  "alpha-sonnet-4.5",
  "beta-3-flash",
  "alpha-opus-4.5",
  "beta-3-pro-image-preview",
] as const;

/** Failures: every n-th request has this outcome. */
const OUTCOMES: readonly (readonly [everyNth: number, outcome: FailureCode])[] = [
  [31, "upstream_unavailable"],
  [53, "upstream_timeout"],
  [97, "cancelled"],
  [211, "upstream_rejected"],
  [4999, "internal"],
];

/** Options of a history. */
export interface History {
  readonly count?: number;
  /** End of the latest request, in Unix milliseconds. */
  readonly untilMs?: number;
  /** Number of days. */
  readonly days?: number;
  /** Owners of the keys, in turn. */
  readonly accountIds?: readonly string[];
  readonly keyIds?: readonly string[];
}

/** Twenty key IDs without keys. */
export const HISTORY_KEYS = Array.from({ length: 20 }, (_, index) => `key_history${index}`);

/**
 * Generates ledger entries: by default 50,000 in 30 days, of 20 keys, 6 models and many outcomes, oldest first, with
 * daily peaks at the hour of the end. Deterministic for the same options.
 */
export function* historyOf({
  count = 50_000,
  untilMs = Date.now(),
  days = 30,
  accountIds = [DEFAULT_ACCOUNT_ID],
  keyIds = HISTORY_KEYS,
}: History = {}): Generator<LedgerEntry> {
  const random = randomOf(7);
  for (let index = 0; index < count; index += 1) {
    const key = Math.floor(random() ** 2 * keyIds.length);
    const model = HISTORY_MODELS[Math.floor(random() ** 2 * HISTORY_MODELS.length)]!;
    const failed = OUTCOMES.find(([everyNth]) => index % everyNth === everyNth - 1)?.[1];
    const fellBack = failed === undefined && index % 41 === 40;
    const streamed = random() < 0.7;
    const durationMs = 200 + random() ** 3 * 20_000;
    const firstContentMs = 80 + random() ** 2 * 900;
    const prompt = Math.floor(random() ** 3 * 8_000) + 8;
    const completion = Math.floor(random() ** 2 * 1_500) + 1;
    const endedAtMs = Math.round(untilMs - daysBefore(1 - (index + 1) / count, days) * DAY_MS);
    yield {
      completionId: `chatcmpl-history${String(index).padStart(7, "0")}`,
      requestId: `req_history${index}`,
      accountId: accountIds[key % accountIds.length]!,
      keyId: keyIds[key]!,
      entrance: random() < 0.8 ? "http" : "grpc",
      startedAtMs: Math.round(endedAtMs - durationMs),
      endedAtMs,
      requestedModel: fellBack ? "alpha-opus-4.5" : model,
      servedModel: failed === undefined ? model : undefined,
      streamed,
      outcome: failed ?? "served",
      attempts: attemptsOf({ model, failed, fellBack, durationMs }),
      tokens:
        failed === undefined
          ? { prompt, cached: Math.floor(prompt / 3), completion, reasoning: Math.floor(completion / 5), image: 0 }
          : NO_TOKENS,
      costMicroUsd: failed === undefined ? prompt * 2 + completion * 10 : 0,
      durationMs,
      firstContentMs: streamed && failed === undefined ? Math.min(firstContentMs, durationMs) : undefined,
      partial: false,
      estimated: index % 503 === 502,
      attribution: {
        endUser: `user ${index % 1_009}`,
        session: `session ${Math.floor(index / 25)}`,
        agent: ["claude-cli", "codex_exec", "opencode"][index % 3],
        tags: [`team=${index % 7}`, `run=${Math.floor(index / 100)}`],
      },
      limits: {
        requests: { limit: 600, remaining: 599 - (index % 500), resetMs: (index % 500) * 100 },
        tokens: undefined,
      },
    };
  }
}

/** Inserts a history into a ledger; returns the number of entries. */
export async function writeHistory(ledger: Pick<LedgerStore, "insert">, history?: History): Promise<number> {
  let batch: LedgerEntry[] = [];
  let written = 0;
  for (const entry of historyOf(history)) {
    batch.push(entry);
    if (batch.length < BATCH) continue;
    await ledger.insert(batch);
    written += batch.length;
    batch = [];
  }
  await ledger.insert(batch);
  return written + batch.length;
}

/** Days before the end: linear, with a daily wave. */
function daysBefore(part: number, days: number): number {
  return part * days - Math.sin(part * days * 2 * Math.PI) / (2 * Math.PI) / 1.3;
}

function attemptsOf({
  model,
  failed,
  fellBack,
  durationMs,
}: {
  readonly model: string;
  readonly failed: FailureCode | undefined;
  readonly fellBack: boolean;
  readonly durationMs: number;
}): Attempt[] {
  const last = {
    model,
    outcome: failed ?? ("served" as const),
    reason: failed === undefined ? "" : "The provider did not answer.",
  };
  const startMs = fellBack ? Math.floor(durationMs * 0.1) : 0;
  const attempts = [attemptOf({ ...last, startMs, durationMs: Math.floor(durationMs * 0.9) })];
  if (!fellBack) return attempts;
  const reason = "The provider answered with 503.";
  const first = { model: "alpha-opus-4.5", outcome: "upstream_unavailable", upstreamStatus: 503, reason } as const;
  return [attemptOf({ ...first, durationMs: Math.floor(durationMs * 0.1) }), ...attempts];
}

/** Pseudo-random numbers in [0, 1) from a seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
