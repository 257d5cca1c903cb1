import type { ReactNode } from "react";
import { useScopes } from "../api/scopes.ts";
import { AttributionFilter } from "../components/attribution-filter.tsx";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { type LogView, PARAMETERS } from "./filter.ts";
import { TimeFields } from "./time-fields.tsx";

interface FiltersProps {
  readonly view: LogView;
  /** Buttons beside the fields. */
  readonly children: ReactNode;
}

/** Filter fields of the request log. */
export function Filters({ view, children }: FiltersProps) {
  const { filter, order, query, change } = view;
  const { accountId = "", keyId = "", model = "", outcome = "" } = filter;
  const { models, keys, outcomes, accounts } = useScopes(accountId);
  return (
    <div className="mb-2 space-y-2">
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
        <Choose label="Key" value={keyId} all="All keys" choices={keys} onChange={(value) => change({ key: value })} />
        {accounts && (
          <Choose
            label="Account"
            value={accountId}
            all={accounts.all}
            choices={accounts.choices}
            onChange={(value) => change({ account: value, key: "" })}
          />
        )}
        {/* Wide screens have the names of the columns. */}
        <div className="lg:hidden">
          <Choose
            label="Sort by"
            value={order === "time" ? "" : order}
            all="Latest first"
            choices={SORTED}
            onChange={(value) => change({ order: value })}
          />
        </div>
      </div>
      <div className="flex flex-wrap items-center gap-2">
        <AttributionFilter values={filter} onChange={change} />
        {query !== "" && (
          <Button look="quiet" size="small" onClick={() => change(NOTHING)}>
            Clear filters
          </Button>
        )}
        {children}
      </div>
    </div>
  );
}

/** Each parameter removed. */
const NOTHING = Object.fromEntries(PARAMETERS.map((name) => [name, ""]));

const SORTED = [
  ["tokens", "Most tokens first"],
  ["cost", "Highest cost first"],
  ["duration", "Longest first"],
  ["ttft", "Slowest first token first"],
] as const;
