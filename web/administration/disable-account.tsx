import { useMutation } from "@tanstack/react-query";
import { accounts, refreshAccounts } from "../api/accounts.ts";
import { isPerson } from "../api/owners.ts";
import { refreshTeams } from "../api/teams.ts";
import { useAccount } from "../api/session.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { formatCount } from "../format/number.ts";
import type { AccountDialogProps } from "./account-row.tsx";

/** Dialog that disables an account, or enables it again. */
export default function DisableAccount({ target, open, onClose }: AccountDialogProps) {
  const own = useAccount();
  const isDisabled = target.disableTime !== undefined;
  const change = useMutation({
    mutationFn: () => accounts.update({ id: target.id, disabled: !isDisabled }),
    async onSuccess() {
      onClose();
      await (isPerson(target) ? refreshAccounts() : refreshTeams());
    },
  });
  const act = isDisabled ? "Enable" : "Disable";
  const keys = target.workingKeys ?? 0n;
  const what = isPerson(target) ? "account" : "team";
  const isOwn = target.id === own.id;
  return (
    <ConfirmDialog
      open={open}
      title={`${act} ${what}?`}
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi>{" "}
          {!isPerson(target)
            ? describeTeam(keys, isDisabled)
            : isDisabled
              ? `can sign in again. ${describeKeys(keys, "become active again")}`
              : `is signed out everywhere and can no longer sign in. ${describeKeys(keys, "stop working within 5 seconds")} Pending invitations by this account are revoked. Nothing else is deleted; you can enable the account again.`}
          {!isDisabled && isOwn && " This is your own account: you will be signed out."}
        </>
      }
      action={`${act} ${what}`}
      doing={isDisabled ? "Enabling …" : "Disabling …"}
      look={isDisabled ? "primary" : "danger"}
      act={change}
      onClose={onClose}
    />
  );
}

function describeTeam(keys: bigint, isDisabled: boolean): string {
  if (isDisabled) return `can be used again. ${describeKeys(keys, "become active again")}`;
  return `stays visible to its members. ${describeKeys(keys, "stop working within 5 seconds")} You can enable it again.`;
}

function describeKeys(count: bigint, what: string): string {
  if (count === 0n) return "It has no active keys.";
  return `Its keys (${formatCount(count)}) ${what}.`;
}
