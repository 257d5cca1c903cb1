import { useState } from "react";
import { SelectField, TextField } from "../components/field.tsx";
import { MAX_PERIOD_MS, periodOf, type Range, RANGES, readPeriod } from "./period.ts";
import type { View } from "./view.ts";

interface PeriodFieldsProps {
  readonly view: View;
  readonly onChange: (changes: Partial<View>) => void;
}

/** Value of the choice of a custom period. */
const OWN = "own";

/** Field for a range up to now, with fields for the ends of a custom period. */
export function PeriodFields({ view, onChange }: PeriodFieldsProps) {
  const isOwn = view.since !== "";
  const choose = (value: string): void => {
    if (value !== OWN) return onChange({ range: value as Range, since: "", until: "" });
    const { sinceMs, untilMs } = periodOf(view.range, Date.now());
    onChange({ since: toIso(sinceMs), until: toIso(untilMs) });
  };
  return (
    <>
      <SelectField label="Period" value={isOwn ? OWN : view.range} onChange={(event) => choose(event.target.value)}>
        {Object.entries(RANGES).map(([range, { text }]) => (
          <option key={range} value={range}>
            Last {text}
          </option>
        ))}
        <option value={OWN}>Custom…</option>
      </SelectField>
      {isOwn && <Ends key={`${view.since} ${view.until}`} since={view.since} until={view.until} onChange={onChange} />}
    </>
  );
}

interface EndsProps {
  /** ISO 8601. */
  readonly since: string;
  readonly until: string;
  readonly onChange: (ends: { readonly since: string; readonly until: string }) => void;
}

/** The ends of a period as they are typed; valid ones are applied. */
export function Ends({ since: sinceIso, until: untilIso, onChange }: EndsProps) {
  const [since, setSince] = useState(toLocal(sinceIso));
  const [until, setUntil] = useState(toLocal(untilIso));
  const isValid = readPeriod(since, until) !== undefined;
  const apply = (): void => {
    const period = readPeriod(since, until);
    if (period !== undefined) onChange({ since: toIso(period.sinceMs), until: toIso(period.untilMs) });
  };
  const error = isValid ? undefined : `Must end after it begins, within ${MAX_PERIOD_MS / 86_400_000} days.`;
  return (
    <>
      <div className="max-lg:col-span-2">
        <TextField
          label="From"
          type="datetime-local"
          required
          value={since}
          onChange={(event) => setSince(event.target.value)}
          onBlur={apply}
        />
      </div>
      <div className="max-lg:col-span-2">
        <TextField
          label="To"
          type="datetime-local"
          required
          value={until}
          error={error}
          onChange={(event) => setUntil(event.target.value)}
          onBlur={apply}
        />
      </div>
    </>
  );
}

/** ISO 8601 in minutes: `2026-11-27T07:30Z`. */
function toIso(atMs: number): string {
  return new Date(atMs).toISOString().replace(/:\d\d\.\d{3}Z$/, "Z");
}

/** A time as a `datetime-local` field has it, in the reader's time zone: `2026-11-27T08:30`. */
function toLocal(iso: string): string {
  const time = new Date(iso);
  const [month, day, hour, minute] = [time.getMonth() + 1, time.getDate(), time.getHours(), time.getMinutes()].map(
    (part) => String(part).padStart(2, "0"),
  );
  return `${time.getFullYear()}-${month}-${day}T${hour}:${minute}`;
}
