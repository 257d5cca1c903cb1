import { useId } from "react";
import { X } from "lucide-react";
import { Button } from "../components/button.tsx";
import { IconButton } from "../components/icon-button.tsx";
import { Log, NewConversation } from "./conversation.tsx";
import { Pace } from "./pace.tsx";
import { ThreadContext, useThread, useWorkspace, workspace } from "./workspace.ts";

interface ComparisonProps {
  /** Changes the compared models. */
  readonly onCompare: (models: readonly string[]) => void;
  /** Continues with one model only. */
  readonly onContinue: (threadId: number) => void;
}

/** The same prompts, answered by several models beside each other. */
export function Comparison({ onCompare, onContinue }: ComparisonProps) {
  const threads = useWorkspace((state) => state.threads);
  const isEmpty = threads.every(({ turns }) => turns.length === 0);
  return (
    <section aria-labelledby="comparison" className="@container">
      <header className="flex min-h-11 items-center justify-between gap-4">
        <h2 id="comparison" className="text-base font-semibold">
          Comparison of {threads.length} models
        </h2>
        {!isEmpty && <NewConversation />}
      </header>
      <div className={`mt-2 grid gap-4 ${COLUMNS[threads.length] ?? ""}`}>
        {threads.map(({ id, model }) => (
          <ThreadContext key={id} value={id}>
            <Column
              onContinue={onContinue}
              onRemove={
                model === ""
                  ? undefined
                  : () => onCompare(threads.slice(1).flatMap((other) => (other.id === id ? [] : [other.model])))
              }
            />
          </ThreadContext>
        ))}
      </div>
    </section>
  );
}

/** Columns by number of models and width of the comparison, without one model alone in a row of several. */
const COLUMNS: Readonly<Record<number, string>> = {
  2: "@xl:grid-cols-2",
  3: "@3xl:grid-cols-3",
  4: "@xl:grid-cols-2 @5xl:grid-cols-4",
};

interface ColumnProps {
  readonly onContinue: (threadId: number) => void;
  /** Undefined for the first model, which is chosen in the settings. */
  readonly onRemove: (() => void) | undefined;
}

function Column({ onContinue, onRemove }: ColumnProps) {
  const thread = useThread();
  const draftModel = useWorkspace((state) => state.draft.model);
  const model = thread.model || draftModel;
  const id = useId();
  const isRunning = thread.run?.state === "running";
  return (
    <article aria-labelledby={id} className="flex min-w-0 flex-col rounded-xl border border-line bg-surface">
      <header className="flex min-h-12 items-center gap-1 border-b border-line py-1 pr-2 pl-4">
        <h3 id={id} className="min-w-0 flex-1 font-mono text-[0.8125rem] font-semibold wrap-anywhere">
          {model}
        </h3>
        {!isRunning && thread.turns.length > 0 && (
          <Button look="quiet" size="small" className="ml-auto shrink-0" onClick={() => onContinue(thread.id)}>
            Continue <span className="sr-only">only with {model}</span>
          </Button>
        )}
        {onRemove && <IconButton name={`Remove ${model} from the comparison`} Icon={X} onClick={onRemove} />}
      </header>
      <div className="flex-1">
        <Log labelledBy={id} />
      </div>
      <footer className="flex min-h-12 flex-wrap items-center justify-between gap-x-3 gap-y-1 border-t border-line px-4 py-2">
        <Pace />
        {isRunning && (
          <Button look="quiet" size="small" className="-mr-3 ml-auto" onClick={() => workspace.stop(thread.id)}>
            Stop <span className="sr-only">{model}</span>
          </Button>
        )}
      </footer>
    </article>
  );
}
