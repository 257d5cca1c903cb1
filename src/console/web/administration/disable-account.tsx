import { useMutation } from "@tanstack/react-query";
import { accounts, refreshAccounts } from "../api/accounts.ts";
import { useAccount } from "../api/session.ts";
import { Button } from "../parts/button.tsx";
import { Dialog, DialogActions } from "../parts/dialog.tsx";
import { Form } from "../parts/form.tsx";
import { formatCount } from "../text/number.ts";
import type { AccountDialogProps } from "./account-item.tsx";

/** Takes everything from an account, or gives it back. */
export default function DisableAccount({ target, open, onClose }: AccountDialogProps) {
  const own = useAccount();
  const isDisabled = target.disableTime !== undefined;
  const change = useMutation({
    mutationFn: () => accounts.update({ id: target.id, disabled: !isDisabled }),
    async onSuccess() {
      onClose();
      await refreshAccounts();
    },
  });
  const act = isDisabled ? "Enable" : "Disable";
  const keys = target.workingKeys ?? 0n;
  const isOwn = target.id === own.id;
  return (
    <Dialog
      open={open}
      title={`${act} account?`}
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi>{" "}
          {isDisabled
            ? `can sign in again. ${describeKeys(keys, "will work again")}`
            : `is signed out everywhere and cannot sign in any more. ${describeKeys(keys, "will be refused within five seconds")} Open invitations by this account end. Nothing else is deleted: enabling the account gives the rest back.`}
          {!isDisabled && isOwn && " This is your own account: you will be signed out."}
        </>
      }
      onClose={onClose}
    >
      <Form fields={[]} error={change.error} onSubmit={() => change.mutate()}>
        {() => (
          <DialogActions>
            <Button type="submit" look={isDisabled ? "primary" : "danger"} busy={change.isPending}>
              {change.isPending ? "One moment …" : `${act} account`}
            </Button>
          </DialogActions>
        )}
      </Form>
    </Dialog>
  );
}

function describeKeys(count: bigint, what: string): string {
  if (count === 0n) return "It has no keys that this concerns.";
  return `${count === 1n ? "Its key" : `Its ${formatCount(count)} keys`} ${what}.`;
}
