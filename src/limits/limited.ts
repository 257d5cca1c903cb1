import type { Limits, Principal } from "../core/principal.ts";
import type { BudgetHold } from "./budgets.ts";
import type { RateSubject } from "./rates.ts";

/** What is limited for a principal: nothing that the key or its account is not limited in is in it. */
export interface Limited {
  readonly subjects: readonly RateSubject[];
  readonly holds: readonly BudgetHold[];
}

/**
 * What is limited for whom, with the `defaults` of accounts, field by field. Works it out once for each principal: the same
 * one comes with all requests of a key, until the key is read again.
 */
export function rememberLimited(defaults: Limits): (principal: Principal) => Limited {
  const known = new WeakMap<Principal, Limited>();
  return (principal) => {
    let limited = known.get(principal);
    if (limited === undefined) {
      const subjects = subjectsOf(principal, defaults);
      known.set(
        principal,
        (limited = { subjects: toRateSubjects(subjects, principal.accountId), holds: toHolds(subjects) }),
      );
    }
    return limited;
  };
}

type Subjects = readonly (readonly [subject: string, limits: Limits])[];

/** The key and its account, each with the limits that apply to it. */
function subjectsOf(principal: Principal, defaults: Limits): Subjects {
  const { keyFamilyId, limits, accountId, accountLimits } = principal;
  const ofAccount: Limits = {
    requestsPerMinute: accountLimits.requestsPerMinute ?? defaults.requestsPerMinute,
    tokensPerMinute: accountLimits.tokensPerMinute ?? defaults.tokensPerMinute,
    concurrentRequests: accountLimits.concurrentRequests ?? defaults.concurrentRequests,
    monthlyBudgetMicroUsd: accountLimits.monthlyBudgetMicroUsd ?? defaults.monthlyBudgetMicroUsd,
  };
  return [
    [`key:${keyFamilyId}`, limits],
    [`account:${accountId}`, ofAccount],
  ];
}

function toRateSubjects(subjects: Subjects, accountId: string): RateSubject[] {
  return subjects
    .map(([subject, { requestsPerMinute, tokensPerMinute, concurrentRequests }]): RateSubject => {
      return { subject, accountId, requestsPerMinute, tokensPerMinute, concurrentRequests };
    })
    .filter(({ requestsPerMinute, tokensPerMinute, concurrentRequests }) =>
      [requestsPerMinute, tokensPerMinute, concurrentRequests].some((limit) => limit !== undefined),
    );
}

function toHolds(subjects: Subjects): BudgetHold[] {
  return subjects.flatMap(([subject, { monthlyBudgetMicroUsd }]) =>
    monthlyBudgetMicroUsd === undefined ? [] : [{ subject, limitMicroUsd: monthlyBudgetMicroUsd }],
  );
}
