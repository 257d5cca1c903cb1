import { Archive, ArrowRightLeft, Clock, type LucideIcon, Pencil, RefreshCw, Trash2, Users } from "lucide-react";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { Badge } from "../components/badge.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { ActionsHead, type RowAction, RowActions } from "../components/row-actions.tsx";
import { Spent } from "../components/spent.tsx";
import { Cell, OnPhones } from "../components/table.tsx";
import { formatFromNow } from "../format/time.ts";
import { endUsersPath } from "../paths.ts";
import type { KeyAct } from "./dialog-props.ts";
import { describeAttributionLimits, describeLimits } from "../format/limits.ts";
import { CAPABILITY_NAMES } from "./capabilities.ts";

interface KeyRowProps {
  readonly value: Key;
  /** Name of the account, if it is another than the signed-in one. */
  readonly owner: string | undefined;
  /** Whether a rotation created the key to replace another. */
  readonly isSuccessor: boolean;
  /** Whether the key may be changed. */
  readonly isWritable: boolean;
  /** Whether there is another account that could own the key. */
  readonly isTransferable: boolean;
  readonly onAct: (act: KeyAct) => void;
}

/** Grid columns on wide screens, where a key is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1.7fr)_8.25rem_minmax(0,0.8fr)_minmax(0,1fr)_6.75rem_8.5rem_1.5rem] lg:gap-x-4 lg:px-5 wide:grid-cols-[minmax(0,1.7fr)_8.25rem_minmax(0,0.9fr)_minmax(0,1fr)_6.75rem_9rem_8.75rem]";

const COLUMNS = ["Name", "Key", "Permissions", "Limits", "Last used", "Spent this month", "Actions"] as const;

/** Column headers. */
export function KeyHead() {
  return (
    <div role="row" className={`${GRID} py-1.5`}>
      {COLUMNS.map((column) => (
        <span key={column} role="columnheader" className={column === "Spent this month" ? "text-right" : ""}>
          {column === "Actions" ? <ActionsHead /> : column}
        </span>
      ))}
    </div>
  );
}

/** One key of the table. */
export function KeyRow({ value: key, owner, isSuccessor, isWritable, isTransferable, onAct }: KeyRowProps) {
  const permissions = describePermissions(key);
  const limits = [...describeLimits(key.limits), ...describeAttributionLimits(key.attributionLimits)].join(", ");
  const state = stateOf(key);
  const others = isSuccessor
    ? "Includes the keys it replaced"
    : key.replacedBy === ""
      ? undefined
      : "Includes the key that replaced it";
  const spent = <Spent micro={key.monthSpentMicroUsd} budget={key.limits?.monthlyBudgetMicroUsd} />;
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="flex h-5 flex-wrap items-center gap-x-2 overflow-hidden">
        <span className="flex max-w-full min-w-0 items-center gap-x-2" title={owner && `${key.name}, of ${owner}`}>
          <bdi className="truncate font-medium" title={key.name}>
            {key.name}
          </bdi>
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
        <RowActions of={key.name} actions={actionsOn(key, { isWritable, isTransferable, onAct })} />
      </Cell>
    </div>
  );
}

function actionsOn(
  key: Key,
  { isWritable, isTransferable, onAct }: Pick<KeyRowProps, "isWritable" | "isTransferable" | "onAct">,
): readonly RowAction[] {
  const { attributionLimits: limits, name } = key;
  const spending: RowAction = {
    verb: "Spending of end users",
    name: `Spending of the end users of ${name}`,
    Icon: Users,
    href: endUsersPath(key.id),
  };
  const act = (verb: string, Icon: LucideIcon, what: KeyAct): RowAction => ({ verb, Icon, onClick: () => onAct(what) });
  const mayChange = isWritable && key.state === KeyState.ACTIVE;
  return [
    (limits?.endUserBudgetMicroUsd ?? limits?.sessionBudgetMicroUsd) === undefined ? [] : spending,
    mayChange ? act("Edit", Pencil, "edit") : [],
    mayChange && key.replacedBy === "" ? act("Rotate", RefreshCw, "rotate") : [],
    mayChange && isTransferable ? act("Transfer", ArrowRightLeft, "transfer") : [],
    mayChange ? act("Revoke", Trash2, "revoke") : [],
  ].flat();
}

/** Mark of a key that is revoked, expired, rotated or will expire; nothing for other keys. The name needs the room. */
function State({ value: key }: { readonly value: Key }) {
  const words = stateOf(key);
  if (words === undefined) return null;
  const [look, word, end] = words;
  return (
    <span title={`${word}${end}`} className="shrink-0">
      {word === "Expires" ? (
        <span className="2xl:hidden">
          <Clock aria-hidden className="size-4 text-muted" />
        </span>
      ) : null}
      <span className={word === "Expires" ? "max-2xl:sr-only" : ""}>
        <Badge look={look}>
          {word}
          <span className="max-2xl:sr-only">{end}</span>
        </Badge>
      </span>
    </span>
  );
}

/** State of a key that is not simply active: what it is, and since or until when. */
function stateOf({
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

function describePermissions({ models, capabilities }: Key): string {
  const ids = models?.ids ?? [];
  const which = models?.all === true ? "All models" : ids.length > 2 ? `${ids.length} models` : ids.join(", ");
  const isLimited = capabilities.length < CAPABILITY_NAMES.length;
  const names = CAPABILITY_NAMES.filter(([capability]) => capabilities.includes(capability)).map(([, name]) => name);
  return isLimited ? `${which}; ${names.join(", ").toLowerCase()}` : which;
}
