import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { call, type CallOptions } from "./calls.js";
import {
  type Completion,
  CompletionRequestSchema,
  CompletionService,
  type TokenCount,
} from "./gen/parley/v1/completion_pb.js";
import { type EmbeddingRequestSchema, type Embeddings, EmbeddingService } from "./gen/parley/v1/embedding_pb.js";
import { type Key, KeyService } from "./gen/parley/v1/key_pb.js";
import {
  type ListModelsRequestSchema,
  type ListModelsResponse,
  type Model,
  ModelService,
} from "./gen/parley/v1/model_pb.js";
import { retry } from "./retry.js";
import { Session } from "./session.js";
import { CompletionStream } from "./stream.js";

/** Limit of bytes of one received message. */
const RECEIVE_LIMIT = 64 * 1024 * 1024;

/** What to complete: a `CompletionRequest`, or its fields. */
export type CompletionRequestInit = MessageInitShape<typeof CompletionRequestSchema>;

/** Where the gateway is, and who calls. */
export interface ParleyClientOptions {
  /** `host:port` of the gateway's gRPC port. */
  readonly address: string;
  /** The API key, `sk_…`. */
  readonly apiKey: string;
  /** The certificate of your own authority, as PEM, in place of those that Node trusts. */
  readonly ca?: string | Uint8Array | undefined;
  /** Do not use TLS. The key and all content can then be read on the way: only for loopback and private networks. */
  readonly plaintext?: boolean | undefined;
}

/** A client of one gateway. It connects with the first call, and all calls share the connection. */
export class ParleyClient {
  /** Runs completions. */
  readonly completions: Completions;
  /** Makes embeddings. */
  readonly embeddings: Embedder;
  /** Tells which models the key may use. */
  readonly models: Models;
  /** Tells about the key. */
  readonly key: CurrentKey;
  /** The connection, with the key, for Connect clients of other services such as `grpc.health.v1.Health`. */
  readonly transport: Transport;
  readonly #session: Session;

  /** @throws {TypeError} when the address or the key cannot be used */
  constructor({ address, apiKey, ca, plaintext = false }: ParleyClientOptions) {
    checkAddress(address);
    checkKey(apiKey);
    if (plaintext && ca !== undefined) throw new TypeError("`ca` is for TLS: leave out either `ca` or `plaintext`.");
    const baseUrl = `${plaintext ? "http" : "https"}://${address}`;
    this.#session = new Session(baseUrl, ca);
    this.transport = createGrpcTransport({
      baseUrl,
      sessionManager: this.#session,
      readMaxBytes: RECEIVE_LIMIT,
      interceptors: [authorize(apiKey), retry],
    });
    this.completions = new Completions(this.transport);
    this.embeddings = new Embedder(this.transport);
    this.models = new Models(this.transport);
    this.key = new CurrentKey(this.transport);
  }

  /** Closes the connection and ends the calls on it. Not needed before the end of a process. */
  close(): void {
    this.#session.abort();
  }
}

/** `parley.v1.CompletionService`. */
class Completions {
  readonly #client: Client<typeof CompletionService>;

  constructor(transport: Transport) {
    this.#client = createClient(CompletionService, transport);
  }

  /** Runs one completion to its end. It may have 64 MiB, unless `maxResponseBytes` says less. */
  create(request: CompletionRequestInit, options: CallOptions = {}): Promise<Completion> {
    const message = create(CompletionRequestSchema, request);
    const limited = Object.assign(create(CompletionRequestSchema, { maxResponseBytes: RECEIVE_LIMIT }), message);
    return call(CompletionService.method.create, options, (each) => this.#client.create(limited, each));
  }

  /** Runs one completion and returns it in pieces while it is made. */
  stream(request: CompletionRequestInit, options: CallOptions = {}): CompletionStream {
    return new CompletionStream((each) => this.#client.stream(request, each), options);
  }

  /** Counts the input tokens of a request without running it. */
  count(request: CompletionRequestInit, options: CallOptions = {}): Promise<TokenCount> {
    return call(CompletionService.method.count, options, (each) => this.#client.count(request, each));
  }
}

/** `parley.v1.EmbeddingService`. */
class Embedder {
  readonly #client: Client<typeof EmbeddingService>;

  constructor(transport: Transport) {
    this.#client = createClient(EmbeddingService, transport);
  }

  /** Returns one vector for each input, in the order of the inputs. */
  create(request: MessageInitShape<typeof EmbeddingRequestSchema>, options: CallOptions = {}): Promise<Embeddings> {
    return call(EmbeddingService.method.create, options, (each) => this.#client.create(request, each));
  }
}

/** `parley.v1.ModelService`. */
class Models {
  readonly #client: Client<typeof ModelService>;

  constructor(transport: Transport) {
    this.#client = createClient(ModelService, transport);
  }

  /** Returns a page of the models that the key may use, by default the first 1,000. */
  list(
    request: MessageInitShape<typeof ListModelsRequestSchema> = {},
    options: CallOptions = {},
  ): Promise<ListModelsResponse> {
    return call(ModelService.method.list, options, (each) => this.#client.list(request, each));
  }

  /** Returns one model. */
  get(id: string, options: CallOptions = {}): Promise<Model> {
    return call(ModelService.method.get, options, (each) => this.#client.get({ id }, each));
  }
}

/** `parley.v1.KeyService`. */
class CurrentKey {
  readonly #client: Client<typeof KeyService>;

  constructor(transport: Transport) {
    this.#client = createClient(KeyService, transport);
  }

  /** Returns the key of this client: which one it is, and what it may do. Never its secret. */
  getCurrent(options: CallOptions = {}): Promise<Key> {
    return call(KeyService.method.getCurrent, options, (each) => this.#client.getCurrent({}, each));
  }
}

function authorize(apiKey: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
}

function checkAddress(address: string): void {
  if (!address) throw new TypeError("The address is empty. Set it to host:port, such as parley.example.com:50051.");
  if (!/^(\[[\da-f:.]+\]|[^\s:/?#@[\]]+):\d+$/i.test(address) || !URL.canParse(`https://${address}`))
    throw new TypeError(`The address "${address}" is not host:port, such as parley.example.com:50051.`);
}

/** The key is not part of the messages. */
function checkKey(apiKey: string): void {
  if (!apiKey) throw new TypeError("The API key is empty. Set `apiKey` to a key of the gateway, sk_….");
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new TypeError("The API key has a character that cannot be sent, such as a space or a newline at its end.");
}
