/** The connections to one origin. */
interface Holder {
  /** Closes a connection without a request; false: it has none. */
  closeFree(): boolean;
}

export interface SocketLimitOptions {
  /** Connections to all providers together at most. */
  readonly max: number;
  /** Called for each request that gets no connection for want of file descriptors. Default: not called. */
  readonly exhausted?: () => void;
}

/**
 * Counts the connections of a process to all its providers, for which the limit of open files leaves a number of descriptors. At the
 * limit, connections without a request are closed in favour of new ones, those to other providers too.
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

  /** Adds connections that may be closed while they have no request. Returns what removes them. */
  join(holder: Holder): () => void {
    this.#holders.add(holder);
    return () => void this.#holders.delete(holder);
  }

  /** Counts a connection that is about to be opened; false: there are as many as may be, and all have requests. */
  take(): boolean {
    if (this.#open >= this.#max && !this.#closeFree()) return false;
    this.#open += 1;
    return true;
  }

  /** A counted connection has closed. */
  give(): void {
    this.#open -= 1;
  }

  #closeFree(): boolean {
    for (const holder of this.#holders) if (holder.closeFree()) return true;
    return false;
  }
}

/** No limit, for a process of a few requests. */
export const NO_SOCKET_LIMIT = new SocketLimit({ max: Infinity });
