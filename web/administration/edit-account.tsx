import { useMutation } from "@tanstack/react-query";
import { accounts, refreshAccounts } from "../api/accounts.ts";
import { isPerson } from "../api/owners.ts";
import { queryClient } from "../api/query-client.ts";
import { sessionQuery, useAccount } from "../api/session.ts";
import { refreshTeams } from "../api/teams.ts";
import { readLimits } from "../keys/choices.ts";
import { BUDGET_FIELD, LIMIT_FIELDS, Limits } from "../keys/limits.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { readRoleValue, roleValue } from "../format/roles.ts";
import type { AccountDialogProps } from "./account-row.tsx";
import { RoleField } from "./role-field.tsx";

/** Dialog that changes the name, role and limits of an account. */
export default function EditAccount({ target, open, onClose }: AccountDialogProps) {
  const own = useAccount();
  const update = useMutation({
    mutationFn: async (form: Written) => {
      const limits = readLimits(form);
      return accounts.update({
        id: target.id,
        name: form.get("name"),
        limits,
        ...(isPerson(target) && readRoleValue(form.get("role"))),
      });
    },
    async onSuccess() {
      onClose();
      await (isPerson(target) ? refreshAccounts() : refreshTeams());
      // An account that removes its own role loses access to these pages.
      if (target.id === own.id) await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    },
  });
  return (
    <Dialog
      open={open}
      title={isPerson(target) ? "Edit account" : "Edit team"}
      description={target.email}
      onClose={onClose}
    >
      <Form
        fields={["name", "role", ...LIMIT_FIELDS.map(([name]) => name), BUDGET_FIELD]}
        error={update.error}
        onSubmit={(form) => update.mutate(form)}
      >
        {(errors) => (
          <>
            <TextField label="Name" name="name" autoComplete="off" defaultValue={target.name} error={errors("name")} />
            {isPerson(target) && <RoleField defaultValue={roleValue(target)} error={errors("role")} />}
            <Limits
              current={target.limits}
              note="Shared by all keys of the account. Leave empty to use the default limits."
              errors={errors}
            />
            <DialogActions>
              <Button type="submit" busy={update.isPending}>
                {update.isPending ? "Saving …" : "Save"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
