// One caller on many connections, in a process of its own: sends the same request again whenever it has an answer, on a new
// connection when the old one was closed. Its argument says where and what; a message ends it with the counts of answers.
import { connect } from "node:net";

/** What is sent. */
export interface Attack {
  readonly port: number;
  readonly key: string;
  readonly connections: number;
  /** The body, repeated from a short text: `prefix`, `piece` this many times, `suffix`. */
  readonly prefix: string;
  readonly piece: string;
  readonly times: number;
  readonly suffix: string;
}

const attack = JSON.parse(process.argv[2]!) as Attack;
const body = attack.prefix + attack.piece.repeat(attack.times) + attack.suffix;
const request = Buffer.from(
  `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${attack.key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
);
const counts: Record<string, number> = {};
/** The pause after a connection that ended without an answer, in milliseconds. */
const PAUSE_MS = 20;

function open(): void {
  const socket = connect(attack.port, "127.0.0.1");
  let isAnswered = true;
  const send = (): void => {
    isAnswered = false;
    socket.write(request);
  };
  socket.on("connect", send);
  socket.on("data", (bytes: Buffer) => {
    const text = bytes.toString("latin1");
    const status = /^HTTP\/1\.1 (\d+)/.exec(text)?.[1];
    if (isAnswered || status === undefined) return;
    isAnswered = true;
    counts[status] = (counts[status] ?? 0) + 1;
    if (/connection: close/i.test(text)) socket.destroy();
    else send();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    if (isAnswered) return open();
    counts["cut"] = (counts["cut"] ?? 0) + 1;
    setTimeout(open, PAUSE_MS);
  });
}

for (let index = 0; index < attack.connections; index++) open();
process.send?.("begun");
process.once("message", () => process.send?.(counts, () => process.exit(0)));
process.once("disconnect", () => process.exit(0));
