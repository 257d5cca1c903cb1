import type { AuditEntry } from "../../gen/parley/console/v1/audit_pb.js";
import { Cell, None, OnPhones } from "../components/table.tsx";
import { formatClock, formatPreciseMoment } from "../format/time.ts";
import {
  ACTION_WORDS,
  changesOf,
  describeActor,
  describeObject,
  detailsOf,
  type FieldChange,
  type Names,
} from "./words.ts";

/** Grid columns on wide screens, where an entry is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 px-4 lg:gap-x-4 lg:px-5 lg:grid-cols-[9rem_minmax(0,1.1fr)_minmax(0,1fr)_minmax(0,1.1fr)_minmax(0,1.6fr)_minmax(0,1.1fr)] lg:items-center";

const COLUMNS = ["Time", "Action", "Actor", "Object", "Change", "From"] as const;

/** Column headers. */
export function EntryHead() {
  return (
    <div role="row" className={`${GRID} py-2`}>
      {COLUMNS.map((column) => (
        <span key={column} role="columnheader">
          {column}
        </span>
      ))}
    </div>
  );
}

interface EntryRowProps {
  readonly entry: AuditEntry;
  readonly names: Names;
  readonly onOpen: () => void;
}

/** One entry. The whole row opens its details. */
export function EntryRow({ entry, names, onOpen }: EntryRowProps) {
  const { time, action, actor, object, failed, network, client } = entry;
  const { clock, day } = time === undefined ? { clock: "–", day: undefined } : formatClock(time);
  const facts = detailsOf(entry, names).filter(([name]) => name !== "email_hash");
  const changes = [
    ...changesOf(entry, names).map(describeChange),
    ...facts.map(([name, value]) => `${name}: ${value}`),
  ];
  const from = [network, client].filter((text) => text !== "").join(", ");
  const [by, about, what] = [describeActor(actor, names), describeObject(object, names), changes.join("; ")];
  return (
    <div
      role="row"
      className={`relative py-2 tabular-nums hover:bg-sunken has-focus-visible:bg-sunken lg:h-7.5 lg:py-0 ${GRID} ${failed ? "shadow-[inset_3px_0_0_var(--color-warn)]" : ""}`}
    >
      <Cell className="max-lg:order-2 max-lg:text-right max-lg:text-xs max-lg:text-muted">
        <button
          type="button"
          onClick={onOpen}
          aria-haspopup="dialog"
          title={time && formatPreciseMoment(time)}
          className="whitespace-nowrap after:absolute after:inset-0"
        >
          {clock}
          {day !== undefined && <span className="ml-2 text-xs text-muted">{day}</span>}
          <span className="sr-only">, details of entry {entry.sequence.toString()}</span>
        </button>
      </Cell>
      <Cell className={`truncate font-medium max-lg:order-1 ${failed ? "text-warn" : ""}`}>
        {ACTION_WORDS[action] ?? action}
      </Cell>
      <Cell className="truncate max-lg:order-3 max-lg:col-span-2 max-lg:text-xs max-lg:text-muted" title={by}>
        <bdi>{by}</bdi>
        <OnPhones>
          {[about === by ? "" : about, what]
            .filter((text) => text !== "")
            .map((text) => (
              <span key={text}>
                {" "}
                · <bdi>{text}</bdi>
              </span>
            ))}
        </OnPhones>
      </Cell>
      <WideCell text={about} />
      <WideCell text={what} />
      <WideCell text={from} />
    </div>
  );
}

function describeChange({ field, before, after }: FieldChange): string {
  return before === "" ? `${field}: ${after || "none"}` : `${field}: ${before} → ${after || "none"}`;
}

/** A text that phones have in another cell, or in the details. */
function WideCell({ text }: { readonly text: string }) {
  return (
    <Cell className="truncate max-lg:hidden" title={text}>
      {text === "" ? <None /> : <bdi>{text}</bdi>}
    </Cell>
  );
}
