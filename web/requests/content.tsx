import { type ReactNode, useState } from "react";
import { toJsonString } from "@bufbuild/protobuf";
import { useQuery } from "@tanstack/react-query";
import type { LoggedRequest, StoredContent } from "../../gen/parley/console/v1/request_pb.js";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { contentQuery, useMayReadContent } from "../api/requests.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";

const ROLES: Readonly<Record<number, string>> = {
  [Role.SYSTEM]: "System",
  [Role.USER]: "User",
  [Role.ASSISTANT]: "Assistant",
  [Role.TOOL]: "Tool",
};

/** The stored prompt and answer, loaded on demand. Only for accounts that may read them. */
export function Content({ request: { id, refused } }: { readonly request: LoggedRequest }) {
  const mayRead = useMayReadContent();
  const [isShown, setShown] = useState(false);
  const found = useQuery({ ...contentQuery(id), enabled: isShown });
  if (!mayRead || refused) return null;
  return (
    <Panel title="Prompt and answer" description="Stored for keys that store them. Each reading is in the audit log.">
      {!isShown ? (
        <Button look="secondary" size="small" onClick={() => setShown(true)}>
          Show prompt and answer
        </Button>
      ) : found.data !== undefined ? (
        <Stored content={found.data} />
      ) : found.isPending ? (
        <Loading what="the prompt and answer" />
      ) : (
        <Unavailable error={found.error} onRetry={() => void found.refetch()} />
      )}
    </Panel>
  );
}

function Stored({ content }: { readonly content: StoredContent | null }) {
  if (content === null)
    return (
      <p className="text-sm text-muted">
        Nothing is stored of this request: its key did not store prompts and answers, or their retention period has
        ended.
      </p>
    );
  const { request, choices, requestCut, answerCut } = content;
  return (
    <div className="space-y-5 text-sm">
      {requestCut && (
        <Cut>The request has more than 256 KiB: tools and the earliest messages were left out, or a text was cut.</Cut>
      )}
      <ol aria-label="Prompt" className="space-y-4">
        {Array.from(request?.messages.entries() ?? [], ([index, { role, parts }]) => (
          <Message key={index} title={ROLES[role] ?? "Message"} parts={parts} />
        ))}
      </ol>
      {request !== undefined && (
        <details className="group rounded-lg border border-line px-3">
          <summary className="flex min-h-9 items-center rounded-lg font-medium">Parameters and tools</summary>
          <Text label="Parameters and tools">
            {toJsonString(CompletionRequestSchema, { ...request, messages: [] }, { prettySpaces: 2 })}
          </Text>
        </details>
      )}
      {choices.length === 0 ? (
        <p className="text-muted">There was no answer.</p>
      ) : (
        <ol aria-label="Answer" className="space-y-4">
          {choices.map(({ index, message }) => (
            <Message
              key={index}
              title={choices.length === 1 ? "Answer" : `Answer ${index + 1}`}
              parts={message?.parts ?? []}
            />
          ))}
        </ol>
      )}
      {answerCut && <Cut>The answer has more than 256 KiB: its end was left out.</Cut>}
    </div>
  );
}

function Cut({ children }: { readonly children: string }) {
  return <p className="rounded-lg bg-warn-soft px-4 py-3 text-warn">{children}</p>;
}

function Message({ title, parts }: { readonly title: string; readonly parts: readonly Part[] }) {
  return (
    <li>
      <h3 className="text-muted">{title}</h3>
      {Array.from(parts.entries(), ([index, part]) => (
        <PartText key={index} part={part} />
      ))}
    </li>
  );
}

/** A part as plain text: nothing of it is loaded or formatted. */
function PartText({ part: { kind } }: { readonly part: Part }) {
  switch (kind.case) {
    case "text":
      return <Text>{kind.value}</Text>;
    case "refusal":
      return <Text label="Refusal">{kind.value}</Text>;
    case "reasoning":
      return kind.value.text === "" ? null : <Text label="Reasoning">{kind.value.text}</Text>;
    case "toolCall":
      return <Text label={`Tool call: ${kind.value.name}`}>{kind.value.input.value ?? ""}</Text>;
    case "toolResult":
      return (
        <div aria-label="Tool result" role="group">
          {Array.from(kind.value.parts.entries(), ([index, part]) => (
            <PartText key={index} part={part} />
          ))}
        </div>
      );
    case "native":
      return <Text label={`Content of ${kind.value.dialect}`}>{kind.value.json}</Text>;
    default:
      return null;
  }
}

function Text({ label, children }: { readonly label?: string; readonly children: ReactNode }) {
  return (
    <div className="mt-1 rounded-lg bg-sunken px-4 py-3">
      {label !== undefined && <p className="mb-1 text-xs font-medium text-muted">{label}</p>}
      <p dir="auto" className="max-h-96 overflow-y-auto wrap-anywhere whitespace-pre-wrap" tabIndex={0}>
        {children}
      </p>
    </div>
  );
}
