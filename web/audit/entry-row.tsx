import type { ReactNode } from "react";
import type { AuditEntry } from "../../gen/parley/console/v1/audit_pb.js";
import { None } from "../components/table.tsx";
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

/** Grid columns on wide screens, where an entry is one line. On phones each entry is a card. */
const GRID =
  "grid gap-x-4 lg:grid-cols-[9rem_minmax(0,1.1fr)_minmax(0,1fr)_minmax(0,1.1fr)_minmax(0,1.6fr)_minmax(0,1.1fr)] lg:items-center";

const COLUMNS = ["Time", "Action", "Actor", "Object", "Change", "From"] as const;

/** Column headers. On phones only for screen readers. */
export function EntryHead() {
  return (
    <div role="row" className={`${GRID} px-5 py-2`}>
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
  return (
    <div
      role="row"
      className={`relative gap-y-0.5 px-5 py-3 tabular-nums hover:bg-sunken has-focus-visible:bg-sunken lg:h-7.5 lg:py-0 ${GRID} ${failed ? "shadow-[inset_3px_0_0_var(--color-warn)]" : ""}`}
    >
      <Cell>
        <button
          type="button"
          onClick={onOpen}
          aria-haspopup="dialog"
          title={time && formatPreciseMoment(time)}
          className="text-left whitespace-nowrap after:absolute after:inset-0"
        >
          {clock}
          {day !== undefined && <span className="ml-2 text-xs text-muted">{day}</span>}
          <span className="sr-only">, details of entry {entry.sequence.toString()}</span>
        </button>
      </Cell>
      <Cell>
        <span className={`font-medium lg:line-clamp-1 ${failed ? "text-warn" : ""}`}>
          {ACTION_WORDS[action] ?? action}
        </span>
      </Cell>
      <TextCell label="by" text={describeActor(actor, names)} />
      <TextCell label="" text={describeObject(object, names)} />
      <TextCell label="" text={changes.join("; ")} />
      <TextCell label="from" text={from} />
    </div>
  );
}

function describeChange({ field, before, after }: FieldChange): string {
  return before === "" ? `${field}: ${after || "none"}` : `${field}: ${before} → ${after || "none"}`;
}

/** A text on one line of a wide screen. `label` precedes it on phones, which have no column headers. */
function TextCell({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <Cell className={text === "" ? "max-lg:sr-only" : "max-lg:text-muted"}>
      {text === "" ? (
        <None />
      ) : (
        <span className="line-clamp-2 lg:block lg:truncate" title={text}>
          {label !== "" && <span className="lg:hidden">{label} </span>}
          <bdi>{text}</bdi>
        </span>
      )}
    </Cell>
  );
}

function Cell({ className = "", children }: { readonly className?: string; readonly children: ReactNode }) {
  return (
    <div role="cell" className={`min-w-0 wrap-anywhere ${className}`}>
      {children}
    </div>
  );
}
