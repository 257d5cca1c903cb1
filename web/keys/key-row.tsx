import { ArrowRightLeft, Pencil, RefreshCw, Trash2 } from "lucide-react";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { Badge } from "../components/badge.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import { Spent } from "../components/spent.tsx";
import { ColumnHeads, Cell } from "../components/table.tsx";
import { TextLink } from "../components/text-link.tsx";
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

/** Grid columns on wide screens. On phones each key is a card. */
const GRID =
  "grid grid-cols-2 gap-x-4 gap-y-3 lg:grid-cols-[minmax(0,1.4fr)_minmax(0,1fr)_minmax(0,1.1fr)_7rem_10rem_8rem] lg:gap-x-6 lg:gap-y-0";

const COLUMNS = ["Key", "Permissions", "Limits", "Last used", "Spent this month", "Actions"] as const;

/** Column headers. */
export function KeyHead() {
  return <ColumnHeads grid={GRID} columns={COLUMNS} right="Spent this month" />;
}

/** One key of the table. */
export function KeyRow({ value: key, owner, isSuccessor, isWritable, isTransferable, onAct }: KeyRowProps) {
  const isRotated = key.replacedBy !== "";
  const isActive = key.state === KeyState.ACTIVE;
  return (
    <div role="row" className={`${GRID} px-5 py-3 hover:bg-sunken lg:min-h-14 lg:items-center lg:py-1.5`}>
      <Cell className="max-lg:col-span-2">
        <span className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <bdi className="font-semibold wrap-anywhere">{key.name}</bdi>
          <State value={key} />
          {key.storeContent && <Badge look="warn">Stores prompts and answers</Badge>}
        </span>
        <span className="flex flex-wrap gap-x-3 text-xs text-muted">
          <code className="font-mono">{key.display}</code>
          {owner !== undefined && (
            <span className="wrap-anywhere">
              of <bdi>{owner}</bdi>
            </span>
          )}
        </span>
      </Cell>
      <Cell label="Permissions" className="wrap-anywhere">
        {describePermissions(key)}
      </Cell>
      <Cell label="Limits">
        {[...describeLimits(key.limits), ...describeAttributionLimits(key.attributionLimits)].join(", ") ||
          "Account limits"}
        {(key.attributionLimits?.endUserBudgetMicroUsd ?? key.attributionLimits?.sessionBudgetMicroUsd) !==
          undefined && (
          <span className="block">
            <TextLink to={endUsersPath(key.id)} label={`Spending of the end users of ${key.name}`}>
              Spending of each
            </TextLink>
          </span>
        )}
      </Cell>
      <Cell label="Last used">{key.lastUseTime === undefined ? "Never" : <RelativeTime time={key.lastUseTime} />}</Cell>
      <Cell
        label="Spent this month"
        className="lg:text-right"
        detail={
          isSuccessor ? "Includes the keys it replaced" : isRotated ? "Includes the key that replaced it" : undefined
        }
      >
        <Spent micro={key.monthSpentMicroUsd} budget={key.limits?.monthlyBudgetMicroUsd} />
      </Cell>
      <Cell className="max-lg:col-span-2">
        {isActive && isWritable && (
          <span className="-mx-1.5 flex" role="group" aria-label={`Key ${key.name}`}>
            <IconButton name={`Edit ${key.name}`} Icon={Pencil} onClick={() => onAct("edit")} />
            {!isRotated && <IconButton name={`Rotate ${key.name}`} Icon={RefreshCw} onClick={() => onAct("rotate")} />}
            {isTransferable && (
              <IconButton name={`Transfer ${key.name}`} Icon={ArrowRightLeft} onClick={() => onAct("transfer")} />
            )}
            <IconButton name={`Revoke ${key.name}`} Icon={Trash2} onClick={() => onAct("revoke")} />
          </span>
        )}
      </Cell>
    </div>
  );
}

/** Badge of a key that is revoked, expired, rotated or will expire; nothing for other keys. */
function State({ value: { state, expireTime, revokeTime, replacedBy } }: { readonly value: Key }) {
  if (state === KeyState.REVOKED)
    return <Badge look="danger">Revoked {revokeTime && <RelativeTime time={revokeTime} />}</Badge>;
  if (state === KeyState.EXPIRED)
    return <Badge look="plain">Expired {expireTime && <RelativeTime time={expireTime} />}</Badge>;
  if (replacedBy !== "")
    return <Badge look="warn">Rotated, expires {expireTime && <RelativeTime time={expireTime} />}</Badge>;
  if (expireTime !== undefined)
    return (
      <Badge look="good">
        Active, expires <RelativeTime time={expireTime} />
      </Badge>
    );
  return null;
}

function describePermissions({ models, capabilities }: Key): string {
  const ids = models?.ids ?? [];
  const which = models?.all === true ? "All models" : ids.length > 2 ? `${ids.length} models` : ids.join(", ");
  const isLimited = capabilities.length < CAPABILITY_NAMES.length;
  const names = CAPABILITY_NAMES.filter(([capability]) => capabilities.includes(capability)).map(([, name]) => name);
  return isLimited ? `${which}; ${names.join(", ").toLowerCase()}` : which;
}
