import { CopyButton } from "../components/copy-button.tsx";
import { formatCount } from "../format/number.ts";
import { Code } from "./request-code.tsx";
import type { Run } from "./run.ts";

/** Number of events shown while streaming. Rendering all of them for each chunk would take too long. */
const LATEST = 100;

/** List of the received stream messages. */
export function Events({ run: { state, events, furtherEvents } }: { readonly run: Run }) {
  const isRunning = state === "running";
  const shown = isRunning ? events.slice(-LATEST) : events;
  const text = shown.map(({ atMs, json }) => `${atMs.toFixed(0).padStart(6)} ms  ${json}`).join("\n");
  return (
    <div className="space-y-3">
      <div className="flex items-start justify-between gap-4">
        <p className="text-sm text-muted">
          Stream messages in order of arrival: <code className="font-mono">parley.v1.CompletionChunk</code> as JSON,
          with the time since the request in milliseconds. Images are truncated.
          {isRunning && ` While running: the latest ${LATEST}.`}
          {furtherEvents > 0 && ` ${formatCount(furtherEvents)} more are not shown.`}
        </p>
        <CopyButton text={text} what="the events" />
      </div>
      <Code label="Events" text={text === "" ? "No events yet." : text} />
    </div>
  );
}
