import { useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { keys, refreshKeys } from "../api/keys.ts";
import { modelsQuery } from "../api/models.ts";
import { ownerChoices, useOwners } from "../api/owners.ts";
import { useAccount } from "../api/session.ts";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { closeAndReset, Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { AttributionLimits } from "./attribution-limits.tsx";
import { CHOICE_FIELDS, readChoices, STORE_CONTENT } from "./choices.ts";
import { LIFETIMES } from "./lifetimes.ts";
import { Limits } from "./limits.tsx";
import { Permissions } from "./permissions.tsx";
import { StoreContent } from "./store-content.tsx";
import { SecretOnce } from "./secret.tsx";

/** Dialog that creates a key and shows its secret. */
export default function CreateKey({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const create = useMutation({
    mutationFn: async (form: Written) => {
      const lifetimeMs = Number(form.get("lifetime"));
      return keys.create({
        ...readChoices(form),
        accountId: form.get("account_id"),
        ...(lifetimeMs > 0 && { lifetime: durationFromMs(lifetimeMs) }),
      });
    },
    onSuccess: refreshKeys,
  });
  const close = (): void => closeAndReset(onClose, create);
  if (create.data?.key !== undefined) {
    return (
      <SecretOnce open={open} title="API key created" made={{ ...create.data, key: create.data.key }} onDone={close} />
    );
  }
  return (
    <Dialog
      open={open}
      title="Create API key"
      description="Use a separate key per app or person, so you can track and revoke each one."
      onClose={close}
    >
      <Form
        fields={[...CHOICE_FIELDS, "lifetime", "account_id"]}
        error={create.error}
        onSubmit={(form) => create.mutate(form)}
      >
        {(errors) => (
          <>
            <TextField
              label="Name"
              name="name"
              autoComplete="off"
              hint="The app or person that uses the key."
              error={errors("name")}
            />
            <Owner error={errors("account_id")} />
            <SelectField label="Expires" name="lifetime" error={errors("lifetime")}>
              {LIFETIMES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </SelectField>
            <KeyPermissions errors={errors} />
            <Limits errors={errors} />
            <AttributionLimits errors={errors} />
            <StoreContent isOn={false} error={errors(STORE_CONTENT)} />
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

function KeyPermissions({ errors }: { readonly errors: (field: string) => string | undefined }) {
  const { data = [] } = useQuery(modelsQuery);
  return <Permissions models={data} errors={errors} />;
}

/** Field for the owner of the key. Hidden if there is only one account. */
function Owner({ error }: { readonly error: string | undefined }) {
  const account = useAccount();
  const owners = useOwners();
  const [ownerId, setOwnerId] = useState(account.id);
  if (owners.length < 2) return null;
  const writable = owners.filter(({ isWritable }) => isWritable);
  return (
    <Choose
      label="Owner"
      name="account_id"
      error={error}
      value={ownerId}
      choices={ownerChoices(writable, account.id)}
      onChange={setOwnerId}
    />
  );
}
