import { useMutation, useQuery } from "@tanstack/react-query";
import type { Key } from "../../gen/parley/console/v1/key_pb.js";
import { keys, refreshKeys } from "../api/keys.ts";
import { modelsQuery } from "../api/models.ts";
import { useMay } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { notify } from "../components/notify.ts";
import { AttributionLimits } from "./attribution-limits.tsx";
import { changesModels, CHOICE_FIELDS, readChoices, STORE_CONTENT } from "./choices.ts";
import type { KeyDialogProps } from "./dialog-props.ts";
import { Limits } from "./limits.tsx";
import { StoreContent } from "./store-content.tsx";
import { Permissions } from "./permissions.tsx";

/** Dialog that changes the name, permissions and limits of a key. */
export default function EditKey({ target, open, onClose }: KeyDialogProps) {
  const mayRestrict = useMay("keys.restrict");
  const isLocked = target.limitedByAdministrator && !mayRestrict;
  const update = useMutation({
    mutationFn: async ({ key, form }: { readonly key: Key; readonly form: Written }) => {
      if (isLocked) return keys.update({ id: key.id, name: form.get("name") });
      const { models, storeContent = key.storeContent, ...others } = readChoices(form);
      return keys.update({
        id: key.id,
        ...others,
        ...(changesModels(models, key) && { models }),
        ...(storeContent !== key.storeContent && { storeContent }),
      });
    },
    async onSuccess() {
      await refreshKeys();
      notify("Key saved.");
      onClose();
    },
  });
  const { data: models = [] } = useQuery(modelsQuery);
  return (
    <Dialog
      open={open}
      title="Edit key"
      description="Changes apply to new requests. Streams in flight that the key no longer permits are cancelled."
      onClose={onClose}
    >
      <Form fields={CHOICE_FIELDS} error={update.error} onSubmit={(form) => update.mutate({ key: target, form })}>
        {(errors) => (
          <>
            <TextField label="Name" name="name" autoComplete="off" defaultValue={target.name} error={errors("name")} />
            {isLocked && (
              <p id="locked" className="text-sm text-muted">
                Locked by an administrator. Only administrators can change its permissions and limits.
              </p>
            )}
            <fieldset disabled={isLocked} aria-describedby={isLocked ? "locked" : undefined} className="space-y-5">
              <Permissions models={models} current={target} errors={errors} />
              <Limits current={target.limits} errors={errors} />
              <AttributionLimits current={target.attributionLimits} errors={errors} />
              <StoreContent isOn={target.storeContent} error={errors(STORE_CONTENT)} />
            </fieldset>
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
