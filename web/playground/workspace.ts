import { useSyncExternalStore } from "react";
import { onForget } from "../api/session.ts";
import { hasContent } from "./answer.ts";
import { type Draft, EMPTY_DRAFT, type ParameterField } from "./draft.ts";
import { toRequest } from "./request.ts";
import { type Run, runCompletion } from "./run.ts";
import { type Picture, type Turn, withoutTurn, withText } from "./turns.ts";

/** State of the playground. */
export interface WorkspaceState {
  readonly draft: Draft;
  /** Draft of the next message. */
  readonly message: string;
  readonly pictures: readonly Picture[];
  readonly turns: readonly Turn[];
  readonly run: Run | undefined;
  /** Error that prevented sending the request. */
  readonly refusal: unknown;
}

const EMPTY: WorkspaceState = {
  draft: EMPTY_DRAFT,
  message: "",
  pictures: [],
  turns: [],
  run: undefined,
  refusal: undefined,
};

/**
 * Holds the state of the playground until the page is closed or the session ends. Navigation keeps it. Prompts are
 * stored nowhere else.
 */
class Workspace {
  state = EMPTY;
  #stop = new AbortController();
  #lastId = 0;
  readonly #listeners = new Set<() => void>();

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  change(changes: Partial<WorkspaceState>): void {
    this.state = { ...this.state, ...changes };
    for (const listener of this.#listeners) listener();
  }

  draft(changes: Partial<Draft>): void {
    this.change({ draft: { ...this.state.draft, ...changes } });
  }

  parameter(field: ParameterField, text: string): void {
    this.draft({ parameters: { ...this.state.draft.parameters, [field]: text } });
  }

  /** Sends the draft message, or the unchanged conversation without one. */
  send(): void {
    const { message, pictures, turns } = this.state;
    const hasMessage = message.trim() !== "" || pictures.length > 0;
    const next: readonly Turn[] = hasMessage
      ? [...turns, { id: this.#nextId(), role: "user", text: message, pictures }]
      : turns;
    if (next.length === 0 || next.at(-1)?.role === "assistant") return;
    this.#ask(next, { message: "", pictures: [] });
  }

  /** Sends the results for the calls of the last answer, in the order of the calls. */
  sendResults(texts: readonly string[]): void {
    const { turns } = this.state;
    const last = turns.at(-1);
    if (last?.role !== "assistant") return;
    const results = last.answer.calls.map(({ id, name }, index): Turn => ({
      id: this.#nextId(),
      role: "tool",
      callId: id,
      name,
      text: texts[index] ?? "",
    }));
    this.#ask([...turns, ...results], {});
  }

  /** Requests the last answer again, with the current settings. */
  retry(): void {
    const { turns } = this.state;
    const asked = turns.at(-1)?.role === "assistant" ? turns.slice(0, -1) : turns;
    if (asked.length > 0) this.#ask(asked, {});
  }

  stop(): void {
    this.#stop.abort();
  }

  remove(id: number): void {
    const { turns, run } = this.state;
    // The error of a removed turn is no longer relevant.
    const isAnswered = run?.state === "done";
    this.change({ turns: withoutTurn(turns, id), refusal: undefined, ...(!isAnswered && { run: undefined }) });
  }

  edit(id: number, text: string): void {
    this.change({ turns: withText(this.state.turns, id, text) });
  }

  /** Starts a new conversation. Keeps the settings. */
  clear(): void {
    this.stop();
    this.change({ message: "", pictures: [], turns: [], run: undefined, refusal: undefined });
  }

  forget(): void {
    this.stop();
    this.change(EMPTY);
  }

  #ask(turns: readonly Turn[], changes: Partial<WorkspaceState>): void {
    const { draft, run } = this.state;
    if (run?.state === "running") return;
    let request;
    try {
      request = toRequest(draft, turns);
    } catch (refusal) {
      return this.change({ refusal, run: undefined });
    }
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const id = this.#nextId();
    this.change({ ...changes, turns, refusal: undefined });
    const tell = (next: Run): void => {
      // Ignores updates of a run that `clear` or `forget` stopped, or that a newer run replaced.
      if (this.#stop.signal !== signal || (signal.aborted && this.state.run === undefined)) return;
      const { answer } = next;
      const answered: readonly Turn[] = hasContent(answer) ? [{ id, role: "assistant", answer }] : [];
      this.change({ run: next, turns: [...turns, ...answered] });
    };
    void runCompletion({ keyId: draft.keyId, request, signal, tell });
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

export const workspace = new Workspace();
onForget(() => workspace.forget());

/** Subscribes to a selected part of the state. */
export function useWorkspace<T>(read: (state: WorkspaceState) => T): T {
  return useSyncExternalStore(workspace.subscribe, () => read(workspace.state));
}
