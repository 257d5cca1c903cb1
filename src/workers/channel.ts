/** Calls that one process can make to another: name, input and output. Plain data that JSON can hold. */
export type Calls = Readonly<Record<string, { readonly input: unknown; readonly output: unknown }>>;

/** Handles each of the calls. The message of a thrown error is sent to the caller. */
export type Handlers<C> = {
  readonly [Name in keyof C]: C[Name] extends { input: infer Input; output: infer Output }
    ? (input: Input) => Output | Promise<Output>
    : never;
};

/** The other process: a child, or the parent. */
export interface Peer {
  readonly connected: boolean;
  send?(message: object, callback: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  once(event: "disconnect", listener: () => void): unknown;
}

interface Pending {
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Message =
  | { readonly call: string; readonly id?: number; readonly input: unknown }
  | { readonly answer: number; readonly output?: unknown; readonly error?: string };

/** One end of the channel between a parent and a worker. Messages arrive in the order they were sent. */
export class Channel<Theirs extends Calls> {
  readonly #peer: Peer;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  /** `handlers` answer the calls of the other process. */
  constructor(peer: Peer, handlers: Readonly<Record<string, (input: never) => unknown>>) {
    this.#peer = peer;
    const known = new Map(Object.entries(handlers));
    peer.on("message", (message) => this.#receive(message as Message, known));
    peer.once("disconnect", () => this.#lose());
  }

  /** Rejects when the call fails, when the other process is gone, and after `limitMs`, if given. */
  ask<Name extends keyof Theirs & string>(
    call: Name,
    input: Theirs[Name]["input"],
    limitMs?: number,
  ): Promise<Theirs[Name]["output"]> {
    if (!this.#peer.connected) return Promise.reject(new Error(GONE));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const timer =
        limitMs === undefined
          ? undefined
          : setTimeout(() => this.#take(id)?.reject(new Error(`no answer within ${limitMs} ms`)), limitMs);
      const settle =
        <T>(how: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          how(value);
        };
      this.#pending.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.#send({ call, id, input });
    });
  }

  /** Calls without waiting for an answer; has no effect when the other process is gone. */
  tell<Name extends keyof Theirs & string>(call: Name, input: Theirs[Name]["input"]): void {
    if (this.#peer.connected) this.#send({ call, input });
  }

  #send(message: Message): void {
    // An error means that the other end has just gone; the "disconnect" event reports that.
    this.#peer.send?.(message, () => undefined);
  }

  #receive(message: Message, handlers: ReadonlyMap<string, (input: never) => unknown>): void {
    if ("answer" in message) {
      const pending = this.#take(message.answer);
      if (message.error === undefined) pending?.resolve(message.output);
      else pending?.reject(new Error(message.error));
      return;
    }
    const { call, id, input } = message;
    const handler = handlers.get(call);
    if (handler === undefined) return;
    void this.#answer(id, async () => handler(input as never));
  }

  async #answer(id: number | undefined, work: () => Promise<unknown>): Promise<void> {
    let message: Message;
    try {
      const output = await work();
      if (id === undefined) return;
      message = { answer: id, output };
    } catch (error) {
      if (id === undefined) return;
      message = { answer: id, error: error instanceof Error ? error.message : String(error) };
    }
    if (this.#peer.connected) this.#send(message);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #lose(): void {
    for (const { reject } of this.#pending.values()) reject(new Error(GONE));
    this.#pending.clear();
  }
}

const GONE = "the other process is gone";
