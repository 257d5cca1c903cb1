import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

/** A TCP server that speaks HTTP only as far as a test writes it by hand. */
export interface RawServer {
  readonly port: number;
  /** Every connection, in the order of their beginning, closed ones included. */
  readonly sockets: readonly Socket[];
  /** The requests as they came, head and body. */
  readonly requests: readonly string[];
  /** How many connections are open. */
  openCount(): number;
  /** Closes everything. */
  stop(): Promise<void>;
}

/** Listens on loopback. `answer` is called with each complete request. */
export async function startRawServer(answer: (socket: Socket, request: string) => void): Promise<RawServer> {
  const sockets: Socket[] = [];
  const requests: string[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.setNoDelay(true);
    socket.on("error", () => {}); // a reset is what many tests are about
    let received = "";
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      for (let size = requestSize(received); size > 0; size = requestSize(received)) {
        const request = received.slice(0, size);
        received = received.slice(size);
        requests.push(request);
        answer(socket, request);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    requests,
    openCount: () => sockets.filter((socket) => !socket.destroyed).length,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The length of the first request in `text`, by its content-length; 0 while it is incomplete. */
function requestSize(text: string): number {
  const head = text.indexOf("\r\n\r\n");
  if (head === -1) return 0;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, head))?.[1] ?? "0";
  const size = head + 4 + Number(length);
  return text.length >= size ? size : 0;
}

/** The bytes of one chunk of a chunked body. */
export function chunkOf(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
