import { useState } from "react";
import { ConfigurationSection as Section, type NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { configuration } from "../api/configuration.ts";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { CheckField } from "../components/field.tsx";
import { Conflict } from "./conflict.tsx";
import type { EntryDialogProps } from "./dialog-props.ts";
import { isStored, kindOf, providerOf } from "./entry-words.ts";
import { useChange } from "./use-change.ts";

/** Dialog that removes a stored entry; of a provider with the stored models that it serves. */
export default function RemoveEntry({ target, list, open, onClose, onSaved }: EntryDialogProps) {
  const { section, name } = target;
  const kind = kindOf(section).toLowerCase();
  const [withModels, setWithModels] = useState(true);
  const models = section === Section.PROVIDERS ? modelsOf(name, list.entries) : [];
  const remove = useChange({
    version: list.latestVersion,
    send: (expectedVersion) => {
      const gone = [{ section, name }, ...(withModels ? models : [])];
      return configuration.changeEntries({
        expectedVersion,
        changes: gone.map((each) => ({ section: each.section, name: each.name, entry: "" })),
      });
    },
    onSaved,
  });
  const action = `Remove ${kind}`;
  return (
    <ConfirmDialog
      open={open}
      title={`${action}?`}
      description={
        <>
          <bdi className="font-medium text-ink">{name}</bdi>{" "}
          {section === Section.PROVIDERS
            ? "and its API key are removed. Rolling back does not bring the API key back."
            : "is removed from all replicas within a second. You can roll back to the version before."}
        </>
      }
      action={action}
      doing="Removing …"
      act={{
        error: remove.isConflict ? null : remove.error,
        isPending: remove.isPending,
        mutate: () => remove.mutate(),
      }}
      onClose={onClose}
    >
      {remove.isConflict && <Conflict action={action} />}
      {models.length > 0 && (
        <CheckField
          label={
            models.length === 1 ? `Remove its model ${models[0]?.name} too` : `Remove its ${models.length} models too`
          }
          checked={withModels}
          onChange={(event) => setWithModels(event.target.checked)}
        />
      )}
    </ConfirmDialog>
  );
}

/** Returns the stored models of this provider. If it misses one, the service refuses the change and names the model. */
function modelsOf(provider: string, entries: readonly NamedEntry[]): readonly NamedEntry[] {
  return entries.filter(
    (each) =>
      isStored(each) &&
      each.section === Section.MODELS &&
      (each.name === `${provider}/*` || providerOf(each) === provider),
  );
}
