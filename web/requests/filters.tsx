import type { ReactNode } from "react";
import { useScopes } from "../api/scopes.ts";
import { AttributionFilter } from "../components/attribution-filter.tsx";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { type LogView, type Order, ORDERS, PARAMETERS, sortBy } from "./filter.ts";
import { TimeFields } from "./time-fields.tsx";

interface FiltersProps {
  readonly view: LogView;
  /** Buttons beside the fields. */
  readonly children: ReactNode;
}

/** Filter fields of the request log. */
export function Filters({ view, children }: FiltersProps) {
  const { filter, order, isAscending, query, change } = view;
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

/** Changes that remove all parameters. */
const NOTHING = Object.fromEntries(PARAMETERS.map((name) => [name, ""]));

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
