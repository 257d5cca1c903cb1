import { Link } from "wouter";
import { type Account, AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import { describeLimits } from "../format/limits.ts";
import { Badge } from "../components/badge.tsx";
import { Button, buttonClass } from "../components/button.tsx";
import { PATHS } from "../paths.ts";
import { formatCount } from "../format/number.ts";
import { roleName } from "../format/roles.ts";
import { formatFromNow, formatMoment } from "../format/time.ts";

/** Actions on an account. `disable` also enables a disabled account. */
export type AccountAct = "edit" | "reset factors" | "disable" | "offboard";

/** Props of a dialog for one account. */
export interface AccountDialogProps {
  readonly target: Account;
  readonly open: boolean;
  readonly onClose: () => void;
}

interface AccountItemProps {
  readonly account: Account;
  /** Names of custom roles by ID. */
  readonly roleNames: ReadonlyMap<string, string>;
  readonly isOwn: boolean;
  readonly onAct: (act: AccountAct) => void;
}

export function AccountItem({ account, roleNames, isOwn, onAct }: AccountItemProps) {
  const { id, name, email, role, limits, createTime, disableTime, workingKeys = 0n } = account;
  const isDisabled = disableTime !== undefined;
  return (
    <li className="px-5 py-3">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-2 sm:flex-nowrap">
        <div className="min-w-0">
          <h2 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base font-semibold">
            <bdi className="wrap-anywhere">{name}</bdi>
            {role !== AccountRole.DEVELOPER && (
              <Badge look={role === AccountRole.ADMINISTRATOR || role === AccountRole.OWNER ? "good" : "plain"}>
                {roleName(account, roleNames)}
              </Badge>
            )}
            {isDisabled && <Badge look="danger">Disabled {formatFromNow(disableTime)}</Badge>}
            {isOwn && <Badge look="plain">You</Badge>}
          </h2>
          <p className="mt-0.5 flex flex-wrap gap-x-4 text-sm text-muted">
            <span className="wrap-anywhere text-ink">{email || "No e-mail address: sign-in is not possible"}</span>
            <span>{describeKeys(workingKeys)}</span>
            <span>{describeLimits(limits).join(", ") || "Default limits"}</span>
            {createTime && <span title={formatMoment(createTime)}>Created {formatFromNow(createTime)}</span>}
          </p>
        </div>
        <div
          className="-mx-3 flex flex-wrap sm:-mt-1 sm:-mr-2 sm:ml-0 sm:shrink-0 sm:flex-nowrap"
          role="group"
          aria-label={`Account ${name}`}
        >
          <Link
            href={`${PATHS.adminAudit}?account=${id}`}
            className={buttonClass("quiet", "small")}
            aria-label={`Audit log of ${name}`}
          >
            Audit log
          </Link>
          <Button look="quiet" size="small" onClick={() => onAct("edit")} aria-label={`Edit ${name}`}>
            Edit
          </Button>
          {email !== "" && !isOwn && (
            <Button
              look="quiet"
              size="small"
              onClick={() => onAct("reset factors")}
              aria-label={`Reset factors of ${name}`}
            >
              Reset factors
            </Button>
          )}
          <Button
            look={isDisabled ? "quiet" : "quiet danger"}
            size="small"
            onClick={() => onAct("disable")}
            aria-label={`${isDisabled ? "Enable" : "Disable"} ${name}`}
          >
            {isDisabled ? "Enable" : "Disable"}
          </Button>
          {!isDisabled && (
            <Button look="quiet danger" size="small" onClick={() => onAct("offboard")} aria-label={`Offboard ${name}`}>
              Offboard
            </Button>
          )}
        </div>
      </div>
    </li>
  );
}

function describeKeys(count: bigint): string {
  return count === 1n ? "1 active key" : `${formatCount(count)} active keys`;
}
