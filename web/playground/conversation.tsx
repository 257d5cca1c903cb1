import { Button } from "../components/button.tsx";
import { useEndInView } from "./end-in-view.ts";
import { Problem } from "./problem.tsx";
import { TurnItem } from "./turn-item.tsx";
import { useThread, workspace } from "./workspace.ts";

/** The conversation with one model. */
export function Conversation() {
  const isEmpty = useThread().turns.length === 0;
  return (
    <section aria-labelledby="conversation" className="rounded-xl border border-line bg-surface">
      <header className="flex min-h-13 items-center justify-between gap-4 border-b border-line px-4 sm:px-5">
        <h2 id="conversation" className="text-base font-semibold">
          Conversation
        </h2>
        {!isEmpty && <NewConversation />}
      </header>
      <Log labelledBy="conversation" />
    </section>
  );
}

export function NewConversation() {
  return (
    <Button look="quiet" size="small" className="-mr-3" onClick={() => workspace.clear()}>
      New conversation
    </Button>
  );
}

/** The turns of a conversation. Scrolls with a growing answer while its end is in view. */
export function Log({ labelledBy }: { readonly labelledBy: string }) {
  const { turns, run } = useThread();
  const isRunning = run?.state === "running";
  const end = useEndInView();
  const hasAnswer = isRunning && turns.at(-1)?.role === "assistant";
  const isEmpty = turns.length === 0;
  return (
    <div
      {...end}
      tabIndex={isEmpty ? -1 : 0}
      role="log"
      aria-labelledby={labelledBy}
      aria-busy={isRunning}
      className="max-h-[max(20rem,60dvh)] overflow-y-auto px-4 py-4 sm:px-5"
    >
      <div>
        {isEmpty ? (
          <p className="py-8 text-center text-[0.9375rem] text-muted">Send a message to start.</p>
        ) : (
          <ol className="space-y-5">
            {turns.map((turn, index) => (
              <TurnItem
                key={turn.id}
                turn={turn}
                isFixed={isRunning}
                isLast={index === turns.length - 1}
                isGrowing={isRunning && index === turns.length - 1 && turn.role === "assistant"}
              />
            ))}
          </ol>
        )}
        {isRunning && !hasAnswer && <p className="mt-5 text-[0.9375rem] text-muted">Waiting for the model …</p>}
        <Problem />
      </div>
    </div>
  );
}
