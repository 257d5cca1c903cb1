import type { UsageLimits as LimitsMessage } from "../../gen/parley/v1/key_pb.js";
import { TextField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { describeLimits } from "../format/limits.ts";
import { writeUsd } from "../format/money.ts";

/** Fields of the limits: name in the request, label, name in the message. */
export const LIMIT_FIELDS = [
  ["limits.requests_per_minute", "Requests per minute", "requestsPerMinute"],
  ["limits.tokens_per_minute", "Tokens per minute", "tokensPerMinute"],
  ["limits.concurrent_requests", "Concurrent requests", "concurrentRequests"],
] as const;

export const BUDGET_FIELD = "limits.monthly_budget_micro_usd";

interface LimitsProps {
  readonly current?: LimitsMessage | undefined;
  /** Explains what applies to an empty field. */
  readonly note?: string;
  readonly errors: (field: string) => string | undefined;
}

const OF_A_KEY = "Leave empty for no key limit. Account limits always apply.";

/** Fields for the limits of a key or an account. */
export function Limits({ current, note = OF_A_KEY, errors }: LimitsProps) {
  const names = [...LIMIT_FIELDS.map(([name]) => name), BUDGET_FIELD];
  const [first = "None", ...others] = describeLimits(current);
  return (
    <Fold
      title="Limits"
      summary={others.length === 0 ? first : `${others.length + 1} limits`}
      isOpen={names.some((name) => errors(name) !== undefined)}
    >
      <p className="text-sm text-muted">{note}</p>
      <div className="grid gap-5 sm:grid-cols-2">
        {LIMIT_FIELDS.map(([name, label, field]) => (
          <TextField
            key={name}
            label={label}
            name={name}
            inputMode="numeric"
            autoComplete="off"
            defaultValue={current?.[field]?.toString()}
            error={errors(name)}
          />
        ))}
        <TextField
          label="Monthly budget (USD)"
          name={BUDGET_FIELD}
          inputMode="decimal"
          autoComplete="off"
          defaultValue={current?.monthlyBudgetMicroUsd === undefined ? "" : writeUsd(current.monthlyBudgetMicroUsd)}
          error={errors(BUDGET_FIELD)}
        />
      </div>
    </Fold>
  );
}
