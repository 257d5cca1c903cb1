import { type ClientHttp2Stream, constants } from "node:http2";
import { Http2SessionManager } from "@connectrpc/connect-node";

/** The connection to one gateway, also after requests that are refused before they are sent. */
export class Session extends Http2SessionManager {
  constructor(baseUrl: string, ca: string | Uint8Array | undefined) {
    super(
      baseUrl,
      {},
      {
        // By Node's default of 10 MB, a connection with a large request takes no other calls.
        maxSessionMemory: Number.MAX_SAFE_INTEGER,
        ...(ca !== undefined && { ca: Buffer.from(ca) }),
      },
    );
  }

  /** Begins a call. A response that ends first ends its request, which Connect would leave open, and the process with it. */
  override async request(...call: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...call);
    return stream.once("end", () => {
      if (!stream.writableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
    });
  }
}
