import { SelectField } from "../components/field.tsx";
import { Ends } from "../usage/period-fields.tsx";
import { RANGES } from "../usage/period.ts";
import type { LogView } from "./filter.ts";

const OWN = "own";
const DAY_MS = 86_400_000;

/** Field for any time, a range up to now, or a custom period. */
export function TimeFields({ filter, range, change }: Pick<LogView, "filter" | "range" | "change">) {
  const isOwn = range === undefined && (filter.sinceMs !== undefined || filter.untilMs !== undefined);
  const choose = (value: string): void => {
    if (value !== OWN) return change({ range: value, since: "", until: "" });
    change({ range: "", ...endsOf(filter) });
  };
  return (
    <>
      <SelectField label="Time" value={isOwn ? OWN : (range ?? "")} onChange={(event) => choose(event.target.value)}>
        <option value="">Any time</option>
        {Object.entries(RANGES).map(([name, { text }]) => (
          <option key={name} value={name}>
            Last {text}
          </option>
        ))}
        <option value={OWN}>Custom…</option>
      </SelectField>
      {isOwn && <Ends key={`${filter.sinceMs} ${filter.untilMs}`} {...endsOf(filter)} onChange={change} />}
    </>
  );
}

/** The ends of a filter, by default the last day. */
function endsOf({ sinceMs, untilMs = Date.now() }: LogView["filter"]): {
  readonly since: string;
  readonly until: string;
} {
  return { since: toIso(sinceMs ?? untilMs - DAY_MS), until: toIso(untilMs) };
}

function toIso(atMs: number): string {
  return new Date(atMs).toISOString();
}
