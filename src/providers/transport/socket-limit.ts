/** The connections to one origin. */
interface Holder {
  /** Closes one connection without a request. Returns false when there is none. */
  closeFree(): boolean;
}

export interface SocketLimitOptions {
  /** Limit of connections to all providers together. */
  readonly max: number;
  /** Called for each request that gets no connection because file descriptors are exhausted. Default: not called. */
  readonly exhausted?: () => void;
}

/**
 * Counts the connections of a process to all its providers, and bounds them by the file descriptors that the limit of open files leaves.
 * At the limit, connections without a request are closed in favour of new ones, including those to other providers.
 */
export class SocketLimit {
  readonly exhausted: () => void;
  readonly #max: number;
  readonly #holders = new Set<Holder>();
  #open = 0;

  constructor({ max, exhausted = () => undefined }: SocketLimitOptions) {
    this.#max = max;
    this.exhausted = exhausted;
  }

  /** Adds a holder whose connections may be closed while they have no request. Returns a function that removes it. */
  join(holder: Holder): () => void {
    this.#holders.add(holder);
    return () => void this.#holders.delete(holder);
  }

  /** Counts a connection that is about to be opened. Returns false at the limit, when all connections have requests. */
  take(): boolean {
    if (this.#open >= this.#max && !this.#closeFree()) return false;
    this.#open += 1;
    return true;
  }

  /** Call it when a counted connection has closed. */
  give(): void {
    this.#open -= 1;
  }

  #closeFree(): boolean {
    for (const holder of this.#holders) if (holder.closeFree()) return true;
    return false;
  }
}

/** No limit, for a process with few requests. */
export const NO_SOCKET_LIMIT = new SocketLimit({ max: Infinity });
