import { useMemo, useState } from "react";
import { CredentialState } from "../../gen/parley/console/v1/configuration_pb.js";
import { configuration } from "../api/configuration.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { Conflict } from "./conflict.tsx";
import type { EntryDialogProps } from "./dialog-props.ts";
import { describeCredential } from "./entry-words.ts";
import { describeProblems, readProblems } from "./problems.ts";
import { useChange } from "./use-change.ts";

/** Dialog that replaces the credential of a stored provider, or removes it. */
export default function Credential({ target, list, open, onClose, onSaved }: EntryDialogProps) {
  const { section, name, credential } = target;
  const [isRemoving, setRemoving] = useState(false);
  const change = useChange<string | undefined>({
    version: list.latestVersion,
    send: (expectedVersion, apiKey) =>
      configuration.changeEntries({
        expectedVersion,
        changes: [{ section, name, ...(apiKey === undefined ? { removeCredential: true } : { apiKeys: [apiKey] }) }],
      }),
    onSaved,
  });
  const found = useMemo(() => readProblems(change.error), [change.error]);
  const problem = describeProblems((found?.all ?? []).filter(({ part }) => part === "api_keys"));
  const action = "Save API key";
  if (isRemoving) {
    return (
      <ConfirmDialog
        open={open}
        title="Remove API key?"
        description={
          <>
            New requests to <bdi className="font-medium text-ink">{name}</bdi> have no API key, and fail if it needs
            one. Revoke the key at the provider too, if nothing else uses it.
          </>
        }
        action="Remove API key"
        doing="Removing …"
        act={{
          error: change.isConflict ? null : change.error,
          isPending: change.isPending,
          mutate: () => change.mutate(undefined),
        }}
        onClose={onClose}
      >
        {change.isConflict && <Conflict action="Remove API key" />}
      </ConfirmDialog>
    );
  }
  return (
    <Dialog
      open={open}
      title={`API key of ${name}`}
      description={`${describeCredential(credential)}. It is encrypted and never shown again.`}
      onClose={onClose}
    >
      <Form fields={[]} error={null} onSubmit={(form) => change.mutate(form.get("secret"))}>
        {() => (
          <>
            {change.isConflict && <Conflict action={action} />}
            {found !== undefined && !change.isConflict && problem === undefined && <Alert>{found.message}</Alert>}
            <TextField
              label="New API key"
              name="secret"
              type="password"
              autoComplete="off"
              hint="Replaces the current one."
              error={problem}
            />
            <DialogActions>
              {credential !== undefined && credential.state !== CredentialState.MISSING && (
                <Button look="quiet danger" onClick={() => setRemoving(true)}>
                  Remove …
                </Button>
              )}
              <Button type="submit" busy={change.isPending}>
                {change.isPending ? "Saving …" : action}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
