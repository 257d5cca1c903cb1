import { useEffect, useState } from "react";
import { formatDuration } from "../format/duration.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import type { Run } from "./run.ts";
import { useThread } from "./workspace.ts";

const TICK_MS = 200;
/** Approximate characters per token, for estimates before the provider reports usage. */
const CHARS_PER_TOKEN = 4;
/** Shortest time span for a rate. A faster response counts as a single burst. */
const MIN_SPAN_MS = 50;

/** Figures of the latest response of a thread: time to first token, tokens per second, time and cost. */
export function Pace() {
  const { run } = useThread();
  if (run === undefined) return null;
  return run.state === "running" ? <Running run={run} /> : <Facts run={run} nowMs={run.endedMs ?? run.startedMs} />;
}

function Running({ run }: { readonly run: Run }) {
  const [nowMs, setNowMs] = useState(() => performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return <Facts run={run} nowMs={Math.max(nowMs, run.startedMs)} />;
}

function Facts({ run, nowMs }: { readonly run: Run; readonly nowMs: number }) {
  const { startedMs, firstMs, answer } = run;
  const cost = answer.report?.costMicroUsd;
  const perSecond = tokensPerSecond(run, nowMs);
  const unknown = run.state === "running" ? "…" : "–";
  return (
    <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm tabular-nums">
      <Fact name="Time to first token">{firstMs === undefined ? unknown : formatDuration(firstMs - startedMs)}</Fact>
      <Fact name="Tokens/s">{perSecond ?? unknown}</Fact>
      <Fact name="Elapsed">{formatDuration(nowMs - startedMs)}</Fact>
      {cost !== undefined && <Fact name="Cost">{formatMicroUsd(cost)}</Fact>}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: string }) {
  return (
    <div className="flex gap-1.5">
      <dt className="text-muted">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Returns the rate by the provider's token count, or an estimate before it arrives. */
function tokensPerSecond({ answer, firstMs, endedMs }: Run, nowMs: number): string | undefined {
  const spanMs = firstMs === undefined ? 0 : (endedMs ?? nowMs) - firstMs;
  if (spanMs < MIN_SPAN_MS) return undefined;
  const counted = answer.usage?.outputTokens;
  const estimated = (answer.text.length + answer.reasoning.length) / CHARS_PER_TOKEN;
  const rate = Math.round(((counted ?? estimated) / spanMs) * 1000);
  return counted === undefined ? `~${formatCount(rate)}` : formatCount(rate);
}
