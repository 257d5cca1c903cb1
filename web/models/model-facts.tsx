import { useQuery } from "@tanstack/react-query";
import { ConfigurationSection, type NamedEntry } from "../../gen/parley/console/v1/configuration_pb.js";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { entriesQuery } from "../api/configuration.ts";
import { routingQuery } from "../api/routing.ts";
import { useMay } from "../api/session.ts";
import { Badge } from "../components/badge.tsx";
import { CopyIcon } from "../components/copy-icon.tsx";
import { Fact } from "../components/fact.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatCount } from "../format/number.ts";
import { modelPath, PATHS } from "../paths.ts";
import { ABILITIES } from "./abilities.ts";
import { describeStage } from "./stage.ts";

const MODALITY_NAMES: Readonly<Partial<Record<Modality, string>>> = {
  [Modality.TEXT]: "text",
  [Modality.IMAGE]: "images",
  [Modality.AUDIO]: "audio",
  [Modality.VIDEO]: "video",
  [Modality.FILE]: "documents",
  [Modality.EMBEDDING]: "embeddings",
};

interface ModelFactsProps {
  readonly model: Model;
  readonly all: readonly Model[];
}

/** What a model can do, its limits and its names. */
export function ModelFacts({ model, all }: ModelFactsProps) {
  const { id, provider, inputModalities, outputModalities, contextWindow, maxOutputTokens } = model;
  const abilities = ABILITIES.filter(([, has]) => has(model)).map(([name]) => name);
  const routes = all.filter((each) => each.targets.includes(id));
  return (
    <dl className="grid gap-x-6 gap-y-4 text-sm sm:grid-cols-2">
      <Fact name="Name in requests">
        <span className="flex items-center gap-x-1.5">
          <code className="min-w-0 font-mono wrap-anywhere">{id}</code>
          <CopyIcon text={id} what={`the name ${id}`} />
        </span>
      </Fact>
      <Fact name="Provider">{provider === "" ? "Those of its targets" : <bdi>{provider}</bdi>}</Fact>
      <Fact name="Input">{namesOf(inputModalities)}</Fact>
      <Fact name="Output">{namesOf(outputModalities)}</Fact>
      <Fact name="Context window">{describeTokens(contextWindow)}</Fact>
      <Fact name="Max output">{describeTokens(maxOutputTokens)}</Fact>
      <Fact name="Capabilities">{abilities.length === 0 ? "Text only" : <Badges names={abilities} />}</Fact>
      <Fact name="Stage">{describeStage(model) ?? "Stable"}</Fact>
      {routes.length > 0 && (
        <Fact name="Target of">
          <Links ids={routes.map((route) => route.id)} />
        </Fact>
      )}
      <Aliases id={id} />
      <OwnAliases id={id} />
    </dl>
  );
}

function namesOf(modalities: readonly Modality[]): string {
  return modalities.map((modality) => MODALITY_NAMES[modality] ?? "others").join(", ") || "Those of its targets";
}

function describeTokens(tokens: number): string {
  return tokens === 0 ? "–" : `${formatCount(tokens)} tokens`;
}

function Badges({ names }: { readonly names: readonly string[] }) {
  return (
    <span className="flex flex-wrap gap-1.5">
      {names.map((name) => (
        <Badge key={name} look="plain">
          {name}
        </Badge>
      ))}
    </span>
  );
}

/** Links to models. */
export function Links({ ids }: { readonly ids: readonly string[] }) {
  return (
    <ul>
      {ids.map((id) => (
        <li key={id}>
          <TextLink to={modelPath(id)}>{id}</TextLink>
        </li>
      ))}
    </ul>
  );
}

/** Aliases of the configuration for the model, for administrators. */
function Aliases({ id }: { readonly id: string }) {
  const mayRead = useMay("configuration.read");
  const { data } = useQuery({ ...entriesQuery, enabled: mayRead });
  const isAlias = ({ section, entry }: NamedEntry): boolean =>
    section === ConfigurationSection.ALIASES && entry.trim().replaceAll(/^["']|["']$/g, "") === id;
  const names = data?.entries.filter(isAlias).map(({ name }) => name) ?? [];
  return names.length === 0 ? null : <Fact name="Aliases">{names.join(", ")}</Fact>;
}

/** Aliases of the signed-in account for the model. */
function OwnAliases({ id }: { readonly id: string }) {
  const { data } = useQuery(routingQuery);
  const names = data?.aliases.flatMap(({ name, model }) => (model === id ? [name] : [])) ?? [];
  if (names.length === 0) return null;
  return (
    <Fact name="Your aliases">
      {names.join(", ")} · <TextLink to={PATHS.account}>Change</TextLink>
    </Fact>
  );
}
