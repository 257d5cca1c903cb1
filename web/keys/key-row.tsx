import { Archive, Clock } from "lucide-react";
import { Link } from "wouter";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { Badge } from "../components/badge.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { type RowAction, RowActions } from "../components/row-actions.tsx";
import { SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting } from "../components/sorting.ts";
import { Spent } from "../components/spent.tsx";
import { Cell, None, OnPhones } from "../components/table.tsx";
import { formatFromNow } from "../format/time.ts";
import { keyPath } from "../paths.ts";
import { describeAttributionLimits, describeLimits } from "../format/limits.ts";
import { CAPABILITY_NAMES } from "./capabilities.ts";

/** Columns by which keys are sorted. */
export type KeyColumn = "name" | "budget" | "created" | "expires" | "used" | "spent";

interface KeyRowProps {
  readonly value: Key;
  /** Name of the account, if it is another than the signed-in one. */
  readonly owner: string | undefined;
  readonly actions: readonly RowAction[];
}

/** Grid columns on wide screens, where a key is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1.7fr)_8.25rem_minmax(0,0.8fr)_minmax(0,1fr)_6.75rem_8.5rem_1.5rem] lg:gap-x-4 lg:px-5 wide:grid-cols-[minmax(0,1.7fr)_8.25rem_minmax(0,0.9fr)_minmax(0,1fr)_6.75rem_9rem_8.75rem] 2xl:grid-cols-[minmax(0,1.7fr)_8.25rem_minmax(0,0.8fr)_minmax(0,1fr)_7.5rem_6.75rem_7.5rem_9rem_8.75rem]";

/** Classes of a column that only large windows have room for. */
const ROOMY = "max-2xl:hidden";

/** Column headers. */
export const KEY_COLUMNS: readonly SortedColumn<KeyColumn>[] = [
  { name: "Name", column: "name" },
  { name: "Key" },
  { name: "Permissions" },
  { name: "Limits", title: "Limits, by the monthly budget", column: "budget", isHighestFirst: true },
  { name: "Created", column: "created", isHighestFirst: true, className: ROOMY },
  { name: "Expires", column: "expires", className: ROOMY },
  { name: "Last used", column: "used", isHighestFirst: true },
  { name: "Spent this month", column: "spent", isHighestFirst: true, isRight: true },
  { name: "Actions" },
];

interface KeyHeadProps {
  readonly sorting: Sorting<KeyColumn> | undefined;
  readonly onSort: (sorting: Sorting<KeyColumn> | undefined) => void;
}

/** Column headers, by which the table is sorted. */
export function KeyHead(props: KeyHeadProps) {
  return <SortedHead columns={KEY_COLUMNS} grid={GRID} {...props} />;
}

/** One key of the table. */
export function KeyRow({ value: key, owner, actions }: KeyRowProps) {
  const permissions = describePermissions(key);
  const limits = [...describeLimits(key.limits), ...describeAttributionLimits(key.attributionLimits)].join(", ");
  const state = stateOf(key);
  const others = describeFamily(key);
  const spent = <Spent micro={key.monthSpentMicroUsd} budget={key.limits?.monthlyBudgetMicroUsd} />;
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="flex h-5 flex-wrap items-center gap-x-2 overflow-hidden">
        <span className="flex max-w-full min-w-0 items-center gap-x-2" title={owner && `${key.name}, of ${owner}`}>
          <Link href={keyPath(key.id)} className="truncate font-medium hover:text-accent hover:underline">
            <bdi title={key.name}>{key.name}</bdi>
          </Link>
          <State value={key} />
          {key.storeContent && (
            <span title="Stores prompts and answers" className="shrink-0">
              <Archive aria-hidden className="size-4 text-warn" />
              <span className="sr-only">Stores prompts and answers</span>
            </span>
          )}
        </span>
        {/* Wraps out of sight where the name leaves no room. */}
        {owner !== undefined && (
          <span className="min-w-0 flex-1 basis-20 truncate text-muted max-lg:hidden" title={`Owner: ${owner}`}>
            of <bdi>{owner}</bdi>
          </span>
        )}
      </Cell>
      <Cell className="truncate text-xs text-muted max-lg:order-3">
        <code className="font-mono">{key.display}</code>
        <OnPhones>
          {state !== undefined && ` · ${state[1]}${state[2]}`}
          {owner !== undefined && ` · of ${owner}`} · {permissions}
          {limits !== "" && ` · ${limits}`}
        </OnPhones>
      </Cell>
      <Cell className="truncate max-lg:hidden" title={permissions}>
        {permissions}
      </Cell>
      <Cell className="truncate max-lg:hidden" title={limits}>
        {limits || <span className="text-muted">Account limits</span>}
      </Cell>
      <Cell className={`whitespace-nowrap text-muted max-lg:hidden ${ROOMY}`}>
        {key.createTime && <RelativeTime time={key.createTime} />}
      </Cell>
      <Cell className={`whitespace-nowrap text-muted max-lg:hidden ${ROOMY}`}>
        {key.expireTime === undefined ? <None /> : <RelativeTime time={key.expireTime} />}
      </Cell>
      <Cell className="text-right whitespace-nowrap text-muted max-lg:order-3 max-lg:text-xs lg:text-left">
        {key.lastUseTime === undefined ? "Never" : <RelativeTime time={key.lastUseTime} />}
      </Cell>
      <Cell className="text-right whitespace-nowrap">
        {others === undefined ? (
          spent
        ) : (
          <span title={others}>
            {spent}
            <span className="sr-only"> {others}</span>
          </span>
        )}
      </Cell>
      <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
        <RowActions of={key.name} actions={actions} />
      </Cell>
    </div>
  );
}

/** Whose spending that of a key includes, beside its own: keys of a family share it. */
export function describeFamily({ id, familyId, replacedBy }: Key): string | undefined {
  if (familyId !== id) return "Includes the keys it replaced";
  return replacedBy === "" ? undefined : "Includes the key that replaced it";
}

/** Mark of a key that is revoked, expired, rotated or will expire; nothing for other keys. The name needs the room. */
function State({ value: key }: { readonly value: Key }) {
  const words = stateOf(key);
  if (words === undefined) return null;
  const [look, word, end] = words;
  return word === "Expires" ? (
    <span title={`${word}${end}`} className="shrink-0">
      {/* Large windows have a column for it. */}
      <Clock aria-hidden className="size-4 text-muted 2xl:hidden" />
      <span className="sr-only">
        {word}
        {end}
      </span>
    </span>
  ) : (
    <span title={`${word}${end}`} className="shrink-0">
      <Badge look={look}>
        {word}
        <span className="max-2xl:sr-only">{end}</span>
      </Badge>
    </span>
  );
}

/** State of a key that is not simply active: what it is, and since or until when. */
export function stateOf({
  state,
  expireTime,
  revokeTime,
  replacedBy,
}: Key): readonly [look: "plain" | "warn" | "danger", word: string, time: string] | undefined {
  const at = (time: Timestamp | undefined): string => (time === undefined ? "" : ` ${formatFromNow(time)}`);
  if (state === KeyState.REVOKED) return ["danger", "Revoked", at(revokeTime)];
  if (state === KeyState.EXPIRED) return ["plain", "Expired", at(expireTime)];
  if (replacedBy !== "") return ["warn", "Rotated", `, expires${at(expireTime)}`];
  return expireTime === undefined ? undefined : ["plain", "Expires", at(expireTime)];
}

export function describePermissions({ models, capabilities }: Key): string {
  const ids = models?.ids ?? [];
  const which = models?.all === true ? "All models" : ids.length > 2 ? `${ids.length} models` : ids.join(", ");
  const isLimited = capabilities.length < CAPABILITY_NAMES.length;
  const names = CAPABILITY_NAMES.filter(([capability]) => capabilities.includes(capability)).map(([, name]) => name);
  return isLimited ? `${which}; ${names.join(", ").toLowerCase()}` : which;
}
