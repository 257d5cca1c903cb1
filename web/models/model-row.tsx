import {
  AudioLines,
  Braces,
  Brain,
  ChartColumn,
  Eye,
  Image,
  ListTree,
  type LucideIcon,
  Mic,
  Play,
  Shapes,
  Wrench,
} from "lucide-react";
import type { ComponentProps } from "react";
import { Link } from "wouter";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { ModelPrice } from "../../gen/parley/v1/model_pb.js";
import { CopyIcon } from "../components/copy-icon.tsx";
import { HealthBadge } from "../components/health-badge.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting } from "../components/sorting.ts";
import { Cell, ICON_BUTTON, None } from "../components/table.tsx";
import { formatDuration } from "../format/duration.ts";
import { formatShare, healthOf } from "../format/health.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatShort } from "../format/number.ts";
import { formatTime } from "../format/time.ts";
import { ABILITIES, makes } from "./abilities.ts";
import type { SortColumn } from "./sorting.ts";
import { StageBadge } from "./stage-badge.tsx";

/** Grid columns on wide screens. On phones each model is a card. */
const GRID =
  "grid grid-cols-2 gap-x-4 gap-y-3 lg:grid-cols-[minmax(0,1fr)_7.5rem_5.5rem_6rem_6.5rem_5.5rem_10rem_6rem] lg:gap-y-0";

const COLUMNS: readonly SortedColumn<SortColumn>[] = [
  { name: "Model", column: "name" },
  { name: "Capabilities" },
  { name: "Context", column: "context", isRight: true },
  { name: "Input / 1M", column: "input", isRight: true },
  { name: "Output / 1M", column: "output", isRight: true },
  { name: "TTFT", column: "latency", isRight: true },
  { name: "Health", column: "errors", isApart: true },
  { name: "Actions" },
];

/** Classes of a cell with a number. */
const NUMBER = "lg:text-right";

interface ModelHeadProps {
  readonly sorting: Sorting<SortColumn> | undefined;
  readonly onSort: (sorting: Sorting<SortColumn> | undefined) => void;
}

/** Column headers, by which the table is sorted. */
export function ModelHead(props: ModelHeadProps) {
  return <SortedHead columns={COLUMNS} grid={GRID} {...props} />;
}

/** One model of the table. */
export function ModelRow({ model }: { readonly model: Model }) {
  const { id, description, provider, attempts, firstContent, targets } = model;
  const isRoute = targets.length > 0;
  const isEmbedding = makes(model, Modality.EMBEDDING);
  return (
    <div role="row" className={`${GRID} px-5 py-3 hover:bg-sunken lg:min-h-14 lg:items-center lg:py-1.5`}>
      <Cell className="max-lg:col-span-2">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <span className="flex min-w-0 items-center gap-x-1">
            <code className="min-w-0 font-mono font-semibold wrap-anywhere">{id}</code>
            <CopyIcon text={id} what={`the name ${id}`} />
          </span>
          <StageBadge model={model} />
        </div>
        <p className="line-clamp-2 text-xs text-muted lg:line-clamp-1" title={description}>
          {isRoute ? `Served by ${targets.join(", ")}` : <bdi>{provider}</bdi>}
          {description !== "" && (
            <>
              {" · "}
              <bdi>{description}</bdi>
            </>
          )}
        </p>
      </Cell>
      <Cell className="max-lg:col-span-2">
        <Abilities model={model} />
      </Cell>
      <Cell
        label="Context"
        className={NUMBER}
        detail={isEmbedding ? undefined : `${formatShort(model.maxOutputTokens)} output`}
      >
        {formatShort(model.contextWindow)}
        <span className="sr-only"> tokens</span>
      </Cell>
      <PriceCells model={model} isRoute={isRoute} />
      <Cell label="Time to first token" className={NUMBER} {...latencyOf(firstContent, isRoute ? 0n : attempts)} />
      <Cell label="Health" className={APART} detail={isRoute ? undefined : <HealthDetail of={model} />}>
        {isRoute ? <None /> : <HealthBadge of={model} isShort />}
      </Cell>
      <Cell className="max-lg:col-span-2">
        <span className="-mx-1.5 flex">
          <Actions model={model} isRoute={isRoute} isEmbedding={isEmbedding} />
        </span>
      </Cell>
    </div>
  );
}

/** Since when the circuit is open, and the error rate. */
function HealthDetail({ of }: { readonly of: Model }) {
  const { breaker, attempts, failures } = of;
  const start = breaker?.restStartTime;
  const since = healthOf(of) === "circuit open" ? "Since" : "Circuit open since";
  return (
    <>
      {start && (
        <span className="block">
          {since} {formatTime(start)}
        </span>
      )}
      {attempts > 0n && <span className="block">{formatShare(failures, attempts)} errors</span>}
    </>
  );
}

function latencyOf(
  latency: Model["firstContent"],
  attempts: bigint,
): Pick<ComponentProps<typeof Cell>, "children" | "detail"> {
  if (latency === undefined || latency.count === 0n || attempts === 0n) return { children: <None /> };
  const { count, p50Ms, p95Ms } = latency;
  if (count === 1n) return { children: formatDuration(p50Ms), detail: "1 request" };
  return { children: `p50 ${formatDuration(p50Ms)}`, detail: `p95 ${formatDuration(p95Ms)}` };
}

const ICONS: Readonly<Record<string, LucideIcon>> = {
  "Image output": Image,
  "Audio output": AudioLines,
  Embeddings: Shapes,
  Vision: Eye,
  Audio: Mic,
  "Tool calling": Wrench,
  "Structured output": Braces,
  Reasoning: Brain,
};

function Abilities({ model }: { readonly model: Model }) {
  const names = ABILITIES.filter(([, has]) => has(model)).map(([name]) => name);
  if (names.length === 0) return <span className="text-xs text-muted">Text only</span>;
  return (
    <span className="flex flex-wrap gap-1.5">
      {names.map((name) => {
        const Icon = ICONS[name]!;
        return (
          <span key={name} title={name}>
            <Icon aria-hidden className="size-4 text-muted" />
            <span className="sr-only">{name} </span>
          </span>
        );
      })}
    </span>
  );
}

/** Prices of input and output, with those of the cache, of pictures and of long prompts below. */
function PriceCells({ model, isRoute }: { readonly model: Model; readonly isRoute: boolean }) {
  const { price } = model;
  const labels = ["Input per 1M tokens", "Output per 1M tokens"] as const;
  if (price === undefined) {
    const what = isRoute ? "that of the target" : "not configured";
    return labels.map((label) => (
      <Cell key={label} label={label} className={`text-xs text-muted ${NUMBER}`}>
        {what}
      </Cell>
    ));
  }
  const tiers = model.priceTiers.flatMap(({ abovePromptTokens, price: dearer }) =>
    dearer === undefined ? [] : [[`>${formatShort(abovePromptTokens)}:`, dearer] as const],
  );
  const lines = (amount: (of: ModelPrice) => bigint, others: readonly string[]): readonly string[] => [
    ...others,
    ...tiers.map(([above, dearer]) => `${above} ${formatMicroUsd(amount(dearer))}`),
  ];
  const { inputMicroUsdPerMtok: input, cachedInputMicroUsdPerMtok: cached = input } = price;
  const { outputMicroUsdPerMtok: output, imageOutputMicroUsdPerMtok: image = output } = price;
  const inputs = lines((of) => of.inputMicroUsdPerMtok, cached === input ? [] : [`cached ${formatMicroUsd(cached)}`]);
  const outputs = lines(
    (of) => of.outputMicroUsdPerMtok,
    makes(model, Modality.IMAGE) ? [`image ${formatMicroUsd(image)}`] : [],
  );
  return (
    <>
      <Cell label={labels[0]} className={NUMBER} detail={<Lines of={inputs} />}>
        {formatMicroUsd(input)}
      </Cell>
      <Cell label={labels[1]} className={NUMBER} detail={<Lines of={outputs} />}>
        {makes(model, Modality.EMBEDDING) ? <None /> : formatMicroUsd(output)}
      </Cell>
    </>
  );
}

function Lines({ of }: { readonly of: readonly string[] }) {
  return of.map((line) => (
    <span key={line} className="block">
      {line}
    </span>
  ));
}

interface ActionsProps {
  readonly model: Model;
  readonly isRoute: boolean;
  readonly isEmbedding: boolean;
}

function Actions({ model: { id }, isRoute, isEmbedding }: ActionsProps) {
  const query = `?model=${encodeURIComponent(id)}`;
  const links: readonly (readonly [label: string, to: string, Icon: LucideIcon])[] = [
    ...(isEmbedding ? [] : [[`Try it: ${id}`, `/playground${query}`, Play] as const]),
    [`Requests for ${id}`, `/requests${query}`, ListTree],
    // Usage is counted for the served model, so a route has none.
    ...(isRoute ? [] : [[`Usage for ${id}`, `/usage${query}`, ChartColumn] as const]),
  ];
  return links.map(([label, to, Icon]) => (
    <Link key={to} href={to} aria-label={label} title={label} className={ICON_BUTTON}>
      <Icon aria-hidden className="size-4" />
    </Link>
  ));
}
