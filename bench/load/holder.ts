// Holds streams open. Each message sets their number; it is answered when every stream has had its first content, or has
// failed.
import { connect, type Socket } from "node:net";
import { endWithParent } from "../child.ts";
import { MARK } from "../upstream/answers.ts";
import type { Assignment } from "./caller.ts";
import { requestsOf } from "./http-requests.ts";

/** Requested number of open streams. */
export interface HoldRequest {
  readonly open: number;
}

/** Actual number of open streams. */
export interface HoldReply {
  readonly open: number;
  /** Problem of the first failed stream. */
  readonly problem: string | undefined;
}

/** Streams that are opened concurrently. */
const AT_ONCE = 32;

const assignment = JSON.parse(process.argv[2]!) as Assignment;
const held = new Set<Socket>();
let problem: string | undefined;

process.on("message", ({ open }: HoldRequest) => {
  void hold(open).then(() => process.send?.({ open: held.size, problem } satisfies HoldReply));
});
process.send?.({});
endWithParent();

async function hold(count: number): Promise<void> {
  for (const socket of held) if (count === 0) socket.destroy();
  if (count === 0) held.clear();
  let left = count - held.size;
  const begin = async (): Promise<void> => {
    while (left-- > 0) await openStream();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, begin));
}

/** Resolves when the stream has had its first content, or failed. */
function openStream(): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: assignment.target.port, host: "127.0.0.1", noDelay: true });
    let head = "";
    const read = (bytes: Buffer): void => {
      head += bytes.toString("latin1");
      const isRefused = head.includes("\r\n\r\n") && !head.startsWith("HTTP/1.1 200 ");
      if (!head.includes(MARK) && !isRefused) return;
      // Further data is read and discarded.
      socket.off("data", read).resume();
      if (isRefused) problem ??= head.slice(0, 200);
      else held.add(socket);
      resolve();
    };
    socket.on("data", read).on("error", () => socket.destroy());
    socket.on("close", () => {
      problem ??= `a stream ended after ${JSON.stringify(head.slice(-200))}`;
      held.delete(socket);
      resolve();
    });
    socket.write(requestsOf(assignment).next());
  });
}
