import { createServer, type Server } from "node:http";
import { createExchange } from "./exchange.ts";
import { type ChaosOptions, type ConfiguredFault, openFaultBook } from "./faults.ts";
import { type Journal, JournalKeeper } from "./journal.ts";
import type { PaceOptions } from "./sender.ts";

/** Options of the simulator. Without `tokensPerSecond` and `firstTokenMs` answers have no delay. */
export interface SimulatorOptions extends PaceOptions {
  /** Listen address. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Listen port. Default 0: any free port. */
  readonly port?: number | undefined;
  /** Faults for all requests, or for those of one model. The request header takes precedence. Default none. */
  readonly faults?: readonly ConfiguredFault[] | undefined;
  /** Random faults for requests without another fault. Default none. */
  readonly chaos?: ChaosOptions | undefined;
}

export interface Simulator {
  /** Origin without a path, such as `http://127.0.0.1:4010`; for an OpenAI client append `/v1`. */
  readonly url: string;
  readonly port: number;
  /** Record of the requests. */
  readonly requests: Journal;
  /** Stops listening and closes all connections, including those with a response in flight. */
  close(): Promise<void>;
}

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
/** Interval of Node's timeout checks. The default of 30 s would make shorter timeouts ineffective. */
const CHECK_INTERVAL_MS = 1_000;

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    // The listener stays: a failed accept, such as without free descriptors, must not end the process.
    server.on("error", reject);
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

/**
 * Starts a server that simulates the Anthropic, Gemini and OpenAI APIs on one port. Answers are generated
 * deterministically and identify themselves as simulated. Rejects if the address is not available or a fault is
 * invalid.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const { host = "127.0.0.1", port = 0, faults = [], chaos, tokensPerSecond, firstTokenMs } = options;
  const journal = new JournalKeeper();
  const exchange = createExchange({
    pace: { tokensPerSecond, firstTokenMs },
    faults: openFaultBook(faults, chaos),
    journal,
  });
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      noDelay: true,
    },
    (request, response) => void exchange(request, response),
  );
  server.on("connection", (socket) => {
    journal.connections += 1;
    socket.once("close", () => {
      journal.connections -= 1;
    });
  });
  const boundPort = await listen(server, host, port);
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    requests: journal,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}
