import { useMutation } from "@tanstack/react-query";
import { accounts, refreshAccounts } from "../api/accounts.ts";
import { failureOfField } from "../api/failure-of-field.ts";
import { refreshKeys } from "../api/keys.ts";
import { ownerChoices, useOwners } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { refreshTeams } from "../api/teams.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { formatCount } from "../format/number.ts";
import type { AccountDialogProps } from "./account-row.tsx";

/** Value of the choice to revoke the keys. */
const REVOKE = "revoke";

/** Dialog that offboards a person: disables the account, removes it from teams, and revokes or transfers its keys. */
export default function OffboardAccount({ target, open, onClose }: AccountDialogProps) {
  const own = useAccount();
  const receivers = useOwners().filter(({ id }) => id !== target.id);
  const offboard = useMutation({
    mutationFn: async (fate: string) => {
      if (fate === "") throw failureOfField("transfer_keys_to", "choose what becomes of the keys");
      const keys = fate === REVOKE ? ({ case: "revokeKeys", value: true } as const) : undefined;
      return accounts.offboard({ id: target.id, keys: keys ?? { case: "transferKeysTo", value: fate } });
    },
    async onSuccess() {
      onClose();
      await Promise.all([refreshAccounts(), refreshTeams(), refreshKeys()]);
    },
  });
  const count = target.workingKeys ?? 0n;
  return (
    <Dialog
      open={open}
      title="Offboard person"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> is signed out everywhere, can no longer sign in, and
          leaves all teams. Pending invitations by this account are revoked. Past usage stays with it.
          {target.id === own.id && " This is your own account: you will be signed out."}
        </>
      }
      onClose={onClose}
    >
      <Form
        fields={["transfer_keys_to"]}
        error={offboard.error}
        onSubmit={(form) => offboard.mutate(form.get("transfer_keys_to"))}
      >
        {(errors) => (
          <>
            <SelectField
              label={`Active keys (${formatCount(count)})`}
              name="transfer_keys_to"
              hint="Transferred keys keep working. Revoked ones stop at once and cannot be restored."
              error={errors("transfer_keys_to")}
            >
              {count > 0n && <option value="">Choose …</option>}
              <option value={REVOKE}>Revoke</option>
              {ownerChoices(receivers, own.id).map(([id, name]) => (
                <option key={id} value={id}>
                  Transfer to {name}
                </option>
              ))}
            </SelectField>
            <DialogActions>
              <Button type="submit" look="danger" busy={offboard.isPending}>
                {offboard.isPending ? "Offboarding …" : "Offboard"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
