import { hash } from "node:crypto";
import type { Attribution, AttributionLimits } from "../core/attribution.ts";
import type { AttributedBudget } from "../core/ledger.ts";
import type { Principal } from "../core/principal.ts";
import type { BudgetHold } from "./budgets.ts";
import type { RateSubject } from "./rates.ts";

/** 132 bits, so that two names with the same digest cannot be found. */
const DIGEST_CHARS = 22;

/**
 * Subject of an end user or a session of a key family. It contains a digest instead of the name, which may be an e-mail address and
 * of any length.
 */
export function subjectOf(kind: "end_user" | "session", keyFamilyId: string, name: string): string {
  return `${kind}:${keyFamilyId}:${hash("sha256", name, "base64url").slice(0, DIGEST_CHARS)}`;
}

/** Whether a subject is that of an end user or a session. The number of such subjects is not bounded. */
export function isAttributed(subject: string): boolean {
  return subject.startsWith("end_user:") || subject.startsWith("session:");
}

/** Whether these limits have a budget. */
export function hasBudgets({ endUserBudgetMicroUsd, sessionBudgetMicroUsd }: AttributionLimits): boolean {
  return (endUserBudgetMicroUsd ?? sessionBudgetMicroUsd) !== undefined;
}

/** The rates and budgets of the end user and the session of one request. */
export interface Attributed {
  readonly subjects: readonly RateSubject[];
  readonly holds: readonly (BudgetHold & AttributedBudget)[];
}

/** Finds the limits of a key for the end user and the session that a request names. */
export function attributedOf(
  { keyFamilyId, accountId }: Pick<Principal, "keyFamilyId" | "accountId">,
  limits: AttributionLimits,
  { endUser, session }: Attribution,
): Attributed {
  const subjects: RateSubject[] = [];
  const holds: (BudgetHold & AttributedBudget)[] = [];
  if (endUser !== undefined) {
    const subject = subjectOf("end_user", keyFamilyId, endUser);
    const { endUserRequestsPerMinute: requestsPerMinute, endUserTokensPerMinute: tokensPerMinute } = limits;
    if ((requestsPerMinute ?? tokensPerMinute) !== undefined)
      subjects.push({ subject, accountId, requestsPerMinute, tokensPerMinute, concurrentRequests: undefined });
    const { endUserBudgetMicroUsd: limitMicroUsd, endUserBudgetPeriod: period = "day" } = limits;
    if (limitMicroUsd !== undefined) holds.push({ subject, name: endUser, limitMicroUsd, period });
  }
  const { sessionBudgetMicroUsd } = limits;
  if (session !== undefined && sessionBudgetMicroUsd !== undefined) {
    const subject = subjectOf("session", keyFamilyId, session);
    holds.push({ subject, name: session, limitMicroUsd: sessionBudgetMicroUsd, period: "session" });
  }
  return { subjects, holds };
}
