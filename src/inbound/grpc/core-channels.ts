import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Http2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import {
  type ChannelOptions,
  Client,
  connectivityState,
  credentials,
  logVerbosity,
  setLogVerbosity,
} from "@grpc/grpc-js";
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import { keepAlive } from "./keepalive.ts";

/**
 * Completions are never sent twice: a status of UNAVAILABLE does not say that the core has not begun, and a second one
 * would cost money. Only what no core has seen is sent again, which the library does without being told: calls that never
 * left, and those that a closing connection refuses. Looking at a key changes nothing, and may be repeated.
 */
const SERVICE_CONFIG = {
  loadBalancingConfig: [{ round_robin: {} }],
  methodConfig: [
    {
      name: [{ service: KeyService.typeName }],
      retryPolicy: {
        maxAttempts: 3,
        initialBackoff: "0.05s",
        maxBackoff: "0.5s",
        backoffMultiplier: 2,
        retryableStatusCodes: ["UNAVAILABLE"],
      },
    },
  ],
};

/** Begins the user agent of a front's calls, by which their connections are recognized. */
const USER_AGENT = "parley-front";

/**
 * A core that hangs, or is gone without a word, fails its calls within half a minute: as UNAVAILABLE, which the library
 * makes of this code.
 */
const KEEPALIVE = {
  everyMs: 20_000,
  answerMs: 10_000,
  error: Object.assign(new Error("The core does not answer."), { code: "ETIMEDOUT" }),
};

/** Node says here when a stream of any HTTP/2 client in this process begins. */
const STREAM_BEGINS = "http2.client.stream.start";

const OPTIONS: ChannelOptions = {
  "grpc.primary_user_agent": USER_AGENT,
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
  "grpc.service_config_disable_resolution": 1,
  // Connections of its own: the library would share them with every channel of the same address.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_http_proxy": 0,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  "grpc.dns_min_time_between_resolutions_ms": 2_000,
  // A core bounds what it takes and what it sends.
  "grpc.max_send_message_length": -1,
  "grpc.max_receive_message_length": -1,
};

/** A connection has 1000 streams at a core; the library would let further ones wait without a word. */
const MAX_CALLS_PER_CHANNEL = 800;

/** How well the cores can be reached. */
export type CoreState = "reachable" | "connecting" | "unreachable";

interface StreamBegins {
  readonly stream: ClientHttp2Stream;
  readonly headers: OutgoingHttpHeaders;
}

/** A place for one call on a connection. */
export interface Lease {
  readonly client: Client;
  /** The call is over. */
  release(): void;
}

/** Connections to all cores behind one target, balanced call by call; as many as the calls under way need. */
export class CoreChannels {
  readonly #target: string;
  readonly #channels: { readonly client: Client; calls: number }[] = [];
  readonly #sessions = new WeakSet<Http2Session>();
  readonly #begins = (message: unknown): void => this.#keepAlive(message as StreamBegins);

  constructor(target: string) {
    // What goes wrong reaches us as errors; the library's own lines on standard error are no log lines.
    setLogVerbosity(logVerbosity.NONE);
    this.#target = target;
    subscribe(STREAM_BEGINS, this.#begins);
    this.#open();
  }

  /** Takes a place. */
  lease(): Lease {
    const channel = this.#channels.find(({ calls }) => calls < MAX_CALLS_PER_CHANNEL) ?? this.#open();
    channel.calls += 1;
    return {
      client: channel.client,
      release: () => {
        channel.calls -= 1;
      },
    };
  }

  /** How the cores can be reached; connects when nothing is connected. */
  state(): CoreState {
    switch (this.#channels[0]!.client.getChannel().getConnectivityState(true)) {
      case connectivityState.READY:
        return "reachable";
      case connectivityState.TRANSIENT_FAILURE:
      case connectivityState.SHUTDOWN:
        return "unreachable";
      default:
        return "connecting";
    }
  }

  /** Ends all connections, and the calls on them. */
  close(): void {
    unsubscribe(STREAM_BEGINS, this.#begins);
    for (const { client } of this.#channels) client.close();
  }

  /** The library keeps its connections to itself. One that never had a call delays nothing. */
  #keepAlive({ stream: { session }, headers }: StreamBegins): void {
    if (session === undefined || this.#sessions.has(session)) return;
    if (!String(headers["user-agent"]).startsWith(USER_AGENT)) return;
    this.#sessions.add(session);
    keepAlive(session, KEEPALIVE);
  }

  #open(): { readonly client: Client; calls: number } {
    const channel = { client: new Client(this.#target, credentials.createInsecure(), OPTIONS), calls: 0 };
    channel.client.getChannel().getConnectivityState(true);
    this.#channels.push(channel);
    return channel;
  }
}
