import { once } from "node:events";
import { beginStream, END_EVENTS, startUpstream, textEvent, type Upstream, type UpstreamExchange } from "./upstream.ts";

const PADDING = "x".repeat(16 * 1024);

/** The text of the piece number `index`: each one says which it is. */
export function pieceText(index: number): string {
  return `${index}:${PADDING}`;
}

/** A provider that streams as fast as it is read. */
export interface Flood extends Upstream {
  /** Bytes of the latest answer that have left for the network. */
  pulledBytes(): number;
}

/** Starts one whose streams have so many pieces of about 16 KiB each. */
export async function startFlood(pieces: number): Promise<Flood> {
  /** What the connection of the latest answer had carried before: it may be used again. */
  let carriedBytes = 0;
  const upstream = await startUpstream((exchange) => {
    carriedBytes = exchange.response.socket?.bytesWritten ?? 0;
    return pour(exchange, pieces);
  });
  return {
    ...upstream,
    pulledBytes() {
      const { response } = upstream.exchanges.at(-1)!;
      // What the socket was given and still holds has not left.
      return (response.socket?.bytesWritten ?? 0) - (response.socket?.writableLength ?? 0) - carriedBytes;
    },
  };
}

async function pour({ response }: UpstreamExchange, pieces: number): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  beginStream(response);
  try {
    for (let index = 0; index < pieces; index++) {
      if (!response.write(textEvent(pieceText(index)))) await once(response, "drain", { signal: gone.signal });
    }
    response.end(END_EVENTS);
  } catch (reason) {
    if (!gone.signal.aborted) throw reason;
  }
}
