import { memo, use, useEffect, useRef, useState } from "react";
import { Pencil, RotateCcw, Trash2 } from "lucide-react";
import { Button } from "../components/button.tsx";
import { CopyIcon } from "../components/copy-icon.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { ICON_BUTTON } from "../components/table.tsx";
import { TextAreaField } from "../components/field.tsx";
import { AnswerView } from "./answer-view.tsx";
import { DataImage } from "./data-image.tsx";
import { ToolResults } from "./tool-results.tsx";
import type { Turn } from "./turns.ts";
import { ThreadContext, workspace } from "./workspace.ts";

const NAMES = { user: "You", assistant: "Model", tool: "Tool result" } as const;

interface TurnItemProps {
  readonly turn: Turn;
  /** Disables editing while a response is streaming. */
  readonly isFixed: boolean;
  readonly isLast: boolean;
  /** Whether this turn is streaming. */
  readonly isGrowing: boolean;
}

/** One turn of the conversation. Memoized, so that chunks of the last turn do not render the others. */
export const TurnItem = memo(function TurnItem({ turn, isFixed, isLast, isGrowing }: TurnItemProps) {
  const threadId = use(ThreadContext);
  const [isEditing, setEditing] = useState(false);
  const name = turn.role === "tool" ? `Result of ${turn.name}` : NAMES[turn.role];
  return (
    <li data-role={turn.role}>
      <div className="flex min-h-9 items-center justify-between gap-3">
        <h3 className="min-w-0 truncate text-sm font-semibold">
          {name}
          {turn.role === "assistant" && turn.answer.model !== "" && (
            <span className="ml-2 font-mono text-xs font-normal text-muted">{turn.answer.model}</span>
          )}
        </h3>
        {!isFixed && !isEditing && (
          <div className="-mr-2 flex shrink-0" role="group" aria-label={`Message of ${name}`}>
            {turn.role === "assistant" && turn.answer.text !== "" && (
              <CopyIcon text={turn.answer.text} what="the answer" className={ICON_BUTTON} />
            )}
            {isLast && turn.role === "assistant" && (
              <IconButton name="Retry" Icon={RotateCcw} onClick={() => workspace.retry(threadId)} />
            )}
            <IconButton name="Edit" Icon={Pencil} onClick={() => setEditing(true)} />
            <IconButton name="Remove" Icon={Trash2} onClick={() => workspace.remove(threadId, turn.id)} />
          </div>
        )}
      </div>
      {isEditing && !isFixed ? (
        <Editor turn={turn} onDone={() => setEditing(false)} />
      ) : turn.role === "assistant" ? (
        <>
          <AnswerView answer={turn.answer} isGrowing={isGrowing} />
          {isLast && !isFixed && turn.answer.calls.length > 0 && <ToolResults calls={turn.answer.calls} />}
        </>
      ) : (
        <>
          {turn.role === "user" && turn.pictures.length > 0 && (
            <ul className="mb-2 flex flex-wrap gap-2">
              {turn.pictures.map(({ id, name: file, mediaType, data }) => (
                <li key={id}>
                  <DataImage
                    mediaType={mediaType}
                    data={data}
                    alt={file}
                    className="max-h-32 max-w-48 rounded-lg border border-line"
                  />
                </li>
              ))}
            </ul>
          )}
          <p className="text-[0.9375rem] wrap-anywhere whitespace-pre-wrap">{turn.text}</p>
        </>
      )}
    </li>
  );
});

function Editor({ turn, onDone }: { readonly turn: Turn; readonly onDone: () => void }) {
  const threadId = use(ThreadContext);
  const [text, setText] = useState(turn.role === "assistant" ? turn.answer.text : turn.text);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current?.focus(), []);
  return (
    <form
      className="space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        workspace.edit(threadId, turn.id, text);
        onDone();
      }}
    >
      <TextAreaField label="Text" rows={4} ref={area} value={text} onChange={(event) => setText(event.target.value)} />
      <div className="flex gap-2">
        <Button type="submit" size="small">
          Save
        </Button>
        <Button look="secondary" size="small" onClick={onDone}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
