import { useMemo, useState } from "react";
import { useMutation } from "@tanstack/react-query";
import { configuration, refreshConfiguration } from "../api/configuration.ts";
import { Alert } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { Conflict } from "./conflict.tsx";
import type { ChangeDialogProps } from "./dialog-props.ts";
import { describeProblems, readProblems } from "./problems.ts";
import { isConflict, useChange } from "./use-change.ts";
import { YamlField } from "./yaml-field.tsx";

/** Most characters of a document, as the service allows. */
const MAX_CHARS = 256 * 1_024;

/** Dialog that replaces the whole stored configuration, after a check. */
export default function Import({ list, open, onClose, onSaved }: ChangeDialogProps) {
  const [document, setDocument] = useState("");
  const [fileError, setFileError] = useState<string>();
  const check = useMutation({
    mutationFn: (text: string) =>
      configuration.import({ expectedVersion: list.latestVersion, document: text, validateOnly: true }),
    // After a conflict the check can be repeated with the latest version. The replacement still expects the version at which the
    // dialog opened.
    onError: (error) => (isConflict(error) ? refreshConfiguration() : undefined),
  });
  const replace = useChange<string>({
    version: list.latestVersion,
    send: (expectedVersion, comment) => configuration.import({ expectedVersion, document, comment }),
    onSaved,
  });
  const error = replace.error ?? check.error;
  const found = useMemo(() => readProblems(error), [error]);
  const problems = replace.isConflict ? [] : (found?.all ?? []);
  const others = problems.filter(({ part }) => part !== "document");
  const change = (text: string): void => {
    setDocument(text);
    setFileError(undefined);
    check.reset();
    replace.reset();
  };
  const readFile = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    if (file.size > MAX_CHARS) setFileError("The file has more than 256 KiB.");
    else change(await file.text());
  };
  const isChecked = check.isSuccess;
  return (
    <Dialog
      open={open}
      wide
      title="Import configuration"
      description="Replaces the whole stored configuration. API keys of providers that stay are kept; the configuration file is not affected."
      onClose={onClose}
    >
      <Form
        fields={[]}
        error={null}
        onSubmit={(form) => (isChecked ? replace.mutate(form.get("comment")) : check.mutate(document))}
      >
        {() => (
          <>
            {replace.isConflict && <Conflict action="Replace configuration" />}
            {found !== undefined && !replace.isConflict && (problems.length === 0 || others.length > 0) && (
              <Alert>{describeProblems(others) ?? found.message}</Alert>
            )}
            <TextField
              label="File"
              type="file"
              accept=".yaml,.yml,application/yaml"
              error={fileError}
              onChange={(event) => void readFile(event.target.files?.[0])}
            />
            <YamlField
              label="Configuration (YAML)"
              rows={12}
              value={document}
              onChange={(event) => change(event.target.value)}
              hint="The sections providers, models, aliases, timeouts, limits, retries and breaker. Empty: everything is removed."
              problems={problems.filter(({ part }) => part === "document")}
            />
            <div role="status" className="text-sm">
              {isChecked && (
                <div className="space-y-1 rounded-lg bg-good-soft px-4 py-3 wrap-anywhere text-good">
                  <p>Valid. Nothing is changed yet.</p>
                  {check.data.warnings.map((warning) => (
                    <p key={warning}>{warning}</p>
                  ))}
                </div>
              )}
            </div>
            {isChecked && <TextField label="Comment (optional)" name="comment" autoComplete="off" />}
            <DialogActions>
              {isChecked ? (
                <Button type="submit" look="danger" busy={replace.isPending}>
                  {replace.isPending ? "Replacing …" : "Replace configuration"}
                </Button>
              ) : (
                <Button type="submit" busy={check.isPending}>
                  {check.isPending ? "Checking …" : "Check"}
                </Button>
              )}
            </DialogActions>
          </>
        )}
      </Form>
    </Dialog>
  );
}
