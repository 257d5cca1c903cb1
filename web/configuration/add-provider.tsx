import { useMemo, useRef, useState } from "react";
import { useMutation, useQuery } from "@tanstack/react-query";
import {
  ConfigurationSection as Section,
  type OfferedModel,
  type ProviderPreset,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { configuration, presetsQuery } from "../api/configuration.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { Form, Written } from "../components/form.tsx";
import { Loading } from "../components/page.tsx";
import { Conflict } from "./conflict.tsx";
import type { ChangeDialogProps } from "./dialog-props.ts";
import { ModelChoice, type WhichModels } from "./model-choice.tsx";
import { type Problem, readProblems } from "./problems.ts";
import {
  type ChosenModel,
  type Entry,
  fieldOfProblem,
  type ProviderDraft,
  providerEntry,
  toChanges,
} from "./provider-draft.ts";
import { ProviderFields } from "./provider-fields.tsx";
import { TestResult } from "./test-result.tsx";
import { useChange } from "./use-change.ts";

/** Dialog that adds a provider with its credential and models, in one change. */
export default function AddProvider({ list, open, onClose, onSaved }: ChangeDialogProps) {
  const presets = useQuery(presetsQuery);
  return (
    <Dialog
      open={open}
      wide
      title="Add provider"
      description="A service or server that Parley sends requests to. Changes apply to all replicas within a second."
      onClose={onClose}
    >
      {presets.isPending ? (
        <Loading what="the services" shape="lines" />
      ) : presets.isLoadingError ? (
        <Unavailable error={presets.error} onRetry={() => void presets.refetch()} />
      ) : (
        <ProviderForm list={list} presets={presets.data ?? []} onSaved={onSaved} />
      )}
    </Dialog>
  );
}

interface ProviderFormProps extends Pick<ChangeDialogProps, "list" | "onSaved"> {
  readonly presets: readonly ProviderPreset[];
}

/** Values of the form, and the entry as sent to the service. */
interface Sent {
  readonly draft: ProviderDraft;
  readonly apiKey: string;
  readonly entry: Entry;
}

function ProviderForm({ list, presets, onSaved }: ProviderFormProps) {
  const fields = useRef<HTMLDivElement>(null);
  const [which, setWhich] = useState<WhichModels>("chosen");
  const [chosen, setChosen] = useState<readonly ChosenModel[]>([]);
  const [offered, setOffered] = useState<readonly OfferedModel[]>();
  const [sent, setSent] = useState<Sent>();
  const [isTaken, setTaken] = useState(false);
  const test = useMutation({
    mutationFn: async ({ draft, apiKey, entry }: Sent) => {
      const model = which === "chosen" ? (chosen[0]?.name ?? "") : "";
      const apiKeys = apiKey === "" ? [] : [apiKey];
      const response = await configuration.testProvider({
        name: draft.name,
        entry: entry.text,
        apiKeys,
        upstreamModel: model,
      });
      return { response, model };
    },
    onSuccess: ({ response }) => setOffered(response.models),
  });
  const save = useChange<Sent>({
    version: list.latestVersion,
    send: (expectedVersion, { draft, apiKey }) =>
      configuration.changeEntries({
        expectedVersion,
        comment: `add provider ${draft.name}`,
        changes: toChanges(draft, apiKey, which === "all" ? "all" : chosen),
      }),
    onSaved,
  });
  const taken = new Set(list.entries.filter(({ section }) => section === Section.PROVIDERS).map(({ name }) => name));
  const begin = (form: Written): Sent | undefined => {
    const draft = readDraft(form);
    const next = { draft, apiKey: form.get("api_key").trim(), entry: providerEntry(draft) };
    setSent(next);
    save.reset();
    if (test.isError) test.reset();
    setTaken(taken.has(draft.name));
    return taken.has(draft.name) ? undefined : next;
  };
  const submit = (form: Written): void => {
    const next = begin(form);
    if (next !== undefined) save.mutate(next);
  };
  const startTest = (): void => {
    const next = begin(new Written(fields.current!.closest("form")!));
    if (next !== undefined) test.mutate(next);
  };
  const found = useMemo(() => readProblems(save.error ?? test.error), [save.error, test.error]);
  const problems = save.isConflict ? [] : (found?.all ?? []);
  const at = (field: string): readonly Problem[] =>
    problems.filter((each) => each.index === 0 && sent !== undefined && fieldOfProblem(each, sent.entry) === field);
  const errorOf = (field: string): string | undefined =>
    field === "name" && isTaken
      ? "There is a provider of this name. Choose another name, or edit that one."
      : textOf(at(field));
  const others = at("");
  const action = "Save provider";
  return (
    <Form fields={[]} error={null} onSubmit={submit}>
      {() => (
        <div ref={fields} className="space-y-5">
          <ProviderFields
            presets={presets}
            allowsPrivate={list.allowsPrivate}
            errorOf={errorOf}
            moreProblems={at("more")}
            taken={taken}
          />
          <div className="flex flex-wrap items-start gap-x-4 gap-y-2 text-sm">
            <Button look="secondary" busy={test.isPending} onClick={startTest}>
              {test.isPending ? "Testing …" : "Test connection"}
            </Button>
            <div role="status" className="min-w-0 flex-1 basis-60 self-center text-muted">
              {test.isSuccess ? (
                <TestResult of={test.data.response} model={test.data.model} />
              ) : (
                "Asks for its list of models, and the first chosen model for one token."
              )}
            </div>
          </div>
          <ModelChoice
            offered={offered}
            which={which}
            chosen={chosen}
            errorOf={(index) => textOf(problems.filter((each) => each.index === index + 1))}
            onWhich={setWhich}
            onChoose={setChosen}
          />
          {save.isConflict && <Conflict action={action} />}
          {found !== undefined && !save.isConflict && (problems.length === 0 || others.length > 0) && (
            <Alert>{textOf(others) ?? found.message}</Alert>
          )}
          <DialogActions>
            <Button type="submit" busy={save.isPending}>
              {save.isPending ? "Saving …" : action}
            </Button>
          </DialogActions>
        </div>
      )}
    </Form>
  );
}

/** Joins the descriptions of problems without line and column, because the form does not show the text that it sends. */
function textOf(problems: readonly Problem[]): string | undefined {
  return problems.map(({ text }) => text).join("\n") || undefined;
}

function readDraft(form: Written): ProviderDraft {
  return {
    name: form.get("name").trim(),
    preset: form.get("preset"),
    dialect: form.get("dialect"),
    baseUrl: form.get("base_url"),
    isPrivate: form.get("private") !== "",
    more: form.get("more"),
  };
}
