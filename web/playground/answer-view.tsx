import { lazy, Suspense } from "react";
import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import type { Image, ToolCall } from "../../gen/parley/v1/message_pb.js";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import type { Answer } from "./answer.ts";
import { DataImage } from "./data-image.tsx";

const Markdown = lazy(() => import("./markdown.tsx"));

/** Renders an answer: reasoning, text, refusal, images and tool calls. */
export function AnswerView({ answer, isGrowing }: { readonly answer: Answer; readonly isGrowing: boolean }) {
  const { text, reasoning, refusal, images, calls, finish } = answer;
  return (
    <div className="space-y-3 text-[0.9375rem]">
      {reasoning !== "" && (
        <details className="group rounded-lg bg-sunken px-3 text-sm text-muted">
          <summary className="flex min-h-9 items-center justify-between gap-4 rounded-lg font-medium">
            {isGrowing && text === "" ? "Reasoning …" : "Reasoning"}
            <span className="font-normal group-open:hidden">Show</span>
            <span className="hidden font-normal group-open:inline">Hide</span>
          </summary>
          <p className="pb-3 wrap-anywhere whitespace-pre-wrap">{reasoning}</p>
        </details>
      )}
      {text !== "" && (
        <Suspense fallback={<p className="wrap-anywhere whitespace-pre-wrap">{text}</p>}>
          <Markdown text={text} />
        </Suspense>
      )}
      {refusal !== "" && <p className="wrap-anywhere whitespace-pre-wrap text-danger">{refusal}</p>}
      {Array.from(images.entries(), ([index, image]) => (
        <Picture key={index} image={image} number={index + 1} />
      ))}
      {calls.map((call) => (
        <CallView key={call.id} call={call} />
      ))}
      {finish?.finishReason === FinishReason.LENGTH && <Badge look="warn">Truncated: max tokens reached</Badge>}
      {finish?.finishReason === FinishReason.CONTENT_FILTER && <Badge look="warn">Stopped by content filter</Badge>}
    </div>
  );
}

function Picture({ image: { source, mediaType }, number }: { readonly image: Image; readonly number: number }) {
  // The page loads nothing from other hosts, so an image URL is shown as text.
  if (source.case !== "data") return <p className="text-sm wrap-anywhere text-muted">Image at {source.value}</p>;
  const [, kind] = /^image\/(\w+)$/.exec(mediaType) ?? [];
  if (kind === undefined) return <p className="text-sm wrap-anywhere text-muted">Image of type {mediaType}</p>;
  const { value: data } = source;
  return (
    <figure>
      <DataImage
        mediaType={mediaType}
        data={data}
        alt={`Generated image ${number}`}
        className="max-h-96 max-w-full rounded-lg"
      />
      <figcaption className="-ml-3">
        <Button look="quiet" size="small" onClick={() => download(`image-${number}.${kind}`, { mediaType, data })}>
          Download
        </Button>
      </figcaption>
    </figure>
  );
}

interface Bytes {
  readonly mediaType: string;
  readonly data: Uint8Array;
}

/** Saves bytes as a file. */
function download(name: string, { mediaType, data }: Bytes): void {
  const url = URL.createObjectURL(new Blob([Uint8Array.from(data)], { type: mediaType }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // Delayed, because some browsers start reading the URL later.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

function CallView({ call }: { readonly call: ToolCall }) {
  return (
    <div className="rounded-lg border border-line">
      <p className="border-b border-line px-3 py-2 text-sm">
        Tool call: <code className="font-mono font-medium wrap-anywhere">{call.name}</code>
      </p>
      <pre tabIndex={0} aria-label="Arguments" className="max-h-60 overflow-auto p-3 font-mono text-[0.8125rem]">
        {pretty(call.input.value ?? "")}
      </pre>
    </div>
  );
}

/** Indents JSON. Returns incomplete JSON unchanged. */
function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
