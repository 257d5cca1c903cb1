import { buildConnector, Client, type Dispatcher } from "undici";

/** How long a connection without a request is kept. */
const KEEP_ALIVE_MS = 30_000;

/** One connection, made when its first request comes. */
interface Connection {
  readonly client: Client;
  isConnected: boolean;
  isBusy: boolean;
  /** Its place among the idle ones. */
  place: number;
}

/**
 * The connections to one origin, as many as there are requests at once. undici's own pool asks all of its connections,
 * one after another and twice for each request, which of them is idle: five thousand open streams doubled the cost of
 * every other request. Here the idle ones are a list of their own, of which the last is taken.
 */
export class Connections {
  readonly #origin: string;
  readonly #connect: buildConnector.connector;
  readonly #all = new Set<Connection>();
  readonly #idle: Connection[] = [];
  #closed = false;

  constructor(origin: string, connect: buildConnector.BuildOptions) {
    this.#origin = origin;
    // One for all of them: it keeps TLS sessions to take up again.
    this.#connect = buildConnector({ ...connect, allowH2: false });
  }

  /** Sends a request over a connection that has none, a new one if need be. */
  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const connection = this.#idle.pop() ?? this.#open();
    connection.isBusy = true;
    connection.client.dispatch(options, handler);
    // Nothing was taken: the request was refused at once.
    if (connection.client.stats.size === 0) this.#release(connection);
    // A request of a completion that began before the end of all is served like the others.
    if (this.#closed) void connection.client.close();
  }

  /** Closes idle connections now and the others after their request. Resolves when all are closed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#idle.length = 0;
    await Promise.all([...this.#all].map(({ client }) => client.close()));
  }

  #open(): Connection {
    const client = new Client(this.#origin, { connect: this.#connect, keepAliveTimeout: KEEP_ALIVE_MS });
    const connection: Connection = { client, isConnected: false, isBusy: true, place: -1 };
    this.#all.add(connection);
    client.on("connect", () => (connection.isConnected = true));
    client.on("drain", () => this.#release(connection));
    const lost = (): void => {
      connection.isConnected = false;
      if (!connection.isBusy) this.#forget(connection);
    };
    client.on("disconnect", lost).on("connectionError", lost);
    return connection;
  }

  /** Its request is over. */
  #release(connection: Connection): void {
    if (!connection.isBusy) return;
    connection.isBusy = false;
    if (!connection.isConnected || this.#closed) return this.#forget(connection);
    connection.place = this.#idle.push(connection) - 1;
  }

  #forget(connection: Connection): void {
    this.#all.delete(connection);
    if (this.#idle[connection.place] !== connection) return;
    const last = this.#idle.pop()!;
    if (last === connection) return;
    this.#idle[connection.place] = last;
    last.place = connection.place;
  }
}
