import type { ReactNode } from "react";
import { useScopes } from "../api/scopes.ts";
import { AttributionFilter, attributionChips } from "../components/attribution-filter.tsx";
import { Choose } from "../components/choose.tsx";
import { chipOf, FilterChips } from "../components/filter-chips.tsx";
import { KeyField, useKeyChoice } from "../components/key-field.tsx";
import { RANGES } from "../usage/period.ts";
import { formatMoment, formatSpan } from "../usage/times.ts";
import { type LogView, NO_FILTERS, type Order, ORDERS, sortBy } from "./filter.ts";
import { TimeFields } from "./time-fields.tsx";

interface FiltersProps {
  readonly view: LogView;
  /** Buttons beside the fields. */
  readonly children: ReactNode;
}

/** Filter fields of the request log. */
export function Filters({ view, children }: FiltersProps) {
  const { filter, order, isAscending, change } = view;
  const { accountId = "", keyId = "", model = "", outcome = "" } = filter;
  const { models, outcomes, accounts } = useScopes();
  const keyChoice = useKeyChoice(keyId, accountId);
  return (
    <div className="mb-2 flex flex-col gap-2">
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-[repeat(auto-fit,minmax(9rem,1fr))]">
        <TimeFields {...view} />
        <Choose
          label="Status"
          value={outcome}
          all="All statuses"
          choices={outcomes}
          onChange={(value) => change({ outcome: value })}
        />
        <Choose
          label="Model"
          value={model}
          all="All models"
          choices={models}
          onChange={(value) => change({ model: value })}
        />
        <KeyField value={keyId} accountId={accountId} onChange={(value) => change({ key: value })} />
        {accounts && (
          <Choose
            label="Account"
            value={accountId}
            all={accounts.all}
            choices={accounts.choices}
            onChange={(value) => change({ account: value, key: "" })}
          />
        )}
        {/* On wide screens the column headers sort. */}
        <div className="lg:hidden">
          <Choose
            label="Sort by"
            value={isAscending ? `${order} ascending` : order === "time" ? "" : order}
            all="Latest first"
            choices={SORTED}
            onChange={(value) => {
              const [chosen = "", direction] = value.split(" ");
              change(sortBy(Object.hasOwn(ORDERS, chosen) ? (chosen as Order) : "time", direction !== undefined));
            }}
          />
        </div>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <AttributionFilter onChange={change} />
        {children}
      </div>
      <FilterChips
        chips={[
          ...chipOf("Time", describeTime(view), { onRemove: () => change({ range: "", since: "", until: "" }) }),
          ...chipOf("Status", outcome, { choices: outcomes, onRemove: () => change({ outcome: "" }) }),
          ...chipOf("Model", model, { choices: models, onRemove: () => change({ model: "" }) }),
          ...chipOf("Key", keyId, { choices: keyChoice, onRemove: () => change({ key: "" }) }),
          ...chipOf("Account", accountId, {
            choices: accounts?.choices ?? [],
            onRemove: () => change({ account: "", key: "" }),
          }),
          ...attributionChips(filter, change),
        ]}
        onClear={() => change(NO_FILTERS)}
      />
    </div>
  );
}

function describeTime({ filter: { sinceMs, untilMs }, range }: LogView): string {
  if (range !== undefined) return `Last ${RANGES[range].text}`;
  if (sinceMs !== undefined && untilMs !== undefined) return formatSpan({ sinceMs, untilMs });
  if (sinceMs !== undefined) return `Since ${formatMoment(sinceMs)}`;
  return untilMs === undefined ? "" : `Until ${formatMoment(untilMs)}`;
}

const SORTED = [
  ["tokens", "Most tokens first"],
  ["cost", "Highest cost first"],
  ["duration", "Longest first"],
  ["ttft", "Slowest first token first"],
  ["time ascending", "Oldest first"],
  ["tokens ascending", "Fewest tokens first"],
  ["cost ascending", "Lowest cost first"],
  ["duration ascending", "Shortest first"],
  ["ttft ascending", "Fastest first token first"],
] as const;
