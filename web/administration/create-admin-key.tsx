import { useMutation } from "@tanstack/react-query";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { adminKeys, refreshAdminKeys } from "../api/admin-keys.ts";
import { usePermissions } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { closeAndReset, Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { ShownOnce } from "../components/shown-once.tsx";
import { LIFETIMES } from "../keys/lifetimes.ts";
import { PermissionFields } from "./permission-fields.tsx";

/** Dialog that creates an administration key and shows its secret. */
export default function CreateAdminKey({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const permissions = usePermissions();
  const create = useMutation({
    mutationFn: (form: Written) => {
      const lifetimeMs = Number(form.get("lifetime"));
      return adminKeys.create({
        name: form.get("name"),
        permissions: form.all("permissions"),
        ...(lifetimeMs > 0 && { lifetime: durationFromMs(lifetimeMs) }),
      });
    },
    onSuccess: refreshAdminKeys,
  });
  const close = (): void => closeAndReset(onClose, create);
  if (create.data !== undefined)
    return (
      <ShownOnce
        open={open}
        title="Administration key created"
        description="Copy the key now. It is shown only once."
        secret={create.data.secret}
        onDone={close}
      />
    );
  return (
    <Dialog
      open={open}
      wide
      title="Create administration key"
      description="For Terraform and scripts. It acts as your account, with no more than the permissions chosen here."
      onClose={close}
    >
      <Form fields={["name", "lifetime", "permissions"]} error={create.error} onSubmit={(form) => create.mutate(form)}>
        {(errors) => (
          <>
            <TextField
              label="Name"
              name="name"
              autoComplete="off"
              hint="The program that uses the key."
              error={errors("name")}
            />
            <SelectField label="Expires" name="lifetime" error={errors("lifetime")}>
              {LIFETIMES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </SelectField>
            <PermissionFields
              label="Permissions"
              permissions={permissions}
              hint="A permission removed from your role is removed from the key at once."
              error={errors("permissions")}
            />
            <DialogActions>
              <Button type="submit" busy={create.isPending}>
                {create.isPending ? "Creating …" : "Create key"}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
