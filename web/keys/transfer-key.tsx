import { useMutation } from "@tanstack/react-query";
import { keys, refreshKeys } from "../api/keys.ts";
import { ownerChoices, useOwners } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import type { KeyDialogProps } from "./dialog-props.ts";

/** Dialog that makes another account the owner of a key. */
export default function TransferKey({ target, open, onClose }: KeyDialogProps) {
  const account = useAccount();
  const receivers = useOwners().filter(({ id, isWritable }) => isWritable && id !== target.accountId);
  const transfer = useMutation({
    mutationFn: (accountId: string) => keys.transfer({ id: target.id, accountId }),
    async onSuccess() {
      await refreshKeys();
      onClose();
    },
  });
  return (
    <Dialog
      open={open}
      title="Transfer key"
      description={
        <>
          <bdi className="font-medium text-ink">{target.name}</bdi> keeps working, with the limits, credentials and
          aliases of its new owner. Past usage and requests stay with the account that had them.
        </>
      }
      onClose={onClose}
    >
      <Form fields={["account_id"]} error={transfer.error} onSubmit={(form) => transfer.mutate(form.get("account_id"))}>
        {(errors) => (
          <>
            <SelectField label="New owner" name="account_id" error={errors("account_id")}>
              {ownerChoices(receivers, account.id).map(([id, name]) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </SelectField>
            <DialogActions>
              <Button type="submit" busy={transfer.isPending}>
                {transfer.isPending ? "Transferring …" : "Transfer key"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
