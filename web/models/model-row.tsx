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
import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { ModelPrice } from "../../gen/parley/v1/model_pb.js";
import { CopyIcon } from "../components/copy-icon.tsx";
import { HealthBadge } from "../components/health-badge.tsx";
import { type RowAction, RowActions } from "../components/row-actions.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting } from "../components/sorting.ts";
import { Cell, None, OnPhones } from "../components/table.tsx";
import { formatDuration } from "../format/duration.ts";
import { formatShare, healthOf } from "../format/health.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatPercent, formatShort } from "../format/number.ts";
import { formatTime } from "../format/time.ts";
import { modelPath, PATHS } from "../paths.ts";
import { ABILITIES, makes } from "./abilities.ts";
import type { SortColumn } from "./sorting.ts";
import { StageBadge } from "./stage-badge.tsx";

/** Grid columns on wide screens, where a model is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_1.5rem] gap-x-3 px-4 lg:grid-cols-[minmax(0,1fr)_7.5rem_4.5rem_5.5rem_5.5rem_4.5rem_9.5rem_1.5rem] lg:px-5 wide:grid-cols-[minmax(0,1fr)_8rem_4.5rem_6rem_6rem_5rem_10rem_5.5rem] 2xl:grid-cols-[minmax(0,1fr)_minmax(0,9rem)_8rem_4.5rem_6rem_6rem_5rem_10rem_5.5rem]";

/** Classes of a column that only large windows have room for; others have the provider beside the name. */
const ROOMY = "max-2xl:hidden";

/** Column headers. */
export const MODEL_COLUMNS: readonly SortedColumn<SortColumn>[] = [
  { name: "Model", column: "name" },
  { name: "Provider", column: "provider", className: ROOMY },
  { name: "Capabilities" },
  { name: "Context", column: "context", isHighestFirst: true, isRight: true },
  { name: "Input / 1M", column: "input", isRight: true },
  { name: "Output / 1M", column: "output", isRight: true },
  { name: "TTFT", title: "Time to first token, median", column: "latency", isRight: true },
  { name: "Health", title: "Health, by the error rate", column: "errors", isHighestFirst: true, isApart: true },
  { name: "Actions" },
];

/** Classes of a cell with a number, in a column that phones have no room for. */
const NUMBER = "text-right whitespace-nowrap max-lg:hidden";

interface ModelHeadProps {
  readonly sorting: Sorting<SortColumn> | undefined;
  readonly onSort: (sorting: Sorting<SortColumn> | undefined) => void;
}

/** Column headers, by which the table is sorted. */
export function ModelHead(props: ModelHeadProps) {
  return <SortedHead columns={MODEL_COLUMNS} grid={GRID} {...props} />;
}

/** One model of the table. */
export function ModelRow({ model }: { readonly model: Model }) {
  const { id, description, provider, attempts, firstContent, targets } = model;
  const isRoute = targets.length > 0;
  const isEmbedding = makes(model, Modality.EMBEDDING);
  const about = isRoute ? [`Served by ${targets.join(", ")}`, description].filter(Boolean).join(" · ") : description;
  return (
    <div role="row" className={`${GRID} py-2 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
      <Cell className="flex h-6 flex-wrap items-center gap-x-2 overflow-hidden">
        <span className="flex max-w-full min-w-0 items-center gap-x-1.5">
          <Link href={modelPath(id)} title={`${id}\n${about}`} className="truncate hover:text-accent hover:underline">
            <code className="font-mono text-[0.8125rem] font-medium">{id}</code>
          </Link>
          <CopyIcon text={id} what={`the name ${id}`} />
          <StageBadge model={model} />
        </span>
        {/* Wraps out of sight where the name leaves no room. */}
        <span className="min-w-0 flex-1 basis-20 truncate text-xs text-muted max-lg:sr-only" title={about}>
          {provider !== "" && (
            <span className="2xl:hidden">
              <bdi>{provider}</bdi>
              {about !== "" && " · "}
            </span>
          )}
          <bdi>{about}</bdi>
        </span>
      </Cell>
      <Cell className={`truncate text-muted ${ROOMY}`} title={provider}>
        {provider === "" ? <None /> : <bdi>{provider}</bdi>}
      </Cell>
      <Cell className="max-lg:order-3">
        <Abilities model={model} />
      </Cell>
      <Cell className={NUMBER}>
        <Detailed details={isEmbedding ? [] : [`${formatShort(model.maxOutputTokens)} output`]}>
          {formatShort(model.contextWindow)}
          <span className="sr-only"> tokens</span>
        </Detailed>
      </Cell>
      <PriceCells model={model} isRoute={isRoute} />
      <Cell className={NUMBER}>
        <TimeToFirstToken latency={firstContent} attempts={isRoute ? 0n : attempts} />
      </Cell>
      <Cell className={`flex items-center gap-x-2 whitespace-nowrap max-lg:justify-end ${APART}`}>
        {isRoute ? <None /> : <Health of={model} />}
      </Cell>
      <Cell className="max-lg:order-2 max-lg:row-span-2 max-lg:self-center">
        <RowActions of={id} actions={actionsOn(model, { isRoute, isEmbedding })} />
      </Cell>
    </div>
  );
}

/** A value whose details are shown on hover. */
function Detailed({ details, children }: { readonly details: readonly string[]; readonly children: ReactNode }) {
  if (details.length === 0) return children;
  return (
    <abbr title={details.join("\n")} className="decoration-line underline-offset-4">
      {children}
      <span className="sr-only"> {details.join(", ")}</span>
    </abbr>
  );
}

/** State of the circuit, and the share of failed attempts. */
function Health({ of }: { readonly of: Model }) {
  const { breaker, attempts, failures } = of;
  const start = breaker?.restStartTime;
  const since = start && `${healthOf(of) === "circuit open" ? "Since" : "Circuit open since"} ${formatTime(start)}`;
  const share = formatShare(failures, attempts);
  return (
    <>
      <span title={since}>
        <HealthBadge of={of} isShort />
        {since && <span className="sr-only"> {since}</span>}
      </span>
      {attempts > 0n && (
        <span className="text-muted max-lg:hidden" title={`${share} errors`}>
          {formatPercent(Number(failures) / Number(attempts))}
          <span className="sr-only"> ({share} errors)</span>
        </span>
      )}
    </>
  );
}

interface TimeToFirstTokenProps {
  readonly latency: Model["firstContent"];
  readonly attempts: bigint;
}

function TimeToFirstToken({ latency, attempts }: TimeToFirstTokenProps) {
  if (latency === undefined || latency.count === 0n || attempts === 0n) return <None />;
  const { count, p50Ms, p95Ms } = latency;
  const details = count === 1n ? "1 request" : `p95 ${formatDuration(p95Ms)}`;
  return <Detailed details={[details]}>{formatDuration(p50Ms)}</Detailed>;
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
    <span className="flex gap-1.5 lg:gap-1">
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

/** Prices of input and output, with those of the cache, of pictures and of long prompts as details. */
function PriceCells({ model, isRoute }: { readonly model: Model; readonly isRoute: boolean }) {
  const { price } = model;
  if (price === undefined) {
    const what = isRoute ? "That of the target" : "Not configured";
    return ["input", "output"].map((each) => (
      <Cell key={each} className={NUMBER} title={what}>
        <span aria-hidden className="text-muted">
          –
        </span>
        <span className="sr-only">{what}</span>
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
      <Cell className={NUMBER}>
        <Detailed details={inputs}>{formatMicroUsd(input)}</Detailed>
      </Cell>
      <Cell className={NUMBER}>
        {makes(model, Modality.EMBEDDING) ? <None /> : <Detailed details={outputs}>{formatMicroUsd(output)}</Detailed>}
      </Cell>
      <OnPhones>
        <Cell className="order-3 text-right text-xs whitespace-nowrap text-muted">
          {formatMicroUsd(input)}
          {!makes(model, Modality.EMBEDDING) && ` / ${formatMicroUsd(output)}`}
        </Cell>
      </OnPhones>
    </>
  );
}

/** Links to other pages about a model. */
export function actionsOn(
  { id }: Model,
  { isRoute, isEmbedding }: { readonly isRoute: boolean; readonly isEmbedding: boolean },
): readonly RowAction[] {
  const query = `?model=${encodeURIComponent(id)}`;
  return [
    isEmbedding ? [] : { verb: "Try it", name: `Try it: ${id}`, Icon: Play, href: `${PATHS.playground}${query}` },
    { verb: "Requests", name: `Requests for ${id}`, Icon: ListTree, href: `${PATHS.requests}${query}` },
    // Usage is counted for the served model, so a route has none.
    isRoute ? [] : { verb: "Usage", name: `Usage for ${id}`, Icon: ChartColumn, href: `${PATHS.usage}${query}` },
  ].flat();
}
