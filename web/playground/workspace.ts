import { createContext, use, useSyncExternalStore } from "react";
import { onForget } from "../api/session.ts";
import { hasContent } from "./answer.ts";
import { type Draft, EMPTY_DRAFT, type ParameterField } from "./draft.ts";
import { toRequest } from "./request.ts";
import { readResults } from "./tools.ts";
import { type Run, runCompletion } from "./run.ts";
import { openCalls, type Picture, type Turn, withoutTurn, withText } from "./turns.ts";

/** A conversation with one model. */
export interface Thread {
  readonly id: number;
  /** Empty for the first thread, which asks the model of the draft. */
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly run: Run | undefined;
  /** Error that prevented sending the request. */
  readonly refusal: unknown;
}

/** State of the playground. */
export interface WorkspaceState {
  readonly draft: Draft;
  /** Draft of the next message. */
  readonly message: string;
  readonly pictures: readonly Picture[];
  /** The conversation with the first model, then the conversations with the compared models. */
  readonly threads: readonly [Thread, ...Thread[]];
}

/** Number of times in a row that simulated results are sent. A model may call tools again and again. */
const MAX_SIMULATED = 8;

/** Number of models that can be compared with the first one. */
export const MAX_COMPARED = 3;

const FIRST: Thread = { id: 0, model: "", turns: [], run: undefined, refusal: undefined };

const EMPTY: WorkspaceState = { draft: EMPTY_DRAFT, message: "", pictures: [], threads: [FIRST] };

/**
 * Holds the state of the playground until the page is closed or the session ends. Navigation keeps it. Prompts are
 * stored nowhere else.
 */
class Workspace {
  state = EMPTY;
  /** Cancels the latest run of each thread. */
  readonly #stops = new Map<number, AbortController>();
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

  /**
   * Selects the models that are compared with the first one. The conversation with a new one begins as the first one is
   * now, with the answers of that model.
   */
  compare(models: readonly string[]): void {
    const [first, ...others] = this.state.threads;
    const isSame = models.length === others.length && models.every((model, index) => model === others[index]?.model);
    if (isSame) return;
    const next = models.map(
      (model) =>
        others.find((thread) => thread.model === model) ?? { ...FIRST, id: this.#nextId(), model, turns: first.turns },
    );
    for (const { id } of others) if (next.every((thread) => thread.id !== id)) this.stop(id);
    this.change({ threads: [first, ...next] });
  }

  /** Continues with the conversation of one thread only, after its answer. Its model becomes that of the draft. */
  continueWith(threadId: number): void {
    const thread = this.#threadOf(threadId);
    if (thread.run?.state === "running") return;
    this.stop();
    const { draft } = this.state;
    this.change({
      draft: thread.model === "" ? draft : { ...draft, chosenModel: thread.model, chosenKeyId: draft.keyId },
      threads: [{ ...thread, id: FIRST.id, model: FIRST.model }],
    });
  }

  /** Sends the draft message in every thread, or the unchanged conversations without one. */
  send(): void {
    const { message, pictures, threads } = this.state;
    const hasMessage = message.trim() !== "" || pictures.length > 0;
    const id = this.#nextId();
    const added: readonly Turn[] = hasMessage ? [{ id, role: "user", text: message, pictures }] : [];
    const asked = threads.filter(({ turns }) => hasMessage || isUnanswered(turns));
    if (asked.length === 0 || this.isRunning()) return;
    const isSent = asked.map((thread) => this.#ask(thread, [...thread.turns, ...added]));
    // A message that was refused stays in its field.
    if (isSent.some(Boolean)) this.change({ message: "", pictures: [] });
  }

  /** Sends the results for the calls of the last answer, in the order of the calls. */
  sendResults(threadId: number, texts: readonly string[], simulated = 0): void {
    const thread = this.#threadOf(threadId);
    const results = openCalls(thread.turns).map(({ id, name }, index): Turn => ({
      id: this.#nextId(),
      role: "tool",
      callId: id,
      name,
      text: texts[index] ?? "",
    }));
    this.#ask(thread, [...thread.turns, ...results], simulated);
  }

  /** Requests the last answer again, with the current settings. */
  retry(threadId: number): void {
    const thread = this.#threadOf(threadId);
    const { turns } = thread;
    const asked = turns.at(-1)?.role === "assistant" ? turns.slice(0, -1) : turns;
    if (asked.length > 0) this.#ask(thread, asked);
  }

  /** Stops one thread, or all. */
  stop(id?: number): void {
    for (const [each, stop] of this.#stops) if (id === undefined || each === id) stop.abort();
  }

  isRunning(): boolean {
    return this.state.threads.some(({ run }) => run?.state === "running");
  }

  remove(threadId: number, turnId: number): void {
    const thread = this.#threadOf(threadId);
    // The error of a removed turn is no longer relevant.
    const isAnswered = thread.run?.state === "done";
    const turns = withoutTurn(thread.turns, turnId);
    this.#changeThread(threadId, { turns, refusal: undefined, ...(!isAnswered && { run: undefined }) });
  }

  edit(threadId: number, turnId: number, text: string): void {
    this.#changeThread(threadId, { turns: withText(this.#threadOf(threadId).turns, turnId, text) });
  }

  /** Opens a conversation with its settings, in place of everything else. */
  open({ draft, turns }: { readonly draft: Draft; readonly turns: readonly Turn[] }): void {
    this.stop();
    const numbered = turns.map((turn) => ({ ...turn, id: this.#nextId() }));
    this.change({ ...EMPTY, draft, threads: [{ ...FIRST, turns: numbered }] });
  }

  /** Starts a new conversation. Keeps the settings and the compared models. */
  clear(): void {
    this.stop();
    const [first, ...others] = this.state.threads.map(({ id, model }) => ({ ...FIRST, id, model }));
    this.change({ message: "", pictures: [], threads: [first ?? FIRST, ...others] });
  }

  forget(): void {
    this.stop();
    this.change(EMPTY);
  }

  /** Whether the request was sent. `simulated` is the number of simulated results in a row before it. */
  #ask({ id, model, run: last }: Thread, turns: readonly Turn[], simulated = 0): boolean {
    const { draft } = this.state;
    if (last?.state === "running") return false;
    let request;
    let results: ReadonlyMap<string, string>;
    try {
      results = readResults(draft.results);
      request = toRequest(model === "" ? draft : { ...draft, model }, turns);
    } catch (refusal) {
      this.#changeThread(id, { refusal, run: undefined });
      return false;
    }
    const stop = new AbortController();
    this.#stops.set(id, stop);
    const answerId = this.#nextId();
    this.#changeThread(id, { turns, refusal: undefined });
    const tell = (run: Run): void => {
      // Ignores updates of a run that was stopped and forgotten, or that a newer run replaced.
      const known = this.state.threads.find((thread) => thread.id === id);
      if (this.#stops.get(id) !== stop || (stop.signal.aborted && known?.run === undefined)) return;
      const { answer } = run;
      const answered: readonly Turn[] = hasContent(answer) ? [{ id: answerId, role: "assistant", answer }] : [];
      this.#changeThread(id, { run, turns: [...turns, ...answered] });
    };
    const run = async (): Promise<void> => {
      const { state } = await runCompletion({ keyId: draft.keyId, request, signal: stop.signal, tell });
      if (state === "done" && this.#stops.get(id) === stop && simulated < MAX_SIMULATED)
        this.#simulate(id, results, simulated + 1);
    };
    void run();
    return true;
  }

  /** Answers the calls of the last answer, if there is a simulated result for each. */
  #simulate(threadId: number, results: ReadonlyMap<string, string>, simulated: number): void {
    const calls = openCalls(this.#threadOf(threadId).turns);
    const texts = calls.flatMap(({ name }) => results.get(name) ?? []);
    if (calls.length > 0 && texts.length === calls.length) this.sendResults(threadId, texts, simulated);
  }

  #threadOf(threadId: number): Thread {
    const { threads } = this.state;
    return threads.find(({ id }) => id === threadId) ?? threads[0];
  }

  #changeThread(id: number, changes: Partial<Thread>): void {
    const [first, ...others] = this.state.threads.map((thread) =>
      thread.id === id ? { ...thread, ...changes } : thread,
    );
    this.change({ threads: [first ?? FIRST, ...others] });
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }
}

/** Whether the last turn of a conversation has no answer yet. */
function isUnanswered(turns: readonly Turn[]): boolean {
  return turns.length > 0 && turns.at(-1)?.role !== "assistant";
}

export const workspace = new Workspace();
onForget(() => workspace.forget());

/** Subscribes to a selected part of the state. */
export function useWorkspace<T>(read: (state: WorkspaceState) => T): T {
  return useSyncExternalStore(workspace.subscribe, () => read(workspace.state));
}

/** ID of the thread that the components below show. */
export const ThreadContext = createContext(FIRST.id);

/** Subscribes to the thread of the context. */
export function useThread(): Thread {
  const id = use(ThreadContext);
  return useWorkspace(({ threads }) => threads.find((thread) => thread.id === id) ?? threads[0]);
}
