import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import { Fact } from "../components/fact.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { describeAttributionLimits } from "../format/limits.ts";
import { formatBudget, formatMicroUsd, formatShareOfBudget } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { endUsersPath } from "../paths.ts";
import { describeFamily } from "./key-row.tsx";

/** Budget of a key with what is left of it, and its other limits. */
export function KeyLimits({ value: key }: { readonly value: Key }) {
  const { limits, attributionLimits } = key;
  const ofCallers = describeAttributionLimits(attributionLimits);
  const hasBudgets =
    (attributionLimits?.endUserBudgetMicroUsd ?? attributionLimits?.sessionBudgetMicroUsd) !== undefined;
  return (
    <Panel title="Limits and budget" description="Of this key. The limits of its account always apply as well.">
      <Budget value={key} />
      <dl className="mt-5 grid gap-x-6 gap-y-4 text-sm sm:grid-cols-3">
        <Fact name="Requests per minute">{describe(limits?.requestsPerMinute)}</Fact>
        <Fact name="Tokens per minute">{describe(limits?.tokensPerMinute)}</Fact>
        <Fact name="Concurrent requests">{describe(limits?.concurrentRequests)}</Fact>
        {ofCallers.length > 0 && (
          <div className="sm:col-span-3">
            <Fact name="End users and sessions">
              {ofCallers.join(", ")}
              {hasBudgets && (
                <>
                  {" · "}
                  <TextLink to={endUsersPath(key.id)}>Spending of end users</TextLink>
                </>
              )}
            </Fact>
          </div>
        )}
      </dl>
    </Panel>
  );
}

function describe(limit: bigint | undefined): string {
  return limit === undefined ? "No key limit" : formatCount(limit);
}

/** What was spent this month, and what is left of the budget. */
function Budget({ value: key }: { readonly value: Key }) {
  const spent = key.monthSpentMicroUsd ?? 0n;
  const budget = key.limits?.monthlyBudgetMicroUsd;
  const family = describeFamily(key);
  if (budget === undefined)
    return (
      <div>
        <p className="text-2xl font-semibold tracking-tight tabular-nums">{formatMicroUsd(spent)}</p>
        <p className="mt-1 text-sm text-muted">Spent this month, without a budget. {family && `${family}.`}</p>
      </div>
    );
  const amounts = formatBudget({ spent, budget });
  const share = budget === 0n ? 1 : Math.min(1, Number(spent) / Number(budget));
  const look = share >= 1 ? "bg-danger" : share >= 0.8 ? "bg-warn" : "bg-accent";
  return (
    <div>
      <p className="flex flex-wrap items-baseline justify-between gap-x-4">
        <span className="text-2xl font-semibold tracking-tight tabular-nums">{amounts.left} left</span>
        <span className="text-sm text-muted tabular-nums">
          {amounts.spent} of {amounts.budget} spent ({formatShareOfBudget({ spent, budget })})
        </span>
      </p>
      <div aria-hidden className="mt-2 h-2 overflow-hidden rounded-full bg-line">
        <div className={`h-full rounded-full ${look}`} style={{ width: `${share * 100}%` }} />
      </div>
      <p className="mt-2 text-sm text-muted">
        This calendar month in UTC, without what is reserved for requests in flight. {family && `${family}.`}
      </p>
    </div>
  );
}
