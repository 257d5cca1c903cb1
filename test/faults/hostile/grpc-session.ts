import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import type { Target } from "./target.ts";

/** Result of a call, from its headers and trailers. */
export interface CallEnd {
  readonly httpStatus: number | undefined;
  /** The gRPC status code as text. */
  readonly grpcStatus: string | undefined;
  readonly elapsedMs: number;
}

/** Sends a call with Node's HTTP/2 client on a separate connection. The body stays open when `ends` is false. */
export async function call(
  { product }: Target,
  headers: OutgoingHttpHeaders,
  { body, ends = true }: { readonly body: Buffer; readonly ends?: boolean },
): Promise<CallEnd> {
  // By default Node refuses response headers while more than 10 MiB are waiting to be sent.
  const session = connect(`http://127.0.0.1:${product.grpcPort}`, { maxSessionMemory: 64 });
  session.on("error", () => undefined);
  const begunMs = performance.now();
  let httpStatus: number | undefined;
  let grpcStatus: string | undefined;
  await new Promise<void>((resolve) => {
    const stream = session.request({ ":method": "POST", te: "trailers", ...headers });
    const look = (arrived: IncomingHttpHeaders & { ":status"?: number }): void => {
      if (arrived[":status"] !== undefined) httpStatus = arrived[":status"];
      const status = arrived["grpc-status"];
      if (status !== undefined) {
        grpcStatus = status.toString();
        resolve();
      }
    };
    stream
      .on("response", look)
      .on("trailers", look)
      .on("close", resolve)
      .on("error", () => resolve())
      .resume();
    if (ends) stream.end(body);
    else stream.write(body);
  });
  session.destroy();
  return { httpStatus, grpcStatus, elapsedMs: performance.now() - begunMs };
}
