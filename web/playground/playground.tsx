import { useEffect } from "react";
import { useQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { type Key, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import type { ModelSetting } from "../../gen/parley/console/v1/settings_pb.js";
import { keysQuery } from "../api/keys.ts";
import { useOwners } from "../api/owners.ts";
import { settingsQuery } from "../api/settings.ts";
import { Unavailable } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { Composer } from "./composer.tsx";
import { Conversation } from "./conversation.tsx";
import { Inspector } from "./inspector.tsx";
import { Settings } from "./settings.tsx";
import { resolveSetup } from "./setup.ts";
import { useWorkspace, workspace } from "./workspace.ts";

/** Page to try a model with one of the account's own keys. */
export default function Playground() {
  return (
    <Page
      isWide
      title="Playground"
      description="Try a model with one of your API keys. The key’s permissions, limits and budget apply."
    >
      <Content />
    </Page>
  );
}

function Content() {
  const keys = useQuery(keysQuery);
  const settings = useQuery(settingsQuery);
  const owners = useOwners();
  if (keys.isPending || settings.isPending) return <Loading what="the keys and models" />;
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
  return <Workbench keys={[first, ...others]} models={models} />;
}

interface WorkbenchProps {
  readonly keys: readonly [Key, ...Key[]];
  readonly models: readonly ModelSetting[];
}

function Workbench({ keys, models }: WorkbenchProps) {
  const draft = useWorkspace((state) => state.draft);
  const [search, setSearch] = useSearchParams();
  const linked = search.get("model") ?? "";
  useEffect(() => {
    if (linked !== "") workspace.draft({ chosenModel: linked, chosenKeyId: "" });
  }, [linked]);
  const { key, usable, model, notice } = resolveSetup({ keys, models, draft });
  const [keyId, modelId, makesImages] = [key.id, model?.id ?? "", model?.images === true];
  // Updates the draft to the displayed key and model, which differ from the selection if that is missing or no longer
  // usable.
  useEffect(() => {
    if (keyId !== draft.keyId || modelId !== draft.model) workspace.draft({ keyId, model: modelId });
    if (!makesImages && draft.parameters.modalities === "image") workspace.parameter("modalities", "");
  }, [keyId, modelId, makesImages, draft]);
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[17rem_minmax(0,1fr)]">
      <Settings
        keys={keys}
        current={key}
        models={usable}
        model={model}
        notice={notice}
        onModel={(id) => setSearch({ model: id }, { replace: true })}
      />
      <div className="min-w-0 space-y-4">
        <Conversation />
        <Composer />
        <Inspector />
      </div>
    </div>
  );
}
