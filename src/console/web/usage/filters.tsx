import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { accountsQuery } from "../api/accounts.ts";
import { keysQuery } from "../api/keys.ts";
import { isAdministrator, useAccount } from "../api/session.ts";
import { settingsQuery } from "../api/settings.ts";
import { SelectField } from "../parts/field.tsx";
import { GROUPING_NAMES, outcomeName } from "./names.ts";
import { type Grouping, RANGES, type View } from "./view.ts";

/** The outcomes that people look for; others are in the table by outcome, which leads to their requests. */
const OUTCOMES = ["served", "failed", "cancelled", "upstream_timeout", "upstream_unavailable", "upstream_rate_limited"];

interface FiltersProps {
  readonly view: View;
  readonly onChange: (changes: Partial<View>) => void;
}

/** Of what time and of what the usage is, and what it is split by. */
export function Filters({ view, onChange }: FiltersProps) {
  const isAll = isAdministrator(useAccount());
  const keys = useQuery(keysQuery).data ?? [];
  const models = useQuery(settingsQuery).data?.models ?? [];
  const accounts = useQuery({ ...accountsQuery, enabled: isAll }).data ?? [];
  const groupings = (Object.keys(GROUPING_NAMES) as Grouping[]).filter((each) => isAll || each !== "account");
  const ofAccount = keys.filter(({ accountId }) => view.account === "" || accountId === view.account);
  return (
    <div className="mb-5 grid grid-cols-2 gap-3 sm:grid-cols-3">
      <SelectField
        label="Time"
        value={view.days}
        onChange={(event) => onChange({ days: Number(event.target.value) as View["days"] })}
      >
        {RANGES.map((range) => (
          <option key={range} value={range}>
            {range === 1 ? "Last 24 hours" : `Last ${range} days`}
          </option>
        ))}
      </SelectField>
      <SelectField
        label="Split by"
        value={view.by}
        onChange={(event) => onChange({ by: event.target.value as Grouping })}
      >
        {groupings.map((grouping) => (
          <option key={grouping} value={grouping}>
            {GROUPING_NAMES[grouping]}
          </option>
        ))}
      </SelectField>
      <Choice label="Model" value={view.model} onChoose={(model) => onChange({ model })} all="All models">
        {models.map(({ id }) => [id, id])}
      </Choice>
      <Choice label="Key" value={view.key} onChoose={(key) => onChange({ key })} all="All keys">
        {ofAccount.map(({ id, name, display }) => [id, `${name} (${display.slice(-4)})`])}
      </Choice>
      <Choice label="Outcome" value={view.outcome} onChoose={(outcome) => onChange({ outcome })} all="All outcomes">
        {OUTCOMES.map((outcome) => [outcome, outcomeName(outcome)])}
      </Choice>
      {isAll && (
        <Choice
          label="Account"
          value={view.account}
          onChoose={(account) => onChange({ account, key: "" })}
          all="All accounts"
        >
          {accounts.map(({ id, name, email }) => [id, email || name])}
        </Choice>
      )}
    </div>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly onChoose: (value: string) => void;
  readonly all: string;
  readonly children: readonly (readonly [value: string, name: ReactNode])[];
}

function Choice({ label, value, onChoose, all, children: options }: ChoiceProps) {
  const isKnown = value === "" || options.some(([option]) => option === value);
  return (
    <SelectField label={label} value={value} onChange={(event) => onChoose(event.target.value)}>
      <option value="">{all}</option>
      {options.map(([option, name]) => (
        <option key={option} value={option}>
          {name}
        </option>
      ))}
      {/* From the address, or one that has not arrived yet. */}
      {!isKnown && <option value={value}>{value}</option>}
    </SelectField>
  );
}
