import type { RateDemand, RateSubject } from "../../src/limits/rates.ts";

let count = 0;

/** A subject with these limits only. */
export function subjectOf(subject: string, limits: Partial<Omit<RateSubject, "subject">> = {}): RateSubject {
  return {
    requestsPerMinute: undefined,
    tokensPerMinute: undefined,
    concurrentRequests: undefined,
    accountId: "acct_1",
    ...limits,
    subject,
  };
}

/** A demand with a unique ID. */
export function demandOf(subjects: readonly RateSubject[], tokens = 0): RateDemand {
  count += 1;
  return { id: `completion-${count}`, subjects, tokens };
}
