import { useMemo, useState } from "react";
import { ConfigurationSection as Section, type NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import { configuration } from "../api/configuration.ts";
import { settingName } from "../administration/setting-names.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { SelectField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { Conflict } from "./conflict.tsx";
import type { ChangeDialogProps } from "./dialog-props.ts";
import { isEditable, isStored, kindOf, KINDS, settingOf } from "./entry-words.ts";
import { describeProblems, readProblems } from "./problems.ts";
import { useChange } from "./use-change.ts";
import { YamlField } from "./yaml-field.tsx";

interface EditEntryProps extends ChangeDialogProps {
  /** The entry as it was when the dialog opened; undefined to add one. */
  readonly target?: NamedEntry;
}

/** Dialog that changes a stored entry as YAML, or adds one. */
export default function EditEntry({ target, list, open, onClose, onSaved }: EditEntryProps) {
  const [exists, setExists] = useState<string>();
  const save = useChange<Written>({
    version: list.latestVersion,
    send: (expectedVersion, form) => {
      const { section, name } = target ?? { section: Number(form.get("section")) as Section, name: form.get("name") };
      const change = { section, name, entry: form.get("entry") };
      return configuration.changeEntries({ expectedVersion, comment: form.get("comment"), changes: [change] });
    },
    onSaved,
  });
  const submit = (form: Written): void => {
    const [section, name] = [Number(form.get("section")) as Section, form.get("name")];
    const isTaken =
      target === undefined &&
      list.entries.some((each) => isStored(each) && each.section === section && each.name === name);
    setExists(isTaken ? "There is a stored entry of this name. Edit that one." : undefined);
    if (!isTaken) save.mutate(form);
  };
  const found = useMemo(() => readProblems(save.error), [save.error]);
  const problems = save.isConflict ? [] : (found?.all ?? []);
  const ofEntry = problems.filter(({ part }) => part === "entry");
  const ofName = describeProblems(problems.filter(({ part }) => part === "name"));
  const others = problems.filter(({ part }) => part !== "entry" && part !== "name");
  const action = target === undefined ? "Add" : "Save";
  const setting = target && settingOf(target);
  return (
    <Dialog
      open={open}
      wide
      title={target === undefined ? "Add entry" : `Edit ${kindOf(target.section).toLowerCase()} ${target.name}`}
      description="YAML, as below the name of the entry in the configuration file. Applied to all replicas within a second; requests in flight are not affected."
      onClose={onClose}
    >
      <Form fields={[]} error={null} onSubmit={submit}>
        {() => (
          <>
            {save.isConflict && <Conflict now={target && textNow(target, list.entries)} action={action} />}
            {found !== undefined && !save.isConflict && (problems.length === 0 || others.length > 0) && (
              <Alert>{describeProblems(others) ?? found.message}</Alert>
            )}
            {target === undefined && (
              <div className="grid gap-4 sm:grid-cols-[1fr_2fr]">
                <SelectField label="Kind" name="section" defaultValue={Section.MODELS}>
                  {KINDS.map(([section, one]) => (
                    <option key={section} value={section}>
                      {one}
                    </option>
                  ))}
                </SelectField>
                <TextField label="Name" name="name" autoComplete="off" spellCheck={false} error={exists ?? ofName} />
              </div>
            )}
            <YamlField
              label="Entry (YAML)"
              name="entry"
              defaultValue={target?.entry}
              rows={setting === undefined ? 10 : 2}
              hint={
                setting &&
                (setting.startsWith("limits.")
                  ? `${settingName(setting)}: a number, or unlimited`
                  : settingName(setting))
              }
              problems={ofEntry}
            />
            <TextField label="Comment (optional)" name="comment" autoComplete="off" hint="For the list of versions." />
            <DialogActions>
              <Button type="submit" busy={save.isPending}>
                {save.isPending ? "Saving …" : action}
              </Button>
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}

/** Returns the current text of the stored entry if it has changed; empty if the entry no longer exists. */
function textNow(target: NamedEntry, entries: readonly NamedEntry[]): string | undefined {
  const same = entries.filter((each) => each.section === target.section && each.name === target.name);
  const now = same.find(isStored) ?? same.find(isEditable);
  return now?.entry === target.entry ? undefined : (now?.entry ?? "");
}
