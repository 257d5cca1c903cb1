// One caller on many connections, as a separate process: repeats the same request after each response, on a new
// connection if the old one was closed. The argument is an `Attack` as JSON; a message ends the process, which then
// sends the counts of responses.
import { connect } from "node:net";

/** The request. */
export interface Attack {
  readonly port: number;
  readonly path: string;
  /** Header lines with the credential and the content type. */
  readonly headers: readonly string[];
  readonly connections: number;
  /** Whether the body is one message in Connect's envelope. */
  readonly enveloped: boolean;
  /** The body, repeated from a short text: `prefix`, `piece` this many times, `suffix`. */
  readonly prefix: string;
  readonly piece: string;
  readonly times: number;
  readonly suffix: string;
}

const attack = JSON.parse(process.argv[2]!) as Attack;
const message = Buffer.from(attack.prefix + attack.piece.repeat(attack.times) + attack.suffix);
const envelope = Buffer.alloc(attack.enveloped ? 5 : 0);
if (attack.enveloped) envelope.writeUInt32BE(message.length, 1);
const body = Buffer.concat([envelope, message]);
const head = [`POST ${attack.path} HTTP/1.1`, "host: 127.0.0.1", ...attack.headers, `content-length: ${body.length}`];
const request = Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), body]);
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
