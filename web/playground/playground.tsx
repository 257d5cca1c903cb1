import { useEffect, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { SlidersHorizontal } from "lucide-react";
import { Link, useSearchParams } from "wouter";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { keysQuery } from "../api/keys.ts";
import { useOwners } from "../api/owners.ts";
import { settingsQuery } from "../api/settings.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button, buttonClass } from "../components/button.tsx";
import { SelectField } from "../components/field.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { Comparison } from "./comparison.tsx";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { Inspector } from "./inspector.tsx";
import { Settings } from "./settings.tsx";
import { resolveSetup } from "./setup.ts";
import { MAX_COMPARED, ThreadContext, useWorkspace, workspace } from "./workspace.ts";

/** Page to try a model with one of the account's own keys. */
export default function Playground() {
  const [isShown, setShown] = useState(true);
  return (
    <Page
      isWide
      title="Playground"
      description="Try a model with one of your API keys. The key’s permissions, limits and budget apply."
      actions={
        <Button
          look="secondary"
          size="small"
          className="max-lg:hidden"
          aria-expanded={isShown}
          onClick={() => setShown(!isShown)}
        >
          <SlidersHorizontal aria-hidden className="size-4" />
          {isShown ? "Hide settings" : "Show settings"}
        </Button>
      }
    >
      <Content isShown={isShown} />
    </Page>
  );
}

/** `isShown`: the settings are beside the conversation. On narrow screens they are below it. */
function Content({ isShown }: { readonly isShown: boolean }) {
  const keys = useQuery(keysQuery);
  const settings = useQuery(settingsQuery);
  const owners = useOwners();
  if (keys.isPending || settings.isPending) return <Loading what="the keys and models" shape="columns" />;
  if (keys.isLoadingError) return <Unavailable error={keys.error} onRetry={() => void keys.refetch()} />;
  if (settings.isLoadingError) return <Unavailable error={settings.error} onRetry={() => void settings.refetch()} />;
  const playable = new Set(owners.filter(({ isPlayable }) => isPlayable).map(({ id }) => id));
  const own = keys.data.filter(({ accountId, state }) => playable.has(accountId) && state === KeyState.ACTIVE);
  const [first, ...others] = own;
  if (first === undefined) {
    return (
      <Empty title="No active key">
        <p>The playground sends requests with one of your API keys.</p>
        <Link href={PATHS.keys} className={`mt-5 ${buttonClass("primary")}`}>
          Create a key
        </Link>
      </Empty>
    );
  }
  const models = settings.data.models.filter(({ embeddings }) => !embeddings);
  return <Workbench keys={[first, ...others]} models={models} isShown={isShown} />;
}

interface WorkbenchProps {
  readonly keys: readonly [Key, ...Key[]];
  readonly models: readonly ModelSetting[];
  readonly isShown: boolean;
}

function Workbench({ keys, models, isShown }: WorkbenchProps) {
  const draft = useWorkspace((state) => state.draft);
  const isCompared = useWorkspace((state) => state.threads.length > 1);
  const choose = useAddress();
  const { key, usable, model, notice } = resolveSetup({ keys, models, draft });
  const [keyId, modelId, makesImages] = [key.id, model?.id ?? "", model?.images === true];
  // Updates the draft to the displayed key and model, which differ from the selection if that is missing or no longer
  // usable.
  useEffect(() => {
    if (keyId !== draft.keyId || modelId !== draft.model) workspace.draft({ keyId, model: modelId });
    if (!makesImages && draft.parameters.modalities === "image") workspace.parameter("modalities", "");
  }, [keyId, modelId, makesImages, draft]);
  const onCompare = (compared: readonly string[]): void => choose(draft.chosenModel || modelId, compared);
  return (
    <div className={`grid items-start gap-6 ${isShown ? "lg:grid-cols-[minmax(0,1fr)_19rem]" : ""}`}>
      <div className="min-w-0 space-y-4">
        {isCompared ? (
          <Comparison
            onCompare={onCompare}
            onContinue={(threadId) => {
              workspace.continueWith(threadId);
              choose(workspace.state.draft.chosenModel || modelId, []);
            }}
          />
        ) : (
          <Conversation />
        )}
        <Composer />
        <Inspectors />
      </div>
      <div className={isShown ? "" : "lg:hidden"}>
        <Settings
          keys={keys}
          current={key}
          models={usable}
          model={model}
          notice={notice}
          onModel={(id) =>
            choose(
              id,
              comparedModels().filter((other) => other !== id),
            )
          }
          onCompare={onCompare}
        />
      </div>
    </div>
  );
}

/**
 * Applies the models of the URL, which are the selected models even if the key may not use them. Returns a function to
 * change the URL.
 */
function useAddress(): (model: string, compared: readonly string[]) => void {
  const [search, setSearch] = useSearchParams();
  const linked = search.get("model") ?? "";
  const compared = search.getAll("compare").join("\n");
  useEffect(() => {
    if (linked === "") {
      // A URL without models, from the navigation: the workspace has the earlier selection.
      const { chosenModel } = workspace.state.draft;
      if (chosenModel !== "") setSearch(toQuery(chosenModel, comparedModels()), { replace: true });
      return;
    }
    if (linked !== workspace.state.draft.chosenModel) workspace.draft({ chosenModel: linked, chosenKeyId: "" });
    const others = new Set(compared.split("\n").filter((id) => id !== "" && id !== linked));
    workspace.compare([...others].slice(0, MAX_COMPARED));
  }, [linked, compared, setSearch]);
  return (model, others) => setSearch(toQuery(model, others), { replace: true });
}

function toQuery(model: string, compared: readonly string[]): URLSearchParams {
  return new URLSearchParams([["model", model], ...compared.map((id) => ["compare", id])]);
}

function comparedModels(): readonly string[] {
  return workspace.state.threads.slice(1).map(({ model }) => model);
}

/** Details of the latest answer, of one model of a comparison. */
function Inspectors() {
  const threads = useWorkspace((state) => state.threads);
  const first = useWorkspace((state) => state.draft.model);
  const [chosen, setChosen] = useState(0);
  const shown = threads.find(({ id }) => id === chosen) ?? threads[0];
  if (threads.every(({ run }) => run === undefined)) return null;
  return (
    <>
      {threads.length > 1 && (
        <div className="max-w-xs">
          <SelectField
            label="Details of the answer of"
            value={shown.id}
            onChange={(event) => setChosen(Number(event.target.value))}
          >
            {threads.map(({ id, model }) => (
              <option key={id} value={id}>
                {model || first}
              </option>
            ))}
          </SelectField>
        </div>
      )}
      <ThreadContext value={shown.id}>
        <Inspector />
      </ThreadContext>
    </>
  );
}
