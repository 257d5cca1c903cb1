import type { Socket } from "node:net";
import { connect } from "node:tls";
import { expect } from "vitest";
import type { CertificateAuthority } from "../../support/certificates.ts";
import { type Product, startProduct } from "../../support/product.ts";
import { askTls } from "../../support/tls-client.ts";
import { answerText, localModel, startUpstream, type UpstreamExchange } from "../../product/support/upstream.ts";

export const MIB = 1024 * 1024;
export const CHAT = "POST /v1/chat/completions";
export const CREATE = "/parley.v1.CompletionService/Create";
/** A valid request. */
export const BODY = JSON.stringify({ model: "local/test", messages: [{ role: "user", content: "hi" }] });

/** The product with an upstream that counts calls. */
export interface Target {
  readonly product: Product;
  /** Number of upstream calls. */
  heard(): number;
  /** Where a raw client connects: a port, or a connection with TLS. */
  dialHttp(): number | Socket;
  dialGrpc(): number | Socket;
  /** Headers of a valid chat request. */
  chatHeaders(...more: readonly string[]): string[];
  /** Sends one valid HTTP request and returns its duration in milliseconds. Rejects unless it is served. */
  goodRequest(): Promise<number>;
  stop(): Promise<void>;
}

interface TargetOptions {
  /** More variables of its process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Whether HTTP and gRPC share the HTTP port. Default: no. */
  readonly isShared?: boolean;
  /** TLS of its listeners. Default: plain TCP. */
  readonly tls?: { readonly authority: CertificateAuthority; readonly section: object };
}

/** Starts the product with an upstream that says "hi", or calls `answer`. */
export async function startTarget(
  answer: (exchange: UpstreamExchange) => void | Promise<void> = (exchange) => answerText(exchange, "hi"),
  { env = {}, tls, isShared = false }: TargetOptions = {},
): Promise<Target> {
  const upstream = await startUpstream(answer);
  // High limits, because normal clients send continuously and large answers have many tokens.
  const limits = { requests_per_minute: "unlimited", tokens_per_minute: "unlimited", concurrent_requests: 500 };
  const listener = { listen: "127.0.0.1:0", tls: tls?.section };
  // The circuit breaker must not open for a hostile provider.
  const http = { ...listener, grpc: isShared };
  const config = { ...localModel(upstream.url), limits, breaker: { failures: 1000 }, http, grpc: listener };
  const product = await startProduct({ config, env });
  const authorization = `Bearer ${product.firstKey}`;
  const dial = (port: number, protocol: string): number | Socket =>
    tls === undefined
      ? port
      : connect({
          port,
          host: "127.0.0.1",
          ca: tls.authority.cert,
          servername: "localhost",
          ALPNProtocols: [protocol],
        });
  const request = {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: BODY,
  };
  return {
    product,
    heard: () => upstream.exchanges.length,
    dialHttp: () => dial(product.httpPort, "http/1.1"),
    dialGrpc: () => dial(product.grpcPort, "h2"),
    chatHeaders: (...more) => [
      "host: parley.example",
      "content-type: application/json",
      `authorization: ${authorization}`,
      ...more,
    ],
    async goodRequest() {
      const begunMs = performance.now();
      const answered =
        tls === undefined
          ? await fetch(`${product.url}/v1/chat/completions`, request).then(async (response) => ({
              status: response.status,
              text: await response.text(),
            }))
          : await askTls(product.httpPort, { authority: tls.authority, path: "/v1/chat/completions", ...request });
      expect(answered).toMatchObject({ status: 200 });
      return performance.now() - begunMs;
    },
    async stop() {
      await product.stop();
      await upstream.close();
    },
  };
}
