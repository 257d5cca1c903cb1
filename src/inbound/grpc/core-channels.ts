import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Http2Session, ClientHttp2Stream, OutgoingHttpHeaders } from "node:http2";
import { createSecureContext } from "node:tls";
import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  connectivityState,
  credentials,
  logVerbosity,
  setLogVerbosity,
} from "@grpc/grpc-js";
import { KeyService } from "../../../gen/parley/v1/key_pb.js";
import type { WatchedTlsFiles } from "../../net/tls-files.ts";
import { keepAlive } from "../http2/keepalive.ts";

/**
 * Completions are never retried: after UNAVAILABLE a core may have begun, and a second completion would cost money. grpc-js
 * itself repeats calls that no core has seen: those that were not sent, and those refused by a closing connection. Reading a
 * key has no side effects and is retried.
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

/** Prefix of the user agent of a front's calls, which identifies their connections. */
const USER_AGENT = "parley-front";

/** Calls of a core that hangs or has vanished fail within 30 seconds, with UNAVAILABLE: grpc-js maps this code to it. */
const KEEPALIVE = {
  everyMs: 20_000,
  answerMs: 10_000,
  error: Object.assign(new Error("The core does not answer."), { code: "ETIMEDOUT" }),
};

/** Diagnostics channel for new streams of all HTTP/2 clients of this process. */
const STREAM_BEGINS = "http2.client.stream.start";

const OPTIONS: ChannelOptions = {
  "grpc.primary_user_agent": USER_AGENT,
  "grpc.service_config": JSON.stringify(SERVICE_CONFIG),
  "grpc.service_config_disable_resolution": 1,
  // Own connections: grpc-js would share them among all channels to the same address.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_http_proxy": 0,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  "grpc.dns_min_time_between_resolutions_ms": 2_000,
  // Cores limit the size of messages.
  "grpc.max_send_message_length": -1,
  "grpc.max_receive_message_length": -1,
};

/** A core allows 1,000 streams on a connection in use; grpc-js would queue further ones silently. */
const MAX_CALLS_PER_CHANNEL = 800;

/** Whether the cores are reachable. */
export type CoreState = "reachable" | "connecting" | "unreachable";

interface StreamBegins {
  readonly stream: ClientHttp2Stream;
  readonly headers: OutgoingHttpHeaders;
}

/** A slot for one call on a connection. */
export interface Lease {
  readonly client: Client;
  /** To be called at the end of the call. */
  release(): void;
}

/** TLS of the connections to cores. */
export interface CoreTls {
  readonly files: Pick<WatchedTlsFiles, "material" | "onChange">;
  /** Name in the certificates of the cores. Default: the host of the target. */
  readonly serverName?: string | undefined;
}

/**
 * Use of a connection. Look-ups of keys have connections of their own, because a core closes one on which callers without a
 * valid key send too many and too long credentials.
 */
export type ChannelUse = "calls" | "keys";

interface Channel {
  readonly use: ChannelUse;
  readonly client: Client;
  calls: number;
  /** Whether it was made with files that have changed since: it closes with its last call. */
  isRetired: boolean;
}

/** Connections to all cores behind one target, balanced per call; as many as the calls in flight need. */
export class CoreChannels {
  readonly #target: string;
  readonly #tls: CoreTls | undefined;
  readonly #channels: Channel[] = [];
  readonly #sessions = new WeakSet<Http2Session>();
  readonly #begins = (message: unknown): void => this.#keepAlive(message as StreamBegins);

  /** `tls`: undefined for plain TCP. */
  constructor(target: string, tls: CoreTls | undefined) {
    // Faults arrive as errors; grpc-js would also write lines to standard error that are not in the log's format.
    setLogVerbosity(logVerbosity.NONE);
    this.#target = target;
    this.#tls = tls;
    tls?.files.onChange(() => this.#retireAll());
    subscribe(STREAM_BEGINS, this.#begins);
    this.#open("calls");
  }

  /** Takes a slot; opens a connection when all are full. */
  lease(use: ChannelUse): Lease {
    const hasRoom = (channel: Channel): boolean =>
      channel.use === use && !channel.isRetired && channel.calls < MAX_CALLS_PER_CHANNEL;
    const channel = this.#channels.find(hasRoom) ?? this.#open(use);
    channel.calls += 1;
    return {
      client: channel.client,
      release: () => {
        channel.calls -= 1;
        if (channel.isRetired && channel.calls === 0) this.#close(channel);
      },
    };
  }

  /** State of the connections for calls; connects when none is open. */
  state(): CoreState {
    switch (
      this.#channels
        .find(({ use, isRetired }) => use === "calls" && !isRetired)!
        .client.getChannel()
        .getConnectivityState(true)
    ) {
      case connectivityState.READY:
        return "reachable";
      case connectivityState.TRANSIENT_FAILURE:
      case connectivityState.SHUTDOWN:
        return "unreachable";
      default:
        return "connecting";
    }
  }

  /** Closes all connections with their calls. */
  close(): void {
    unsubscribe(STREAM_BEGINS, this.#begins);
    for (const { client } of this.#channels) client.close();
  }

  /** grpc-js does not expose its connections: they are found by their first stream. An unused one needs no keepalive. */
  #keepAlive({ stream: { session }, headers }: StreamBegins): void {
    if (session === undefined || this.#sessions.has(session)) return;
    if (!String(headers["user-agent"]).startsWith(USER_AGENT)) return;
    this.#sessions.add(session);
    keepAlive(session, KEEPALIVE);
  }

  /** Makes new connections with changed files. Earlier connections end with their calls. */
  #retireAll(): void {
    for (const channel of this.#channels.slice()) {
      channel.isRetired = true;
      if (channel.calls === 0) this.#close(channel);
    }
    this.#open("calls");
  }

  #close(channel: Channel): void {
    this.#channels.splice(this.#channels.indexOf(channel), 1);
    channel.client.close();
  }

  #open(use: ChannelUse): Channel {
    const { serverName } = this.#tls ?? {};
    const options = { ...OPTIONS, ...(serverName !== undefined && { "grpc.ssl_target_name_override": serverName }) };
    const channel = { use, client: new Client(this.#target, this.#credentials(), options), calls: 0, isRetired: false };
    channel.client.getChannel().getConnectivityState(true);
    this.#channels.push(channel);
    return channel;
  }

  #credentials(): ChannelCredentials {
    if (this.#tls === undefined) return credentials.createInsecure();
    const context = createSecureContext({ ...this.#tls.files.material, minVersion: "TLSv1.2" });
    return credentials.createFromSecureContext(context);
  }
}
