import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { Failure, FailureCode } from "../core/failure.ts";
import type { RefusedRequests } from "../core/limiter.ts";
import type { Principal } from "../core/principal.ts";
import { sizeOf, UNITS } from "./bucket.ts";
import type { KnownLevels } from "./known-levels.ts";
import type { RateStore, RateSubject } from "./rates.ts";
import { toRateFailure } from "./refusals.ts";

export interface RequestRateOptions {
  readonly rates: RateStore;
  /** Is told what was counted. */
  readonly known: KnownLevels;
  /** The key first, then its account; those without any limit are left out. */
  readonly subjectsOf: (principal: Principal) => readonly RateSubject[];
  /** As that of `rates`. */
  readonly burstMs: number;
  readonly clock: Clock;
}

/** The failures of requests that are wrong, whatever state the gateway is in. */
const WRONG: ReadonlySet<FailureCode> = new Set([
  "invalid_request",
  "request_too_large",
  "model_not_found",
  "permission_denied",
]);

/** A request that comes this little too early, or that little of a request, is left to the store and its clock. */
const EARLY_MS = 5;
const EARLY_REQUESTS = 0.1;

/** What doubles lose when a level is carried forward. */
const ROUNDING = 1e-6;

/** What refused requests take of the request rate, and what it refuses without asking the store. */
export function createRequestRate(options: RequestRateOptions): RefusedRequests {
  const { rates, known, subjectsOf, burstMs, clock } = options;

  const count = async (subjects: readonly RateSubject[]): Promise<void> => {
    const id = randomUUID();
    const decision = await rates.take({ id, subjects, tokens: 0 });
    if (!decision.admitted) return;
    known.note(decision.levels, clock.monotonic());
    await rates.release({ id, subjects, reservedTokens: 0, usedTokens: 0, usedRequests: 1 });
  };

  /** When a request is there again; 0 when there is one now, or when that is not known. */
  const waitMs = (limits: RateSubject, nowMs: number): number => {
    const size = sizeOf("requests", limits, burstMs);
    const last = known.last("requests", limits.subject, nowMs);
    // A limit that was changed is looked up again.
    if (size === undefined || last?.perMinute !== size.perMinute || last.capacity !== size.capacity / UNITS) return 0;
    const perMs = size.perMinute / 60_000;
    const missing = 1 - last.level;
    return missing <= Math.min(EARLY_MS * perMs, EARLY_REQUESTS) ? 0 : Math.ceil(missing / perMs - ROUNDING);
  };

  return {
    countRefused(principal, { code }: Failure) {
      if (!WRONG.has(code)) return;
      // Takes no place: it is over.
      const subjects = subjectsOf(principal)
        .filter(({ requestsPerMinute }) => requestsPerMinute !== undefined)
        .map((subject) => ({ ...subject, concurrentRequests: undefined }));
      if (subjects.length === 0) return;
      // At once: the next request may be there before the store has answered. What it does not admit stays counted here.
      known.spend(subjects, clock.monotonic());
      count(subjects).catch(() => undefined);
    },

    requireRequestRate(principal) {
      const subjects = subjectsOf(principal);
      const nowMs = clock.monotonic();
      let longest: { readonly subject: string; readonly retryAfterMs: number } | undefined;
      for (const limits of subjects) {
        const retryAfterMs = waitMs(limits, nowMs);
        if (retryAfterMs > (longest?.retryAfterMs ?? 0)) longest = { subject: limits.subject, retryAfterMs };
      }
      if (longest === undefined) return;
      const refusal = { admitted: false, limit: "requests", levels: [], ...longest } as const;
      throw toRateFailure(refusal, { id: "", subjects, tokens: 0 }, known.facts(subjects, nowMs));
    },
  };
}
