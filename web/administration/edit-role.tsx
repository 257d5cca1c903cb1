import { useMutation } from "@tanstack/react-query";
import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";
import type { CustomRole } from "../../gen/parley/console/v1/role_pb.js";
import { refreshRoles, roles } from "../api/roles.ts";
import { usePermissions } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { PermissionFields } from "./permission-fields.tsx";

interface EditRoleProps {
  /** Undefined for a new role. */
  readonly target: CustomRole | undefined;
  readonly open: boolean;
  readonly onClose: () => void;
}

/** Dialog that creates or changes a role. */
export default function EditRole({ target, open, onClose }: EditRoleProps) {
  const permissions = usePermissions();
  const save = useMutation({
    mutationFn: async (form: Written) => {
      const base: AccountRole = Number(form.get("base"));
      const role = { name: form.get("name"), permissions: form.all("permissions"), base };
      return target === undefined ? roles.create(role) : roles.update({ ...role, id: target.id });
    },
    async onSuccess() {
      onClose();
      await refreshRoles();
    },
  });
  return (
    <Dialog
      open={open}
      wide
      title={target === undefined ? "Create role" : "Edit role"}
      description={target && "Applies at once to everybody who has the role."}
      onClose={onClose}
    >
      <Form fields={["name", "base", "permissions"]} error={save.error} onSubmit={(form) => save.mutate(form)}>
        {(errors) => (
          <>
            <TextField label="Name" name="name" autoComplete="off" defaultValue={target?.name} error={errors("name")} />
            <SelectField
              label="In the account itself and in its teams"
              name="base"
              defaultValue={target?.base ?? AccountRole.DEVELOPER}
              error={errors("base")}
            >
              <option value={AccountRole.DEVELOPER}>As a developer</option>
              <option value={AccountRole.VIEWER}>As a viewer</option>
            </SelectField>
            <PermissionFields
              label="In all accounts, and for the installation"
              permissions={permissions}
              chosen={target?.permissions}
              hint="You can grant only permissions that you have."
              error={errors("permissions")}
            />
            <DialogActions>
              <Button type="submit" busy={save.isPending}>
                {save.isPending ? "Saving …" : "Save"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
