import { useScopes } from "../api/scopes.ts";
import { AttributionFilter, attributionChips } from "../components/attribution-filter.tsx";
import { Choose } from "../components/choose.tsx";
import { chipOf, FilterChips } from "../components/filter-chips.tsx";
import { SelectField } from "../components/field.tsx";
import { KeyField, useKeyChoice } from "../components/key-field.tsx";
import { GROUPING_NAMES } from "./names.ts";
import { PeriodFields } from "./period-fields.tsx";
import { type Grouping, NO_FILTERS, type View } from "./view.ts";

interface FiltersProps {
  readonly view: View;
  readonly onChange: (changes: Partial<View>) => void;
}

/** Fields for period, filter and grouping. */
export function Filters({ view, onChange }: FiltersProps) {
  const { models, outcomes, accounts, isAll } = useScopes();
  const keyChoice = useKeyChoice(view.key, view.account);
  const groupings = (Object.keys(GROUPING_NAMES) as Grouping[]).filter(
    (each) => isAll || (each !== "account" && each !== "team"),
  );
  return (
    <div className="mb-5 flex flex-col gap-2">
      <div
        className={`grid grid-cols-2 gap-3 ${view.since === "" ? "sm:grid-cols-3 xl:grid-cols-6" : "lg:grid-cols-4"}`}
      >
        <PeriodFields view={view} onChange={onChange} />
        <SelectField
          label="Group by"
          value={view.by}
          onChange={(event) => onChange({ by: event.target.value as Grouping })}
        >
          {groupings.map((grouping) => (
            <option key={grouping} value={grouping}>
              {GROUPING_NAMES[grouping]}
            </option>
          ))}
        </SelectField>
        <Choose
          label="Status"
          value={view.outcome}
          all="All statuses"
          choices={outcomes}
          onChange={(outcome) => onChange({ outcome })}
        />
        <Choose
          label="Model"
          value={view.model}
          all="All models"
          choices={models}
          onChange={(model) => onChange({ model })}
        />
        <KeyField value={view.key} accountId={view.account} onChange={(key) => onChange({ key })} />
        {accounts && (
          <Choose
            label="Account"
            value={view.account}
            all={accounts.all}
            choices={accounts.choices}
            onChange={(account) => onChange({ account, key: "" })}
          />
        )}
      </div>
      <AttributionFilter onChange={onChange} />
      <FilterChips
        chips={[
          ...chipOf("Status", view.outcome, { choices: outcomes, onRemove: () => onChange({ outcome: "" }) }),
          ...chipOf("Model", view.model, { choices: models, onRemove: () => onChange({ model: "" }) }),
          ...chipOf("Key", view.key, { choices: keyChoice, onRemove: () => onChange({ key: "" }) }),
          ...chipOf("Account", view.account, {
            choices: accounts?.choices ?? [],
            onRemove: () => onChange({ account: "", key: "" }),
          }),
          ...attributionChips(view, onChange),
        ]}
        onClear={() => onChange(NO_FILTERS)}
      />
    </div>
  );
}
