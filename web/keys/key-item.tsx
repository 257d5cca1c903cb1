import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { Fact } from "../components/fact.tsx";
import { Spent } from "../components/spent.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import type { KeyAct } from "./dialog-props.ts";
import { describeLimits } from "../format/limits.ts";
import { CAPABILITY_NAMES } from "./permissions.tsx";

interface KeyItemProps {
  readonly value: Key;
  /** Name of the account, if it is another than the signed-in one. */
  readonly owner: string | undefined;
  /** Whether a rotation created the key to replace another. */
  readonly isSuccessor: boolean;
  readonly onAct: (act: KeyAct) => void;
}

export function KeyItem({ value: key, owner, isSuccessor, onAct }: KeyItemProps) {
  const isRotated = key.replacedBy !== "";
  return (
    <li className="rounded-xl border border-line bg-surface p-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3 sm:flex-nowrap">
        <div className="min-w-0">
          <h2 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base font-semibold">
            <bdi className="wrap-anywhere">{key.name}</bdi>
            <State value={key} />
          </h2>
          <p className="mt-1 flex flex-wrap gap-x-3 text-sm text-muted">
            <code className="font-mono">{key.display}</code>
            {owner !== undefined && (
              <span className="wrap-anywhere">
                of <bdi>{owner}</bdi>
              </span>
            )}
          </p>
        </div>
        {key.state === KeyState.ACTIVE && (
          <div className="-mx-3 flex shrink-0 sm:-mt-1.5 sm:-mr-2 sm:ml-0" role="group" aria-label={`Key ${key.name}`}>
            <Button look="quiet" size="small" onClick={() => onAct("edit")} aria-label={`Edit ${key.name}`}>
              Edit
            </Button>
            {!isRotated && (
              <Button look="quiet" size="small" onClick={() => onAct("rotate")} aria-label={`Rotate ${key.name}`}>
                Rotate
              </Button>
            )}
            <Button look="quiet danger" size="small" onClick={() => onAct("revoke")} aria-label={`Revoke ${key.name}`}>
              Revoke
            </Button>
          </div>
        )}
      </div>
      <dl className="mt-4 grid grid-cols-2 gap-x-6 gap-y-3 text-sm lg:grid-cols-4">
        <Fact name="Last used">
          {key.lastUseTime === undefined ? (
            "Never"
          ) : (
            <span title={formatMoment(key.lastUseTime)}>{formatFromNow(key.lastUseTime)}</span>
          )}
        </Fact>
        <Fact name="Spent this month">
          <Spent micro={key.monthSpentMicroUsd} budget={key.limits?.monthlyBudgetMicroUsd} />
          {isSuccessor && <p className="mt-1 text-muted">Includes the keys it replaced</p>}
          {isRotated && <p className="mt-1 text-muted">Includes the key that replaced it</p>}
        </Fact>
        <Fact name="Permissions">{describePermissions(key)}</Fact>
        <Fact name="Limits">{describeLimits(key.limits).join(", ") || "Account limits"}</Fact>
      </dl>
    </li>
  );
}

function State({ value: { state, expireTime, revokeTime, replacedBy } }: { readonly value: Key }) {
  if (state === KeyState.REVOKED) return <Badge look="danger">Revoked {revokeTime && formatFromNow(revokeTime)}</Badge>;
  if (state === KeyState.EXPIRED) return <Badge look="plain">Expired {expireTime && formatFromNow(expireTime)}</Badge>;
  if (replacedBy !== "") return <Badge look="warn">Rotated, expires {expireTime && formatFromNow(expireTime)}</Badge>;
  if (expireTime !== undefined) return <Badge look="good">Active, expires {formatFromNow(expireTime)}</Badge>;
  return <Badge look="good">Active</Badge>;
}

function describePermissions({ models, capabilities }: Key): string {
  const ids = models?.ids ?? [];
  const which = models?.all === true ? "All models" : ids.length > 2 ? `${ids.length} models` : ids.join(", ");
  const isLimited = capabilities.length < CAPABILITY_NAMES.length;
  const names = CAPABILITY_NAMES.filter(([capability]) => capabilities.includes(capability)).map(([, name]) => name);
  return isLimited ? `${which}; ${names.join(", ").toLowerCase()}` : which;
}
