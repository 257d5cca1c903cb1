import { type AttributionLimits as Message, BudgetPeriod } from "../../gen/parley/console/v1/key_pb.js";
import { CheckField, SelectField, TextField } from "../components/field.tsx";
import { Fold } from "../components/fold.tsx";
import { describeAttributionLimits } from "../format/limits.ts";
import { writeUsd } from "../format/money.ts";

/** Fields of the limits: name in the request, label, name in the message. */
export const ATTRIBUTION_COUNTS = [
  ["attribution_limits.end_user_requests_per_minute", "Requests per end user and minute", "endUserRequestsPerMinute"],
  ["attribution_limits.end_user_tokens_per_minute", "Tokens per end user and minute", "endUserTokensPerMinute"],
] as const;

/** Fields of the budgets: name in the request, label, name in the message. */
export const ATTRIBUTION_BUDGETS = [
  ["attribution_limits.end_user_budget_micro_usd", "Budget per end user (USD)", "endUserBudgetMicroUsd"],
  ["attribution_limits.session_budget_micro_usd", "Budget per session (USD)", "sessionBudgetMicroUsd"],
] as const;

export const PERIOD_FIELD = "attribution_limits.end_user_budget_period";
export const REQUIRE_FIELD = "attribution_limits.require_end_user";

interface AttributionLimitsProps {
  readonly current?: Message | undefined;
  readonly errors: (field: string) => string | undefined;
}

/** Fields for the limits of each end user and session of a key. */
export function AttributionLimits({ current, errors }: AttributionLimitsProps) {
  const [first = "None", ...others] = describeAttributionLimits(current);
  const [endUserBudget, sessionBudget] = ATTRIBUTION_BUDGETS;
  const budget = ([name, label, field]: (typeof ATTRIBUTION_BUDGETS)[number]) => (
    <TextField
      label={label}
      name={name}
      inputMode="decimal"
      autoComplete="off"
      defaultValue={current?.[field] === undefined ? "" : writeUsd(current[field])}
      error={errors(name)}
    />
  );
  return (
    <Fold
      title="End users and sessions"
      summary={others.length === 0 ? first : `${others.length + 1} set`}
      isOpen={[...ATTRIBUTION_COUNTS, ...ATTRIBUTION_BUDGETS].some(([name]) => errors(name) !== undefined)}
    >
      <p className="text-sm text-muted">
        For each end user and session that requests name. The key’s holder chooses the names, so these limits divide the
        key’s use and do not replace its own limits.
      </p>
      <div className="grid gap-5 sm:grid-cols-2">
        {ATTRIBUTION_COUNTS.map(([name, label, field]) => (
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
        {budget(endUserBudget)}
        <SelectField
          label="Period of the end user’s budget"
          name={PERIOD_FIELD}
          defaultValue={current?.endUserBudgetPeriod || BudgetPeriod.DAY}
          error={undefined}
        >
          <option value={BudgetPeriod.DAY}>Day (UTC)</option>
          <option value={BudgetPeriod.MONTH}>Month (UTC)</option>
        </SelectField>
        {budget(sessionBudget)}
      </div>
      <CheckField
        label="Refuse requests without an end user"
        name={REQUIRE_FIELD}
        defaultChecked={current?.requireEndUser}
      />
    </Fold>
  );
}
